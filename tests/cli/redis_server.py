"""A private Redis on a unix socket, for the tests of commands that talk to one."""

import os
import shutil
import subprocess
import tempfile


def program():
    """Debian's redis-tools holds the server under another name, without its service."""
    for path in ("/usr/bin/redis-server", "/usr/bin/redis-check-rdb"):
        if os.access(path, os.X_OK):
            return path
    raise RuntimeError("there is no Redis here: scripts/install-deps test")


class RedisServer:
    def __init__(self, *options):
        self.folder = tempfile.mkdtemp(prefix="sekali-redis-")
        self.socket = os.path.join(self.folder, "redis.sock")
        self.url = "redis+unix:" + self.socket
        self.process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", self.socket, "--dir", self.folder,
             "--save", "", *options],
            executable=program(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        for line in self.process.stdout:
            if b"eady to accept connections" in line:
                break

    def stop(self):
        self.process.kill()
        self.process.communicate()
        shutil.rmtree(self.folder)

    def ask(self, *words):
        answer = subprocess.run(["redis-cli", "-s", self.socket, *words], capture_output=True,
                                check=True)
        return answer.stdout.decode().strip()
