#!/usr/bin/env python3
"""Tortures real workers, producers and servers, and judges what became of the jobs.

usage: torture.py PROGRAMS [--pairing NAME]… [--minutes N | --seconds N] [--seed N] [--rate N]
                  [--report FILE] [--keep]

For each pairing of backends a folder of its own gets servers, an effect server that is never
killed, two fleets of library workers, one of commands and HTTP handlers, and producers. By the seed
processes are killed, stopped and continued, connections are cut and bent, servers crash, and the
disk fills up. Then everything heals, and all that was accepted must come to its end. A run that
finds something wrong prints its seed and keeps its folder.
"""

import argparse
import concurrent.futures
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import uuid

from neighbours import Violation
from fleet import MARK, Fleet
from outside import OutsideProcess
from pairings import PAIRINGS, Backends
from servers import LINKS
from faults import Faults
from judge import Judge, Ledger
from producers import ACCOUNTS, Producers
import report

DRAINED_IN_S = 300.0
SETTLED_S = 2.5  # beyond the grace
LOOK_EVERY_S = 0.02
SAY_EVERY_S = 60.0
TABLES = [
    "create table effects(kind text, key text, job text, epoch bigint, account text, cents bigint,"
    " lock_name text, fence bigint, at bigint)",
    "create table accounts(id text primary key, balance bigint)",
]
BUGS = ("this is a bug in sekali", "killed by signal 6", "killed by signal 11")
LIVE = "select state, count(*) from sekali_v_jobs where state not in " \
       "('succeeded', 'duplicate', 'dead', 'cancelled') group by state"
NOT_HELD = "select count(*) from sekali_v_jobs j where state not in " \
           "('succeeded', 'duplicate', 'dead', 'cancelled', 'held') and not exists (select 1 " \
           "from sekali_v_jobs h where h.state = 'held' and h.kind = j.kind and h.key = j.key)"
enough = threading.Event()  # whoever interrupts wants to see the verdict


def say(line):
    """In one write, because the pairings run side by side."""
    print(line + "\n", end="", flush=True)


