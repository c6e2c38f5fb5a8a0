#!/usr/bin/env python3
"""64 handlers in four processes, all of whose effects are on the same few rows.

usage: crowd.py PROGRAMS [--seconds N] [--isolation LEVEL] [--seed N]

Each job moves cents between two of the rows, in an order of its own, by ctx.commit; a session that
is not sekali's locks all of them backwards again and again. No deadlock may surface: every job
succeeds in its first attempt, in one run, and takes effect once, under every default of isolation.
Prints what was done, and how many deadlocks the server found meanwhile.
"""

import argparse
import collections
import contextlib
import json
import pathlib
import random
import subprocess
import sys
import time

from stage import PATIENCE_S, Stage, Violation

ACCOUNTS = 50
BATCH = 2000
LEVELS = ("read committed", "repeatable read", "serializable")
STRANGER = ("do $$ begin for n in reverse {last}..0 loop "
            "update accounts set balance = balance where id = n; perform pg_sleep(0.001); "
            "end loop; end $$; select pg_sleep(0.5);\n")


class Crowd(Stage):
    def environment(self):
        return {**super().environment(), "FAULT_NOTES": "/dev/null"}

    def prepare(self, level):
        self.rows(f"alter database postgres set default_transaction_isolation = '{level}'")
        self.run("sekali", "migrate")
        self.rows("create table effects(kind text, key text)")
        self.rows("create table accounts(id bigint primary key, balance bigint not null)")
        self.rows(f"insert into accounts select n, 0 from generate_series(0, {ACCOUNTS - 1}) n")

    def start_worker(self, *flags):
        return self.start("fault_worker", "--processes", "4", "--concurrency", "16",
                          "--log-level", "warning", *flags)

    @contextlib.contextmanager
    def stranger(self):
        """The session that locks backwards; it may lose a deadlock, and goes on."""
        script = self.folder / "stranger.sql"
        script.write_text(STRANGER.format(last=ACCOUNTS - 1) * 100_000)
        with subprocess.Popen(["psql", "-Xq", self.url, "-f", script], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as session:
            try:
                yield
            finally:
                session.terminate()

    def live(self):
        return self.number("select count(*) from sekali.jobs")

    def deadlocks(self):
        return self.number("select deadlocks from pg_stat_database "
                           "where datname = current_database()")


def make_batch(rng, expected):
    lines = []
    for _ in range(BATCH):
        source, target = rng.sample(range(ACCOUNTS), 2)
        cents = rng.randrange(1, 10_000)
        expected[source] -= cents
        expected[target] += cents
        payload = {"from": source, "to": target, "cents": cents}
        lines.append(json.dumps({"kind": "transfer", "payload": payload}) + "\n")
    return lines


def wait_for(condition):
    until = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > until:
            raise Violation("it does not come to an end")
        time.sleep(0.05)  # between two looks; the database offers no event for it


def work(stage, rng, seconds_left):
    """Feeds the workers until the time is over and all is done; what was asked for."""
    expected = collections.Counter()
    jobs = 0
    worker = stage.start_worker()
    until = time.monotonic() + seconds_left
    lines = stage.folder / "jobs.jsonl"
    while time.monotonic() < until:
        lines.write_text("".join(make_batch(rng, expected)))
        stage.run("sekali", "enqueue", "--bulk", str(lines))
        jobs += BATCH
        wait_for(lambda: stage.live() < BATCH // 2)
    wait_for(lambda: stage.live() == 0)
    worker.terminate()
    if worker.wait(PATIENCE_S) != 0:
        raise Violation(f"the workers ended with {worker.returncode}; see {stage.folder}/log")
    return jobs, expected


def check(stage, jobs, expected):
    states = {state: int(count) for state, count in
              stage.rows("select state, count(*) from sekali.sekali_v_jobs group by state")}
    balances = {int(account): int(cents) for account, cents in
                stage.rows("select id, balance from accounts")}
    said = {
        "a job is lost or not done": states != {"succeeded": jobs},
        "the balances are not what was moved":
            balances != {account: expected[account] for account in range(ACCOUNTS)},
        "an effect is missing": stage.number("select count(*) from effects") != jobs,
        "an effect was written twice":
            stage.number("select count(distinct key) from effects") != jobs,
        "an attempt was used up":
            stage.number("select count(*) from sekali.sekali_v_jobs where attempts <> 1") != 0,
        "a job ran again":
            stage.number("select count(*) from sekali.sekali_v_attempts") != jobs,
        "a run failed": stage.number("select count(*) from sekali.sekali_v_attempts "
                                     "where outcome is distinct from 'succeeded'") != 0,
        "a deadlock is in the log": "deadlock" in (stage.folder / "log").read_text(),
    }
    wrong = [violation for violation, is_so in said.items() if is_so]
    if wrong:
        failed = stage.rows("select outcome, error, count(*) from sekali.sekali_v_attempts "
                            "where outcome is distinct from 'succeeded' group by 1, 2")
        raise Violation(f"{'; '.join(wrong)}: {states}, {failed[:5]}; see {stage.folder}")


def play(level, options, rng):
    begun = time.monotonic()
    with Crowd(options.programs, "crowd") as stage:
        stage.prepare(level)
        with stage.stranger():
            jobs, expected = work(stage, rng, options.seconds)
        check(stage, jobs, expected)
        deadlocks = stage.deadlocks()
        if deadlocks == 0:
            raise Violation("there was no deadlock, so nothing was shown")
    return {"isolation": level, "jobs": jobs, "lost": 0, "double": 0, "surfaced": 0,
            "deadlocks_retried": deadlocks, "seconds": round(time.monotonic() - begun, 1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=200, help="for each isolation level")
    parser.add_argument("--isolation", choices=LEVELS)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    rng = random.Random(options.seed)
    try:
        for level in [options.isolation] if options.isolation else LEVELS:
            print(json.dumps(play(level, options, rng)), flush=True)
    except Violation as violation:
        print(f"VIOLATION {violation}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
