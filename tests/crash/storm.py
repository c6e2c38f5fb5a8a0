#!/usr/bin/env python3
"""A kill storm: workers and the enqueuer are killed at random while they work.

usage: storm.py PROGRAMS [--kills N] [--jobs N] [--seed N]

Two kinds share the lock keys of a hundred accounts; three jobs of ten repeat the key of an earlier
one. Every acknowledged and every repeated job must come to its end, every key must take effect
once, no two handlers may hold one account at once, and the database must be sound.
"""

import argparse
import json
import random
import subprocess
import sys
import time
import uuid

from arena import Arena, Programs, Violation, check_store, kill

WORKERS = 3
BATCH = 100
DUPLICATES = 0.3
ACCOUNTS = 100


def make_jobs(count, rng):
    jobs = []
    for number in range(count):
        if jobs and rng.random() < DUPLICATES:
            job = dict(rng.choice(jobs))
        else:
            job = {"kind": rng.choice(["pay", "refund"]), "payload": {"number": number},
                   "key": f"order-{number}", "lock": f"account-{rng.randrange(ACCOUNTS)}"}
        jobs.append({**job, "id": str(uuid.UUID(int=rng.getrandbits(128), version=4))})
    return jobs


class Producer:
    """Enqueues batch after batch; one that was killed is enqueued again, with its ids."""

    def __init__(self, arena, jobs):
        self.arena = arena
        self.batches = [jobs[i : i + BATCH] for i in range(0, len(jobs), BATCH)]
        self.process = None

    def advance(self):
        if self.process is not None:
            status = self.process.poll()
            if status is None:
                return
            if status == 0:
                self.batches.pop(0)
            elif status > 0:
                raise Violation(f"enqueue ended with {status}")
        if not self.batches:
            self.process = None
            return
        lines = self.arena.folder / "batch.jsonl"
        lines.write_text("".join(json.dumps(job) + "\n" for job in self.batches[0]))
        self.process = subprocess.Popen(
            [self.arena.programs.path("sekali"), "enqueue", "--bulk", str(lines), "--json"],
            env=self.arena.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        self.arena.workers.append(self.process)


def storm(arena, jobs, kills, rng):
    """Kills until it has killed often enough and everything is stored."""
    flags = ("--concurrency", "4", "--max-crashes", "100")
    workers = [arena.start_worker(*flags) for _ in range(WORKERS)]
    producer = Producer(arena, jobs)
    deaths = 0
    producer.advance()
    while deaths < kills or producer.batches:
        time.sleep(rng.uniform(0.02, 0.12))  # the randomness of the storm, nothing is waited for
        if deaths < kills:
            victims = workers + ([producer.process] if producer.process else [])
            victim = rng.choice(victims)
            if victim.poll() is None:
                kill(victim)
                victim.wait()
                deaths += 1
        for place, worker in enumerate(workers):
            status = worker.poll()
            if status is None:
                continue
            if status >= 0:
                raise Violation(f"a worker ended by itself with {status}; see {arena.folder}")
            workers[place] = arena.start_worker(*flags)
        producer.advance()
    for worker in workers:
        kill(worker)
        worker.wait()


def check(arena, jobs):
    states = arena.states()
    lost = [job["id"] for job in jobs if states.get(job["id"]) not in ("succeeded", "duplicate")]
    if lost:
        raise Violation(f"{len(lost)} jobs are lost or not done: "
                        f"{[(i, states.get(i)) for i in lost[:5]]}; see {arena.folder}")
    keys = {(job["kind"], job["key"]) for job in jobs}
    effects = [(kind, key) for kind, key, _ in arena.effects()]
    if sorted(effects) != sorted(keys):
        raise Violation(f"{len(effects)} effects for {len(keys)} keys; see {arena.folder}")
    check_store(arena, {})
    calls = arena.ledger("call")
    charges = arena.ledger("charge")
    if len(charges) != len(keys):
        raise Violation(f"{len(charges)} charges for {len(keys)} keys; see {arena.folder}")
    return {"orders": len(keys), "enqueued": len(jobs), "effects": len(effects),
            "gateway_calls": len(calls), "gateway_charges": len(charges)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    rng = random.Random(options.seed)
    jobs = make_jobs(options.jobs, rng)
    begun = time.monotonic()
    try:
        with Arena(Programs(options.programs)) as arena:
            storm(arena, jobs, options.kills, rng)
            last = arena.start_worker("--drain", "--concurrency", "8", "--max-crashes", "100")
            arena.end_of(last, patience=600)
            figures = check(arena, jobs)
    except Violation as violation:
        print(f"VIOLATION {violation}")
        return 1
    print(json.dumps({**figures, "kills": options.kills, "lost": 0, "double_effects": 0,
                      "seconds": round(time.monotonic() - begun, 1)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