class Run:
    """One pairing in a folder of its own."""

    def __init__(self, options, pairing, seed):
        self.options, self.pairing, self.seed = options, pairing, seed
        self.programs = pathlib.Path(options.programs).resolve()
        self.name = uuid.uuid4().hex[:12]
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"sekali-torture-{pairing}-"))
        self.folder.chmod(0o755)
        self.log = open(self.folder / "log", "ab")
        self.faults_log = open(self.folder / "faults", "w")
        self.violations = []
        self.figures = {}
        self.skipped = []
        self.stormed = 0.0
        self.began = time.monotonic()

    def environment(self, link=None):
        return {"PATH": os.environ["PATH"], "HOME": str(self.folder), MARK: self.name,
                **self.backends.environment(link)}

    def tell_fault(self, text):
        print(f"{time.monotonic() - self.began:9.3f} {text}", file=self.faults_log, flush=True)

    def say(self, text):
        say(f"{self.pairing}: {text}")

    def prepare(self):
        self.backends = Backends(self.pairing, self.folder, self.log)
        self.outside = OutsideProcess(self.folder, self.seed, self.log)
        subprocess.run([self.programs / "sekali", "migrate"], env=self.environment(), check=True,
                       stdout=self.log, stderr=self.log)
        with self.backends.store.database() as db:
            for statement in TABLES:
                db.execute(statement)
            for number in range(ACCOUNTS):
                db.execute(f"insert into accounts values ('a{number}', 0)")
        self.fleet = Fleet(self.name, self.programs, self.environment, self.outside, self.log)
        self.producers = Producers(str(self.programs / "sekali"), self.environment("producers"),
                                   self.folder, self.options.rate, random.Random(self.seed))
        self.faults = Faults(self.fleet, self.producers, self.backends, LINKS,
                             random.Random(self.seed + 1), self.tell_fault)
        if not getattr(self.backends.store, "is_mounted", True):
            self.skipped.append("SKIPPED disk full: nobody but root may mount a small file system")

    def storm(self, seconds):
        begun = time.monotonic()
        until = begun + seconds
        say_at = time.monotonic() + SAY_EVERY_S
        while (now := time.monotonic()) < until and not enough.is_set():
            self.fleet.advance(now)
            self.producers.advance(now)
            self.faults.advance(now)
            if now >= say_at:
                say_at += SAY_EVERY_S
                self.say(f"{now - self.began:.0f} s, {len(self.producers.jobs)} jobs asked for, "
                         f"{sum(self.faults.counts.values())} faults")
            time.sleep(LOOK_EVERY_S)  # the pace of the supervisor; nothing is waited for
        self.stormed = now - begun

    def drain(self):
        """Everything is whole again: what was accepted has to come to its end."""
        self.faults.heal()
        self.producers.finish()
        begun = last_left = time.monotonic()
        while True:
            self.fleet.advance(time.monotonic())
            left, states = self.left()
            now = time.monotonic()
            if left == 0 and now > last_left + SETTLED_S:
                # What is held may still be committed by the very run that nobody knew of.
                break
            last_left = now if left else last_left
            if now > begun + DRAINED_IN_S:
                self.violations.append(f"{left} jobs do not come to their end: {states}")
                break
            time.sleep(0.2)  # between two looks: the servers offer no common event
        self.figures["drained in s"] = round(last_left - begun, 1)

    def left(self):
        """How many jobs have not come to their end, and what they do."""
        try:
            with self.backends.store.database() as db:
                left = int(db.execute(NOT_HELD).fetchone()[0])
                return left, db.execute(LIVE).fetchall() if left else []
        except Violation as violation:  # it may still recover
            return -1, str(violation)

    def judge(self):
        strange = [status for status in self.fleet.ended if status < 0]
        if strange:
            self.violations.append(f"workers ended by signals that nobody sent: {strange}")
        with open(self.folder / "log", errors="replace") as log:
            bugs = {line.strip() for line in log if any(word in line for word in BUGS)}
        self.violations += [f"the log says: {line}" for line in sorted(bugs)[:3]]
        with self.backends.store.database() as db:
            judge = Judge(db, self.producers, Ledger(self.outside.ledger))
            self.violations += judge.run()
        self.figures.update(judge.figures)
        self.figures["restarts"] = self.fleet.restarts
        self.figures["starts that were refused"] = sum(s > 0 for s in self.fleet.ended)

    def whole(self, seconds):
        self.prepare()
        try:
            self.storm(seconds)
            self.drain()
            self.violations += self.fleet.stop()
            self.judge()
        except Exception as error:  # what the others have found is to be told all the same
            traceback.print_exc()
            self.violations.append(f"the torture itself failed: {error!r}")
        finally:
            self.faults.heal()
            self.fleet.end_all()
            self.outside.stop()
            self.backends.stop(keep=bool(self.violations) or self.options.keep)
            self.log.close()
            self.faults_log.close()
        if self.violations or self.options.keep:
            self.say(f"seed {self.seed}, see {self.folder}")
        else:
            shutil.rmtree(self.folder)
        return self.result()

    def result(self):
        command = (f"tests/torture/torture.py {self.options.programs} --pairing {self.pairing} "
                   f"--seconds {self.stormed:.0f} --rate {self.options.rate:g} --seed {self.seed}")
        return {"pairing": self.pairing, "seed": self.seed, "seconds": self.stormed,
                "command": command, "figures": self.figures, "faults": dict(self.faults.counts),
                "skipped": self.skipped, "violations": self.violations}


def torture(options, pairing, seed, seconds):
    say(f"{pairing}: seed {seed}")
    result = Run(options, pairing, seed).whole(seconds)
    for line in result["skipped"] + [f"VIOLATION {said}" for said in result["violations"]]:
        say(f"{pairing}: {line}")
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs")
    parser.add_argument("--pairing", action="append", choices=[*PAIRINGS, "all"])
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    parser.add_argument("--rate", type=float, default=10, help="jobs a second for each pairing")
    parser.add_argument("--report", type=pathlib.Path)
    parser.add_argument("--keep", action="store_true", help="keeps every folder")
    options = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: enough.set())
    seconds = options.minutes * 60 if options.minutes else options.seconds
    wanted = options.pairing or ["all"]
    pairings = list(PAIRINGS) if "all" in wanted else wanted
    with concurrent.futures.ThreadPoolExecutor(len(pairings)) as pool:
        results = list(pool.map(
            lambda pairing: torture(options, pairing, options.seed, seconds), pairings))
    print(report.page(results))
    if options.report:
        report.write(options.report, results)
    return 1 if any(result["violations"] for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
