#!/usr/bin/env python3
"""The proof for effects in sekali's commit (L4) on PostgreSQL.

usage: proof.py PROGRAMS [--jobs N] [--kills N] [--crashes N] [--workers N] [--seed N]

Payments and refunds on shared accounts, three of ten repeating an earlier one, are worked by some
processes of `examples/payments`, of which one after the other is killed; the server, with fsync on,
is ended at once and started again meanwhile. At the end the payments table, the balances and the
gateway's ledger, which all were written by different processes, must agree to the cent, every
payment must stand there once, and every job must have come to its end.
"""

import argparse
import collections
import json
import random
import signal
import sys
import time

from stage import PATIENCE_S, Stage, Violation

DUPLICATES = 0.3
REFUNDS = 0.3
ACCOUNTS = 40

# What the closing note asks: by account, by payment, by balance, and what is left.
QUESTIONS = {
    "booked": "select account, sum(cents), count(*) from payments group by account",
    "twice": "select kind, order_id from payments group by kind, order_id having count(*) > 1",
    "balances": "select id, balance from accounts",
    "states": "select state, count(*) from sekali.sekali_v_jobs group by state",
    "successes": "select kind, key from sekali.sekali_v_attempts where outcome = 'succeeded' "
                 "group by namespace, kind, key having count(*) > 1",
}


def make_jobs(count, rng):
    fresh = []
    jobs = []
    for number in range(count):
        if fresh and rng.random() < DUPLICATES:
            jobs.append(rng.choice(fresh))
            continue
        account = f"a{rng.randrange(ACCOUNTS)}"
        kind = "refund" if rng.random() < REFUNDS else "charge"
        payload = {"order_id": f"o{number}", "account": account, "cents": rng.randrange(1, 10_000)}
        key = f"{'payment' if kind == 'charge' else 'refund'}:o{number}"
        fresh.append({"kind": f"payment.{kind}", "payload": payload, "key": key,
                      "lock": f"account:{account}"})
        jobs.append(fresh[-1])
    return jobs, fresh


class Proof(Stage):
    """A server, a gateway and workers."""

    def environment(self):
        return {**super().environment(), "PAYMENTS_GATEWAY": str(self.folder / "gateway.sock")}

    def start_worker(self, *flags):
        # On PostgreSQL nobody proves a death: the gateway is asked about a run that died once its
        # time and grace are over.
        return self.start("payments", "--concurrency", "16", "--lease", "1s", "--lock-ttl", "1s",
                          "--timeout", "2s", "--grace", "1s", *flags)

    def done(self):
        return self.number("select count(*) from payments")


def prepare(stage, jobs):
    stage.run("sekali", "migrate")
    stage.run("payments", "balance", "nobody")  # makes the tables
    stage.rows(f"insert into accounts select 'a' || n, 0 from generate_series(0, {ACCOUNTS - 1}) n")
    stage.start("payments", "gateway", str(stage.folder / "gateway.sock"),
                str(stage.folder / "ledger"))
    lines = stage.folder / "jobs.jsonl"
    lines.write_text("".join(json.dumps(job) + "\n" for job in jobs))
    stage.run("sekali", "enqueue", "--bulk", str(lines))


def storm(stage, options, fresh, rng):
    """Kills and crashes are spread over the work, by what has been booked."""
    marks = [(len(fresh) * (i + 1) // (options.kills + 1), "kill") for i in range(options.kills)]
    marks += [(len(fresh) * (i + 1) // (options.crashes + 1), "crash")
              for i in range(options.crashes)]
    workers = [stage.start_worker() for _ in range(options.workers)]
    until = time.monotonic() + PATIENCE_S
    for mark, what in sorted(marks):
        while (done := stage.done()) is None or done < mark:
            if time.monotonic() > until:
                raise Violation(f"nothing goes on; see {stage.folder}")
            time.sleep(0.02)  # between two looks; the database offers no event for it
        if what == "crash":
            stage.server("crash")
            continue
        place = rng.randrange(len(workers))
        workers[place].kill()
        if workers[place].wait() >= 0:
            raise Violation(f"a worker had ended by itself; see {stage.folder}")
        workers[place] = stage.start_worker()
    for worker in workers:
        worker.terminate()
    for worker in workers:
        # One that was started just now may not know the signal yet.
        if worker.wait(PATIENCE_S) not in (0, -signal.SIGTERM):
            raise Violation(f"a worker ended with {worker.returncode}; see {stage.folder}")
    if stage.start_worker("--drain").wait(PATIENCE_S) != 0:
        raise Violation(f"the last worker failed; see {stage.folder}")


def moved_by_account(ledger):
    sums = collections.Counter()
    keys = collections.Counter()
    calls = 0
    for line in ledger.read_text().splitlines():
        verb, key, *rest = line.split()
        calls += verb == "call"
        if verb == "move":
            keys[key] += 1
            sums[rest[0]] += int(rest[1])
    return sums, keys, calls


def check(stage, jobs, fresh):
    sums, keys, calls = moved_by_account(stage.folder / "ledger")
    expected = collections.Counter()
    for job in fresh:
        cents = job["payload"]["cents"]
        expected[job["payload"]["account"]] += cents if job["kind"] == "payment.charge" else -cents
    answers = {name: stage.rows(question) for name, question in QUESTIONS.items()}
    booked = {account: int(cents) for account, cents, _ in answers["booked"]}
    balances = {account: -int(cents) for account, cents in answers["balances"] if int(cents) != 0}
    states = {state: int(count) for state, count in answers["states"]}
    said = {
        "the ledger moved other sums than were asked for": dict(expected) != dict(sums),
        "a movement stands twice in the ledger": max(keys.values()) > 1,
        "the payments table and the ledger differ": booked != dict(sums),
        "the balances and the payments table differ":
            balances != {account: cents for account, cents in booked.items() if cents != 0},
        "a payment stands there twice": bool(answers["twice"]),
        "a payment is missing": sum(int(row[2]) for row in answers["booked"]) != len(fresh),
        "a key has two successes": bool(answers["successes"]),
        "a job is lost or not done": states != {"succeeded": len(fresh),
                                                "duplicate": len(jobs) - len(fresh)},
    }
    wrong = [violation for violation, is_so in said.items() if is_so]
    if wrong:
        raise Violation(f"{'; '.join(wrong)}: {states}; see {stage.folder}")
    return {"jobs": len(jobs), "payments": len(fresh), "cents": sum(booked.values()),
            "gateway_calls": calls, "gateway_moves": len(keys), **states}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs")
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--crashes", type=int, default=2)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    rng = random.Random(options.seed)
    jobs, fresh = make_jobs(options.jobs, rng)
    begun = time.monotonic()
    try:
        with Proof(options.programs, "proof") as stage:
            prepare(stage, jobs)
            storm(stage, options, fresh, rng)
            figures = check(stage, jobs, fresh)
    except Violation as violation:
        print(f"VIOLATION {violation}")
        return 1
    print(json.dumps({**figures, "kills": options.kills, "server_crashes": options.crashes,
                      "seconds": round(time.monotonic() - begun, 1)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
