#!/usr/bin/env python3
"""A private PostgreSQL server for a run of the tests.

  server.py start FOLDER [--while PID] [--durable]   starts one and writes its URL to FOLDER/url
  server.py crash FOLDER                             ends it at once and starts it again
  server.py stop FOLDER                              ends it at once
  server.py standby FOLDER PRIMARY                   starts one that follows the one in PRIMARY
  server.py promote FOLDER                           makes a standby a primary

It runs as an unprivileged user (PostgreSQL refuses root), listens only on a socket in a new
temporary folder, and ends by itself when the process PID, by default the caller, is gone.
"""

import argparse
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SETTINGS = {
    # What a power cut would take is not the subject of the tests.
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "listen_addresses": "''",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "autovacuum_naptime": "5s",
    "deadlock_timeout": "100ms",
    "log_min_messages": "warning",
    "unix_socket_permissions": "0777",
}


DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}


def programs():
    """The folder with initdb and postgres of the newest server that is installed."""
    folders = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"),
                     key=lambda path: float(path.parts[-3]))
    if folders:
        return folders[-1].parent
    found = shutil.which("initdb")
    return pathlib.Path(found).parent if found else None


def unprivileged():
    """How to run a program as somebody who is not root, and who that is."""
    if os.geteuid() != 0:
        return [], None
    names = [entry.pw_name for entry in pwd.getpwall()]
    name = "postgres" if "postgres" in names else "nobody"
    entry = pwd.getpwnam(name)
    become = [f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups"]
    return ["setpriv", *become], entry


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def answers(prefix, bin_folder, socket):
    probe = subprocess.run([*prefix, bin_folder / "pg_isready", "-q", "-U", "sekali", "-d",
                            "postgres", "-h", socket],
                           stdin=subprocess.DEVNULL, check=False)
    return probe.returncode == 0


def supervise(command, socket_folder, parent):
    """Runs the server until it is told to stop or its parent is gone."""
    stopping = []
    crashes = []
    signal.signal(signal.SIGTERM, lambda *_: stopping.append(server.send_signal(signal.SIGQUIT)))
    signal.signal(signal.SIGUSR1, lambda *_: crashes.append(server.send_signal(signal.SIGQUIT)))
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, cwd=socket_folder)
    while not stopping and is_alive(parent):
        try:
            server.wait(timeout=0.5)
        except subprocess.TimeoutExpired:
            continue
        if not crashes:
            break
        crashes.clear()
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, cwd=socket_folder)
    if server.poll() is None:
        server.send_signal(signal.SIGQUIT)
        server.wait()
    shutil.rmtree(socket_folder, ignore_errors=True)


def new_home():
    """A folder that the server can write to."""
    home = pathlib.Path(tempfile.mkdtemp(prefix="sekali-postgres-"))
    _, user = unprivileged()
    if user:
        os.chown(home, user.pw_uid, user.pw_gid)
    home.chmod(0o755)
    return home


def run_tool(name, *words, cwd):
    prefix, _ = unprivileged()
    subprocess.run([*prefix, programs() / name, *words], check=True, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, cwd=cwd)


def launch(folder, home, parent, settings):
    """Starts the server whose data is in `home`, and waits until it answers."""
    prefix, _ = unprivileged()
    command = [*prefix, programs() / "postgres", "-D", home / "data", "-k", home]
    for name, value in settings.items():
        command += ["-c", f"{name}={value.strip(chr(39))}"]
    pid = os.fork()
    if pid == 0:
        os.setsid()
        with open(folder / "log", "wb") as log:
            for stream in (1, 2):
                os.dup2(log.fileno(), stream)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        supervise(command, home, parent)
        os._exit(0)
    (folder / "pid").write_text(str(pid))
    deadline = time.monotonic() + 60
    while not answers(prefix, programs(), home):
        if time.monotonic() > deadline or not is_alive(pid):
            sys.exit(f"postgres server: it did not start, see {folder / 'log'}")
        time.sleep(0.05)  # PostgreSQL offers no event for it
    (folder / "url").write_text(f"postgres://sekali@/postgres?host={home}")


def start(folder, parent, durable):
    folder.mkdir(parents=True, exist_ok=True)
    if programs() is None:
        sys.exit("postgres server: no PostgreSQL server is installed (Debian: postgresql-15)")
    home = new_home()
    run_tool("initdb", "-D", home / "data", "-U", "sekali", "-E", "UTF8", "--locale=C.UTF-8",
             "-A", "trust", "--no-sync", "--no-instructions", cwd=home)
    launch(folder, home, parent, {**SETTINGS, **DURABLE} if durable else SETTINGS)


def home_of(folder):
    return pathlib.Path((folder / "url").read_text().split("host=")[1].strip())


def standby(folder, primary, parent):
    folder.mkdir(parents=True, exist_ok=True)
    home = new_home()
    run_tool("pg_basebackup", "-D", home / "data", "-h", home_of(primary), "-U", "sekali",
             "--write-recovery-conf", "--checkpoint=fast", "--no-sync", cwd=home)
    launch(folder, home, parent, {**SETTINGS, **DURABLE})


def promote(folder):
    home = home_of(folder)
    run_tool("pg_ctl", "promote", "-D", home / "data", "--wait", cwd=home)


def crash(folder):
    os.kill(int((folder / "pid").read_text()), signal.SIGUSR1)


def stop(folder):
    try:
        pid = int((folder / "pid").read_text())
    except FileNotFoundError:
        return
    (folder / "url").unlink(missing_ok=True)
    (folder / "pid").unlink()
    if is_alive(pid):
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + 30
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)  # the process is nobody's child here


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["start", "crash", "stop", "standby", "promote"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("primary", type=pathlib.Path, nargs="?")
    parser.add_argument("--while", dest="parent", type=int, default=os.getppid())
    parser.add_argument("--durable", action="store_true")
    arguments = parser.parse_args()
    folder = arguments.folder
    if arguments.action in ("crash", "promote"):
        return {"crash": crash, "promote": promote}[arguments.action](folder)
    stop(folder)
    if arguments.action == "start":
        start(folder, arguments.parent, arguments.durable)
    elif arguments.action == "standby":
        standby(folder, arguments.primary, arguments.parent)
    return None


if __name__ == "__main__":
    main()
