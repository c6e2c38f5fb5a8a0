#!/usr/bin/env python3
"""Kills a real worker process at every fault point, at its 1st, 2nd and 3rd hit, and restarts it.

usage: sweep.py PROGRAMS [--exec] [--points a,b] [--hits 1,2,3]

After each death a clean worker drains the store; then every job must have come to its end, every
key must have taken effect once, and no row may be left half-way. Prints a table of points and hits
and ends with 1 when anything was wrong or a point was never reached.
"""

import argparse
import concurrent.futures
import os
import pathlib
import signal
import sys
import uuid

from arena import Arena, Programs, Violation, check_store, kill

EXPECTED = {"pay": "succeeded", "flaky": "succeeded", "snooze": "succeeded", "slow": "succeeded",
            "gate": "succeeded", "poison": "dead", "unwanted": "cancelled"}
COUNTS = {"pay": 4, "flaky": 3, "snooze": 3, "slow": 1, "poison": 3, "unwanted": 3}
PRODUCER_POINTS = {"enqueue.before", "enqueue.after"}
STOP_POINTS = {"release.before", "release.after"}
NOT_BY_EXEC = PRODUCER_POINTS | STOP_POINTS | {"commit.inside"}
HERE = pathlib.Path(__file__).resolve().parent
KILLED = -signal.SIGKILL


def jobs_of(counts):
    jobs = []
    for kind, count in counts.items():
        for number in range(count):
            job = {"kind": kind, "payload": {}, "key": f"{kind}-{number}"}
            if kind == "pay":
                job["lock"] = f"account-{number % 2}"
            jobs.append(job)
    return jobs


def store_jobs(arena, counts):
    jobs = jobs_of(counts)
    return {job_id: EXPECTED[job["kind"]] for job_id, job in zip(arena.enqueue(jobs), jobs)}


def check_calls(arena):
    """A call that died before it charged may come again, one whose charge is known may not."""
    charged = set()
    for what, key, _ in arena.ledger_lines():
        if what in ("call", "charge") and key in charged:
            raise Violation(f"a step ran twice although its probe knew; see {arena.folder}")
        if what == "charge":
            charged.add(key)


def die_working(arena, fault):
    expected = store_jobs(arena, COUNTS)
    worker = arena.start_worker("--drain", "--concurrency", "4", **fault)
    died = arena.end_of(worker) == KILLED
    arena.recover_only()
    arena.drain()
    check_store(arena, expected)
    wanted = sorted(job["key"] for job in jobs_of(COUNTS) if EXPECTED[job["kind"]] == "succeeded")
    if sorted(key for _, key, _ in arena.effects()) != wanted:
        raise Violation(f"effects are missing; see {arena.folder}")
    check_calls(arena)
    return died


def die_executing(arena, fault):
    """As above with commands as handlers; the fault of a step strikes `sekali step` itself."""
    counts = {kind: count for kind, count in COUNTS.items() if kind != "slow"} | {"slow": 1}
    expected = store_jobs(arena, counts)
    point, hit = fault["SEKALI_FAULT_AT"].split(":")
    if point.startswith("step."):
        (arena.folder / "step-fault").write_text(point)
        fault = {}
    handler = f"{HERE / 'exec_handler.sh'} {arena.programs.path('sekali')}"
    flags = [flag for kind in counts for flag in ("--exec", f"{kind}={handler}")]
    flags += ["--effects", "pay=steps", "--on-unknown", "pay=probe"]
    worker = arena.start_worker("--drain", "--concurrency", "4", *flags, program="sekali",
                                words=("work",), **fault)
    died = arena.end_of(worker) == KILLED
    if point.startswith("step."):
        died = not (arena.folder / "step-fault").exists()
    arena.end_of(arena.start_worker("--drain", *flags, program="sekali", words=("work",)))
    check_store(arena, expected)
    if len(set(arena.ledger("charge"))) != counts["pay"]:
        raise Violation(f"charges are missing; see {arena.folder}")
    check_calls(arena)
    return died


