"""The worker processes of a torture run, and how to find every process that belongs to it."""

import contextlib
import dataclasses
import os
import pathlib
import signal
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
MARK = "TORTURE_RUN"  # is in the environment of all of them
RESTART_AFTER_S = 0.3
STOPPED_IN_S = 60.0
# Short enough that the faults outlast them. Deaths are not the jobs' fault here.
FLAGS = ("--lease", "2s", "--lock-ttl", "2s", "--timeout", "8s", "--grace", "2s", "--retry-base",
         "50ms", "--retry-cap", "1s", "--max-crashes", "1000")


@dataclasses.dataclass(frozen=True)
class Process:
    pid: int
    started: str  # tells it from a later one with its number
    role: str

    def is_there(self):
        return started_at(self.pid) == self.started

    def send(self, number):
        if self.is_there():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


def started_at(pid):
    """None for one that is gone or a zombie."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else fields[19]


def read(pid, name):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/{name}").read_bytes()
    return b""


def role_of(pid, supervisors):
    if read(pid, "comm").strip() == b"sekali-guard":
        return "guard"
    words = read(pid, "cmdline").split(b"\0")
    program = os.path.basename(words[0])
    if program == b"sekali" and b"enqueue" in words:
        return "producer"
    if program == b"torture_worker" or (program == b"sekali" and b"work" in words):
        return "supervisor" if pid in supervisors else "worker"
    return "child"


def processes_of(run, supervisors=()):
    mark = f"{MARK}={run}".encode()
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        pid = int(folder.name)
        if mark not in read(pid, "environ").split(b"\0"):
            continue
        if (started := started_at(pid)) is not None:
            found.append(Process(pid, started, role_of(pid, supervisors)))
    return found


class Fleet:
    """Workers that are started again when they have died."""

    def __init__(self, run, programs, environment_of, outside, log):
        self.run = run
        self.log = log
        self.restarts = 0
        self.ended = []  # who ended by itself, and how
        shell = str(HERE / "shell_handler.sh")
        library = [str(programs / "torture_worker"), *FLAGS, "--concurrency", "4"]
        self.plans = [
            ("library", [*library, "--processes", "2"]),
            ("library", library),
            ("shell", [str(programs / "sekali"), "work", *FLAGS, "--concurrency", "3",
                       "--processes", "2", "--exec", f"script={shell}", "--effects", "script=steps",
                       "--on-unknown", "script=probe",
                       "--http", f"call=http://127.0.0.1:{outside.port}/call"]),
        ]
        self.environments = {
            link: {**environment_of(link), "TORTURE_OUTSIDE": outside.socket,
                   "TORTURE_PROGRAMS": str(programs)} for link, _ in self.plans}
        self.roots = [None] * len(self.plans)
        self.due = [0.0] * len(self.plans)
        self.killed = set()

    def advance(self, now):
        for place, root in enumerate(self.roots):
            if root is not None and root.poll() is not None:
                self.roots[place] = None
                self.due[place] = now + RESTART_AFTER_S
                if not (root.returncode == -signal.SIGKILL and root.pid in self.killed):
                    self.ended.append(root.returncode)
            if self.roots[place] is None and now >= self.due[place]:
                self.start(place)

    def start(self, place):
        link, command = self.plans[place]
        self.roots[place] = subprocess.Popen(
            command, env=self.environments[link], stdin=subprocess.DEVNULL, stdout=self.log,
            stderr=self.log)
        self.restarts += 1

    def processes(self):
        supervisors = {root.pid for root, (_, command) in zip(self.roots, self.plans)
                       if root is not None and "--processes" in command}
        return processes_of(self.run, supervisors)

    def kill(self, victim):
        self.killed.add(victim.pid)
        victim.send(signal.SIGKILL)

    def stop(self):
        """Asks all to end; returns what is not as it should be."""
        roots = [root for root in self.roots if root is not None]
        for root in roots:
            root.terminate()
        wrong = []
        until = time.monotonic() + STOPPED_IN_S
        for root in roots:
            try:
                status = root.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                wrong.append(f"worker {root.pid} does not end after SIGTERM")
                continue
            if status != 0:
                wrong.append(f"worker {root.pid} ended with {status} after SIGTERM")
        if left := self.left_after(until):
            wrong.append(f"processes were left behind: {left}")
        return wrong

    def left_after(self, until):
        while (left := processes_of(self.run)) and time.monotonic() < until:
            time.sleep(0.05)  # nobody's children here: the system offers no event for their ends
        return left

    def end_all(self):
        """However it went: nothing of this run stays."""
        for process in processes_of(self.run):
            process.send(signal.SIGKILL)
        for root in self.roots:
            if root is not None:
                root.wait()
