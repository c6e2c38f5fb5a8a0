#!/usr/bin/env python3
"""No table is read as a whole while jobs are worked, whatever the planner believes about it.

usage: plans.py PROGRAMS [--rows N]

Every large table gets N rows; then workers run jobs with locks and effects, and the server's own
counters say how many rows were read by sequential scans. The planner knows nothing (the tables were
never analysed), or it believes what was true once: empty tables, or nothing but other jobs.
"""

import argparse
import json
import pathlib
import sys

from stage import PATIENCE_S, Stage, Violation

JOBS = 600
TABLES = ("jobs", "finished", "records", "attempts", "events", "locks", "steps")

# Many rows like one that is there, but for these columns.
FILL = {
    "jobs": "'seq', nextval('sekali.arrivals'), 'id', 'many-' || n, 'key', 'many-' || n, "
            "'state', n % 2, 'run_at', 1e15::bigint, 'kind', 'other'",
    "finished": "'seq', nextval('sekali.arrivals'), 'id', 'done-' || n, 'key', 'done-' || n",
    "records": "'key', 'done-' || n, 'job_id', 'done-' || n",
    "attempts": "'number', null, 'key', 'done-' || n, 'job_id', 'done-' || n",
    "events": "'number', null, 'key', 'done-' || n, 'job_id', 'done-' || n",
    "locks": "'name', 'many-' || n",
    "steps": "'key', 'done-' || n",
}
ONE_STEP = ("insert into sekali.steps select 1, 0, true, ns, kind, key, 'charge', '', '' "
            "from sekali.records limit 1")
ONE_EVENT = ("insert into sekali.events(at, epoch, ns, event, job_id, kind, key, worker, detail) "
             "select 1, 1, ns, 'takeover', job_id, kind, key, '', '' from sekali.records limit 1")
BELIEFS = ("nothing", "empty tables", "other jobs")


class Plans(Stage):
    def environment(self):
        return {**super().environment(), "FAULT_NOTES": "/dev/null"}

    def sql(self, statement):
        if self.rows(statement) is None:
            raise Violation(f"{statement}: it failed; see {self.folder}")

    def enqueue(self, kinds, count):
        lines = self.folder / "jobs.jsonl"
        payload = {"from": 1, "to": 2, "cents": 3}
        lines.write_text("".join(
            json.dumps({"kind": kinds[n % len(kinds)], "payload": payload,
                        "lock": f"account-{n % 7}"}) + "\n" for n in range(count)))
        self.run("sekali", "enqueue", "--bulk", str(lines))

    def work(self):
        worker = self.start("fault_worker", "--drain", "--concurrency", "16", "--log-level",
                            "warning")
        if worker.wait(PATIENCE_S) != 0:
            raise Violation(f"the worker ended with {worker.returncode}; see {self.folder}/log")

    def read_as_a_whole(self):
        return {name: (int(scans), int(rows)) for name, scans, rows in self.rows(
            "select relname, seq_scan, seq_tup_read from pg_stat_user_tables "
            "where schemaname = 'sekali'") if name in TABLES}


def prepare(stage):
    # Nobody but the test says when the planner learns.
    stage.sql("alter system set autovacuum = off")
    stage.sql("select pg_reload_conf()")
    stage.run("sekali", "migrate")
    stage.sql("create table effects(kind text, key text)")
    stage.sql("create table accounts(id bigint primary key, balance bigint not null)")
    stage.sql("insert into accounts select n, 0 from generate_series(0, 9) n")


def fill(stage, rows):
    for table in TABLES:
        generated = "overriding user value" if "number" in FILL[table] else ""
        stage.sql(f"insert into sekali.{table} {generated} "
                  f"select r.* from (select t from sekali.{table} t limit 1) o, "
                  f"generate_series(1, {rows}) n, "
                  f"lateral jsonb_populate_record(o.t, jsonb_build_object({FILL[table]})) r")


def play(belief, options):
    with Plans(options.programs, "plans") as stage:
        prepare(stage)
        if belief == "empty tables":
            stage.sql("analyze")
        stage.enqueue(["nothing", "transfer"], 10)
        stage.work()
        stage.enqueue(["other"], 1)
        stage.sql(ONE_STEP)
        stage.sql(ONE_EVENT)
        fill(stage, options.rows)
        if belief == "other jobs":
            stage.sql("analyze")
        before = stage.read_as_a_whole()
        stage.enqueue(["nothing", "transfer"], JOBS)
        stage.work()
        behind = stage.read_as_a_whole()
        done = stage.number("select count(*) from sekali.sekali_v_jobs "
                            "where state = 'succeeded' and id not like 'done-%'")
        if done != JOBS + 10:
            raise Violation(f"only {done} jobs are done; see {stage.folder}")
    wrong = {table: (behind[table][0] - before[table][0], behind[table][1] - before[table][1])
             for table in TABLES if behind[table] != before[table]}
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--rows", type=int, default=100_000, help="of each table")
    options = parser.parse_args()
    status = 0
    for belief in BELIEFS:
        try:
            if wrong := play(belief, options):
                raise Violation(f"read as a whole (scans, rows): {wrong}")
            print(f"the planner believes in {belief}: {options.rows:,} rows, "
                  f"no sequential scan of {', '.join(TABLES)}", flush=True)
        except Violation as violation:
            print(f"VIOLATION {belief}: {violation}", flush=True)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
