"""Programs that take locks by the lines they are sent, each through another library."""

import os
import queue
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PATIENCE_S = 60


class Answer:
    def __init__(self, line):
        self.word, at, *self.more = line.rstrip("\n").split("\t")
        # By CLOCK_MONOTONIC, which all peers share: when it had a lock, or began to give it back.
        self.at = int(at) / 1e9


class Peer:
    """A process with one answer for each line."""

    def __init__(self, argv):
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        self.answers = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.answers.put(line)
        self.answers.put(None)

    def send(self, *words):
        self.process.stdin.write("\t".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def receive(self):
        line = self.answers.get(timeout=PATIENCE_S)
        if line is None:
            raise RuntimeError("the peer ended")
        return Answer(line)

    def ask(self, *words):
        self.send(*words)
        return self.receive()

    def quiet(self):
        return self.answers.empty()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        self.kill()
        self.process.stdin.close()
        self.process.stdout.close()


def sekali(server, profile):
    return Peer([os.environ["LOCK_PEER"], f"redis://127.0.0.1:{server.port}", profile])


def redisson(server):
    return Peer(["java", "-cp", os.environ["REDISSON_CLASSPATH"], "RedissonPeer",
                 f"redis://127.0.0.1:{server.port}"])


def laravel(server):
    return Peer(["php", os.path.join(HERE, "laravel_peer.php"), "127.0.0.1", str(server.port),
                 "laravel_cache"])


def redis_py(server):
    return Peer([sys.executable, os.path.join(HERE, "redis_py_peer.py"), str(server.port)])


class RedisServer:
    """A private server on a free port of the loopback address."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="sekali-redis-")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.folder,
             "--save", ""],
            executable=self.program(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        for line in self.process.stdout:
            if b"eady to accept connections" in line:
                break

    @staticmethod
    def program():
        """Debian's redis-tools holds the server under another name, without its service."""
        for path in ("/usr/bin/redis-server", "/usr/bin/redis-check-rdb"):
            if os.access(path, os.X_OK):
                return path
        raise RuntimeError("there is no Redis here: scripts/install-deps test")

    def ask(self, *words):
        answer = subprocess.run(["redis-cli", "-p", str(self.port), *words], capture_output=True,
                                check=True)
        return answer.stdout.decode().strip()

    def wait_for_subscribers(self, channel, count=1):
        deadline = time.monotonic() + PATIENCE_S
        while int(self.ask("PUBSUB", "NUMSUB", channel).split()[-1]) < count:
            if time.monotonic() > deadline:
                raise RuntimeError("nobody subscribed to " + channel)

    def stop(self):
        self.process.kill()
        self.process.communicate()
        shutil.rmtree(self.folder)
