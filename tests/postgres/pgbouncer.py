#!/usr/bin/env python3
"""A pgbouncer in transaction mode before the server of the tests.

  pgbouncer.py start FOLDER SERVER   SERVER is the folder of server.py; writes its URL to FOLDER/url
  pgbouncer.py stop FOLDER

It has fewer connections to the server than its clients have to it, so that transactions of one
client meet many sessions. It ends with the server's supervisor.
"""

import argparse
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from server import home_of, is_alive, unprivileged

CONFIG = """[databases]
postgres = host={server} user=sekali dbname=postgres pool_size=3
[pgbouncer]
listen_addr =
unix_socket_dir = {folder}
unix_socket_mode = 0777
auth_type = any
auth_file =
pool_mode = transaction
max_client_conn = 200
ignore_startup_parameters = extra_float_digits
log_connections = 0
log_disconnections = 0
"""


def start(folder, server_folder):
    folder.mkdir(parents=True, exist_ok=True)
    server = home_of(server_folder)
    home = server / "pooler"
    home.mkdir(exist_ok=True)
    prefix, user = unprivileged()
    if user:
        os.chown(home, user.pw_uid, user.pw_gid)
    config = home / "pgbouncer.ini"
    config.write_text(CONFIG.format(server=server, folder=home))
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen([*prefix, shutil.which("pgbouncer"), "-q", config],
                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=home,
                                   start_new_session=True)
    (folder / "pid").write_text(str(process.pid))
    deadline = time.monotonic() + 30
    while not (home / ".s.PGSQL.6432").exists():
        if process.poll() is not None or time.monotonic() > deadline:
            sys.exit(f"pgbouncer: it did not start, see {folder / 'log'}")
        time.sleep(0.02)  # it offers no event for it
    (folder / "url").write_text(f"postgres://sekali@/postgres?host={home}&port=6432")


def stop(folder):
    try:
        pid = int((folder / "pid").read_text())
    except FileNotFoundError:
        return
    (folder / "url").unlink(missing_ok=True)
    (folder / "pid").unlink()
    if is_alive(pid):
        os.kill(pid, signal.SIGTERM)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["start", "stop"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("server", type=pathlib.Path, nargs="?")
    arguments = parser.parse_args()
    stop(arguments.folder)
    if arguments.action == "start":
        start(arguments.folder, arguments.server)


if __name__ == "__main__":
    main()
