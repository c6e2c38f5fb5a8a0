"""Does with redis-py's locks what the lines of its standard input say; answers each with one
line. usage: redis_py_peer.py PORT
"""

import sys
import time

import redis
from redis.exceptions import LockNotOwnedError

server = redis.Redis(port=int(sys.argv[1]))
locks = {}


def told(word, more="", at=None):
    print(word, at or time.monotonic_ns(), more, sep="\t", flush=True)


for line in sys.stdin:
    words = line.rstrip("\n").split("\t")
    if words[0] == "version":
        told("version", "redis-py " + redis.__version__)
    elif words[0] == "lock":
        lock = server.lock(words[1], timeout=int(words[3]) / 1000)
        wait = int(words[2])
        if lock.acquire(blocking=wait != 0, blocking_timeout=None if wait < 0 else wait / 1000):
            locks[words[1]] = lock
            told("acquired", lock.local.token.decode())
        else:
            told("busy")
    elif words[0] == "unlock":
        before = time.monotonic_ns()
        try:
            locks.pop(words[1]).release()
            told("released", at=before)
        except LockNotOwnedError:
            told("lost", at=before)
    else:
        told("unknown", words[0])
