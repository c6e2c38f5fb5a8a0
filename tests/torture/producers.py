"""Producers that enqueue, are killed and cut off, and what may be expected of their jobs."""

import contextlib
import dataclasses
import json
import signal
import subprocess
import uuid

ACCOUNTS = 20
REPEATS = 0.2
SOON_REPEATED = 10  # half of the repeats are of one of the last jobs
LOCKED = 0.75
OWN_IDS = 0.7
AT_ONCE = 3
LARGEST_BATCH = 20
SINGLE = 0.25  # share of calls that enqueue one job by itself
TRIED_AGAIN = 0.5  # share of the unanswered that somebody enqueues again
KINDS = {"pay": 40, "book": 40, "call": 12, "script": 4, "doomed": 4}
WITH_EFFECT = ("pay", "book", "receipt")  # in our commit
CALLING = ("pay", "call", "script")  # outside
# Waits and failures are what is asked for; no job is to die of them.
MANY = 1_000_000

STARTED, ACCEPTED, MAYBE, REFUSED, SUPPRESSED = "started accepted maybe refused suppressed".split()


@dataclasses.dataclass
class Job:
    line: dict
    status: str = STARTED
    id: str | None = None
    may_be_cancelled: bool = False

    @property
    def key(self):
        return self.line["kind"], self.line["key"]


@dataclasses.dataclass
class Call:
    process: subprocess.Popen
    jobs: list
    output: object
    is_single: bool


def make_line(number, rng):
    kind = rng.choices(list(KINDS), KINDS.values())[0]
    # Who has no lock must not touch what one guards.
    is_locked = kind in ("pay", "book", "script") and rng.random() < LOCKED
    account = f"a{rng.randrange(ACCOUNTS)}" if is_locked else "free"
    payload = {"account": account, "cents": rng.randrange(1, 10_000),
               "busy_ms": rng.choice([0, 0, 10, 50, 200, 1000, 2500]),
               "fails_first": rng.random() < 0.1}
    line = {"kind": kind, "payload": payload, "key": f"{kind}-{number}", "max_attempts": MANY,
            "priority": rng.randrange(10)}
    if is_locked:
        line["lock"] = f"account:{account}"
    if kind == "book" and rng.random() < 0.5:
        line["unique"] = line["key"]
    if rng.random() < 0.1:
        line["delay"] = f"{rng.randrange(50, 3000)}ms"
    return line


class Producers:
    def __init__(self, sekali, environment, folder, rate, rng):
        self.sekali = sekali
        self.environment = environment
        self.folder = folder
        self.rate = rate
        self.rng = rng
        self.jobs = []
        self.again = []
        self.calls = []
        self.people = []
        self.began = None

    def draw(self):
        if self.again and self.rng.random() < 0.5:
            return self.again.pop()
        if self.jobs and self.rng.random() < REPEATS:
            known = self.jobs[-SOON_REPEATED:] if self.rng.random() < 0.5 else self.jobs
            line = dict(self.rng.choice(known).line)
            line.pop("id", None)
        else:
            line = make_line(len(self.jobs), self.rng)
        if self.rng.random() < OWN_IDS:
            line["id"] = str(uuid.UUID(int=self.rng.getrandbits(128), version=4))
        self.jobs.append(Job(line, id=line.get("id")))
        return self.jobs[-1]

    def advance(self, now):
        self.began = self.began or now
        self.collect()
        self.people = [process for process in self.people if process.poll() is None]
        owed = self.rate * (now - self.began) - len(self.jobs)
        size = 1 if self.rng.random() < SINGLE else self.rng.randrange(2, LARGEST_BATCH)
        if owed >= size and len(self.calls) < AT_ONCE:
            self.start([self.draw() for _ in range(size)])

    def start(self, jobs):
        is_single = len(jobs) == 1
        path = self.folder / f"call-{uuid.uuid4().hex}"
        if is_single:
            words = self.words_of(jobs[0].line)
        else:
            path.with_suffix(".jsonl").write_text(
                "".join(json.dumps(job.line) + "\n" for job in jobs))
            words = ["--bulk", str(path.with_suffix(".jsonl"))]
        output = open(path, "w+b")
        process = subprocess.Popen(
            [self.sekali, "enqueue", *words, "--json"], env=self.environment,
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.DEVNULL)
        self.calls.append(Call(process, jobs, output, is_single))

    @staticmethod
    def words_of(line):
        words = [line["kind"], json.dumps(line["payload"])]
        for name, value in line.items():
            if name not in ("kind", "payload"):
                words += [f"--{name.replace('_', '-')}", str(value)]
        return words

    def collect(self):
        for call in [call for call in self.calls if call.process.poll() is not None]:
            self.calls.remove(call)
            call.output.seek(0)
            answers = []
            for line in call.output.read().splitlines():
                with contextlib.suppress(ValueError):  # the last one may be cut
                    answers.append(json.loads(line))
            self.judge(call, answers)
            path = call.output.name
            call.output.close()
            for name in (path, path + ".jsonl"):
                with contextlib.suppress(FileNotFoundError):
                    (self.folder / name).unlink()

    def judge(self, call, answers):
        for number, job in enumerate(call.jobs, 1):
            mine = answers[:1] if call.is_single else [
                answer for answer in answers if answer.get("line") == number]
            self.hear(job, mine[0] if mine else {})

    def hear(self, job, answer):
        if answer.get("status") == "enqueued":
            job.id = answer["id"]
            job.status = ACCEPTED
        elif answer.get("status") == "duplicate":
            # A job that was asked for before may be its own winner.
            job.status = ACCEPTED if answer["winner"] == job.id else SUPPRESSED
        elif job.status == STARTED and answer.get("error") and self.is_unapplied(answer["error"]):
            job.status = REFUSED
        else:
            if job.status == STARTED:
                job.status = MAYBE
            if job.status == MAYBE and self.rng.random() < TRIED_AGAIN:
                self.again.append(job)

    @staticmethod
    def is_unapplied(error):
        return isinstance(error, dict) and error["applied"] == "no"

    def kill_one(self):
        if not self.calls:
            return False
        self.rng.choice(self.calls).process.send_signal(signal.SIGKILL)
        return True

    def cancel_one(self):
        """Somebody changes their mind."""
        recent = [job for job in self.jobs[-50:] if job.status == ACCEPTED]
        if not recent:
            return False
        job = self.rng.choice(recent)
        job.may_be_cancelled = True
        self.people.append(subprocess.Popen(
            [self.sekali, "job", "cancel", job.id, "--yes"], env=self.environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        return True

    def finish(self):
        for process in [call.process for call in self.calls] + self.people:
            process.wait()
        self.collect()