def die_stopping(arena, fault):
    """A worker is asked to stop while handlers run that do not end: it hands them back."""
    expected = store_jobs(arena, {"gate": 4})
    worker = arena.start_worker("--concurrency", "4", "--grace", "2s", **fault)
    arena.wait_for(lambda: len(arena.ledger("enter")) == 4 or worker.poll() is not None,
                   "four handlers have begun")
    kill(worker, signal.SIGTERM)
    died = arena.end_of(worker) == KILLED
    arena.recover_only()
    arena.open_gate()
    arena.drain()
    check_store(arena, expected)
    return died


def die_enqueuing(arena, fault):
    ids = [str(uuid.uuid4()) for _ in range(3)]
    words = (arena.url, "gate", *ids)
    first = arena.run("crash_producer", *words, check=False, **fault)
    again = arena.run("crash_producer", *words)
    if again.stdout.split() != ids:
        raise Violation(f"a repeated enqueue got other ids; see {arena.folder}")
    if sorted(arena.states()) != sorted(ids):
        raise Violation(f"a job is missing or there twice; see {arena.folder}")
    acknowledged = set(first.stdout.split())
    if not acknowledged <= set(ids):
        raise Violation(f"an unknown id was acknowledged; see {arena.folder}")
    arena.open_gate()
    arena.drain()
    check_store(arena, {job: "succeeded" for job in ids})
    return first.returncode == KILLED


def scenario_of(point, by_exec):
    if by_exec:
        return die_executing
    if point in PRODUCER_POINTS:
        return die_enqueuing
    return die_stopping if point in STOP_POINTS else die_working


def attempt(programs, point, hit, by_exec):
    try:
        with Arena(programs) as arena:
            fault = {"SEKALI_FAULT_AT": f"{point}:{hit}"}
            died = scenario_of(point, by_exec)(arena, fault)
        return "ok" if died else "not reached"
    except Violation as violation:
        return f"VIOLATION {violation}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs")
    parser.add_argument("--points", default="")
    parser.add_argument("--hits", default="1,2,3")
    parser.add_argument("--exec", action="store_true", help="handlers are commands")
    options = parser.parse_args()
    programs = Programs(options.programs)
    with Arena(programs) as arena:
        known = arena.run("sekali", "--list-faults").stdout.split()
    if options.exec:
        known = [point for point in known if point not in NOT_BY_EXEC]
    points = options.points.split(",") if options.points else known
    hits = [int(hit) for hit in options.hits.split(",")]

    cells = [(point, hit) for point in points for hit in hits]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        outcomes = pool.map(lambda cell: attempt(programs, *cell, options.exec), cells)
        return report(points, hits, dict(zip(cells, outcomes)))


def report(points, hits, results):
    """Prints the table; returns the exit status."""
    width = max(len(point) for point in points)
    print(f"{'point':{width}}  " + "  ".join(f"hit {hit}".ljust(11) for hit in hits))
    for point in points:
        row = [results[point, hit] for hit in hits]
        shown = ["VIOLATION" if cell.startswith("VIOLATION") else cell for cell in row]
        print(f"{point:{width}}  " + "  ".join(cell.ljust(11) for cell in shown))
    violations = {cell: text for cell, text in results.items() if text.startswith("VIOLATION")}
    for (point, hit), text in violations.items():
        print(f"{point} hit {hit}: {text}")
    unreached = [point for point in points
                 if all(results[point, hit] == "not reached" for hit in hits)]
    for point in unreached:
        print(f"{point} was never reached")
    deaths = sum(result == "ok" for result in results.values())
    print(f"{len(points)} points, {len(results)} runs, {deaths} deaths, "
          f"{len(violations)} violations")
    return 1 if violations or unreached else 0


if __name__ == "__main__":
    sys.exit(main())
