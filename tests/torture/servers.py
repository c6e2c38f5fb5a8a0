"""The servers and stores of a torture run, reached directly by the judge and through relays by the
others."""

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys

from neighbours import TESTS, Schema, redis_program
from relay import Relay

LINKS = ("library", "shell", "producers")  # who has a way to a server of its own
DISK_KB = 4 << 20


class SqliteStore:
    """A database on a small file system of its own, where somebody may mount one."""

    name = "sqlite"
    relay = None

    def __init__(self, folder, _log):
        self.disk = folder / "disk"
        self.disk.mkdir()
        self.is_mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={DISK_KB}k", "torture", self.disk],
            stderr=subprocess.DEVNULL, check=False).returncode == 0
        self.path = self.disk / "store.db"

    def url(self, _link=None):
        return f"sqlite:{self.path}"

    def resize(self, kilobytes):
        subprocess.run(["mount", "-o", f"remount,size={kilobytes}k", self.disk], check=True)

    def fill(self, room_kb):
        room = os.statvfs(self.disk)
        used = (room.f_blocks - room.f_bfree) * room.f_frsize // 1024
        with contextlib.suppress(subprocess.CalledProcessError):  # it grew meanwhile
            self.resize(used + room_kb)

    def empty(self):
        self.resize(DISK_KB)

    @contextlib.contextmanager
    def database(self):
        db = sqlite3.connect(self.path, timeout=30, isolation_level=None)
        try:
            yield db
        finally:
            db.close()

    def stop(self, keep):
        if not self.is_mounted:
            return
        if keep:
            shutil.copytree(self.disk, self.disk.with_name("kept-disk"))
        subprocess.run(["umount", self.disk], check=True)


class PostgresStore:
    name = "postgres"

    def __init__(self, folder, log):
        self.log = log
        self.folder = folder / "postgres"
        self.command("start", "--while", str(os.getpid()), "--durable")
        self.schema = Schema(self.folder)
        socket_folder = self.schema.server.split("host=")[1]
        self.relay = Relay(f"{socket_folder}/.s.PGSQL.5432", LINKS, log)

    def command(self, action, *words):
        subprocess.run([sys.executable, TESTS / "postgres" / "server.py", action, self.folder,
                        *words], check=True, stdout=self.log, stderr=self.log)

    def url(self, link=None):
        if link is None:
            return self.schema.url
        port = self.relay.ports[link]
        return self.schema.url_on(f"postgres://sekali@127.0.0.1:{port}/postgres?sslmode=disable")

    def crash(self):
        self.command("crash")

    def revive(self):
        """It comes back by itself."""

    @contextlib.contextmanager
    def database(self):
        yield self.schema

    def stop(self, keep):
        if keep:
            with open(self.folder / "dump.sql", "wb") as dump:
                subprocess.run(["pg_dump", self.schema.server, "-n", self.schema.name],
                               stdout=dump, stderr=self.log, check=False)
        self.relay.stop()
        self.command("stop")


class RedisLocks:
    """A lock server, which may forget: the store's fence has to make that harmless."""

    name = "redis"

    def __init__(self, folder, log):
        self.log = log
        self.folder = folder / "redis"
        self.folder.mkdir()
        self.socket = str(self.folder / "socket")
        self.revive()
        self.relay = Relay(self.socket, LINKS, log)

    def url(self, link=None):
        if link is None:
            return f"redis+unix:{self.socket}"
        return f"redis://127.0.0.1:{self.relay.ports[link]}"

    def revive(self):
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "bash", "-c", 'exec -a redis-server "$0" "$@"',
             redis_program(), "--port", "0", "--unixsocket", self.socket, "--dir",
             str(self.folder), "--save", "", "--appendonly", "yes"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log)
        for line in self.process.stdout:
            if b"eady to accept connections" in line:
                return
        raise RuntimeError("Redis did not start")

    def crash(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()

    def lose_everything(self):
        shutil.rmtree(self.folder / "appendonlydir", ignore_errors=True)

    def flush(self):
        subprocess.run(["redis-cli", "-s", self.socket, "FLUSHALL"], check=True,
                       stdout=subprocess.DEVNULL)

    def stop(self, _keep):
        self.relay.stop()
        self.crash()
