#!/usr/bin/env python3
"""Freezes a worker beyond its lease, lets another take over, and thaws it again.

usage: freeze.py PROGRAMS [--points a,b]

The late worker must be told that it is late, must change nothing, and must go on with other jobs.
`handler` freezes it from outside while its handler runs; every other name is a fault point at
which it stops itself.
"""

import argparse
import concurrent.futures
import fcntl
import os
import pathlib
import signal
import sqlite3
import struct
import sys

from arena import Arena, Programs, Violation, check_store, kill

POINTS = ["handler", "claim.after", "begin.before", "begin.after", "step.effect.after",
          "commit.before"]
TRIES = 10
# A probe may only be asked once the frozen run's timeout and grace have passed.
FLAGS = ("--timeout", "1s", "--grace", "500ms")
TURN_TO_WRITE = 1  # the byte of the gate that a writer locks
F_OFD_GETLK = 36  # linux/fcntl.h
FLOCK = "hhqqi4x"
JOB = {"kind": "pay", "payload": {}, "lock": "account-1"}


def is_stopped(worker):
    """Whether each thread is: one that writes stops only after its system call."""
    try:
        stats = [thread.read_text() for thread in
                 pathlib.Path(f"/proc/{worker.pid}/task").glob("*/stat")]
    except FileNotFoundError:
        return False
    return bool(stats) and all(stat.rsplit(")", 1)[1].split()[0] == "T" for stat in stats)


def freeze_in_handler(arena):
    job = arena.enqueue([{"kind": "gate", "payload": {}, "key": "frozen"}])[0]
    late = arena.start_worker(*FLAGS)
    arena.wait_for(lambda: arena.ledger("enter"), "the handler has begun")
    kill(late, signal.SIGSTOP)
    arena.wait_for(lambda: is_stopped(late), "the worker stops in its handler")
    arena.open_gate()
    return job, late


def freeze_at(arena, point):
    job = arena.enqueue([{**JOB, "key": "frozen"}])[0]
    late = arena.start_worker(*FLAGS, SEKALI_FAULT_AT=f"{point}:1:stop")
    arena.wait_for(lambda: is_stopped(late), f"the worker stops at {point}")
    return job, late


class Frozen(Exception):
    """The worker stopped in the middle of a write, which no other process may get past."""


def require_writable(arena):
    with arena.database() as db:
        db.execute("pragma busy_timeout = 200")
        try:
            db.execute("begin immediate")
            db.execute("rollback")
        except sqlite3.OperationalError:
            raise Frozen from None
    # A writer has its turn a moment longer than SQLite's own lock. A place at the head of the line
    # keeps nobody out.
    with open(arena.folder / "store.db-gate", "rb") as gate:
        lock = struct.pack(FLOCK, fcntl.F_WRLCK, os.SEEK_SET, TURN_TO_WRITE, 1, 0)
        found = struct.unpack(FLOCK, fcntl.fcntl(gate, F_OFD_GETLK, lock))
        if found[0] != fcntl.F_UNLCK:
            raise Frozen


def thaw_and_use(arena, late):
    """The thawed worker, alone now, runs another job."""
    kill(late, signal.SIGCONT)
    job = arena.enqueue([{**JOB, "key": "next"}])[0]
    arena.wait_for(lambda: arena.states().get(job) == "succeeded", "the thawed worker works on")
    kill(late, signal.SIGTERM)
    if (status := arena.end_of(late)) != 0:
        raise Violation(f"the thawed worker ended with {status}; see {arena.folder}")
    return job


def scenario(programs, point):
    with Arena(programs) as arena:
        job, late = freeze_in_handler(arena) if point == "handler" else freeze_at(arena, point)
        require_writable(arena)
        heir = arena.start_worker(*FLAGS)
        arena.wait_for(
            lambda: heir.poll() is not None or arena.states().get(job) == "succeeded",
            "another has taken over")
        kill(heir, signal.SIGTERM)
        if (status := arena.end_of(heir)) != 0:
            raise Violation(f"the heir ended with {status}; see {arena.folder}")
        following = thaw_and_use(arena, late)
        check_store(arena, {job: "succeeded", following: "succeeded"}, exclusive=False)
        effects = sorted(key for _, key, _ in arena.effects())
        if effects != ["frozen", "next"]:
            raise Violation(f"effects are {effects}; see {arena.folder}")
        events = {event for event, in arena.rows("select event from sekali_v_events")}
        begun = point not in ("claim.after", "begin.before")
        if begun and not events & {"takeover", "lease_lost"}:
            raise Violation(f"nothing tells of the takeover, only {events}; see {arena.folder}")
        return sorted(events)


def attempt(programs, point):
    for _ in range(TRIES):
        try:
            return f"ok  {', '.join(scenario(programs, point))}"
        except Frozen:
            continue
        except Violation as violation:
            return f"VIOLATION {violation}"
    return f"VIOLATION it stopped in the middle of a write {TRIES} times"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs")
    parser.add_argument("--points", default=",".join(POINTS))
    options = parser.parse_args()
    programs = Programs(options.programs)
    points = options.points.split(",")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        results = dict(zip(points, pool.map(lambda point: attempt(programs, point), points)))
    for point, result in results.items():
        print(f"{point:18} {result}")
    return 1 if any(result.startswith("VIOLATION") for result in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
