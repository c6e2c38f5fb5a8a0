#!/usr/bin/env python3
"""What becomes of the work when something around it fails, and how soon it goes on.

usage: faults.py PROGRAMS [--only a,b] [--rounds N] [--lease D] [--rate N]
                              [--hold S] [--quick]

Two worker processes with 64 handlers each work off what a producer enqueues all the time, each on
their own way to a server with fsync and synchronous_commit on; then one thing fails. Prints a line
for each fault: what was acknowledged, what of it is lost or took effect twice, how many runs were
needed beyond one each, when the next job succeeded and when the last one was late, in seconds from
the end of the fault. Ends with 1 when anything was lost or doubled, or went on too late.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from relay import Relay, Way
from server import home_of
from stage import HERE, PATIENCE_S, Stage, Violation

WORKERS = 2
CONCURRENCY = "64"
SETTLED_JOBS = 60  # in time, before a fault and behind it
LATE_FACTOR = 2.0  # of the slowest before the fault
LATE_S = 0.3
WINDOW_S = 3.0
LONG_S = 40.0  # longer than anything that sekali waits for by itself
COMMITS_LOST = 10
BULK = 10_000
DEAD_ROWS = 110_000  # a little more than doctor tolerates
# Beyond the lease: until recovery looks (a second), leases are found to be over (a second), and
# for a machine that does other things, too.
SLACK_S = 8.0


def now_ns():
    return time.monotonic_ns()


def read_notes(path):
    """(what, key, time) of each whole line."""
    with contextlib.suppress(FileNotFoundError):
        text = path.read_text()
        lines = text[:text.rfind("\n") + 1].splitlines()
        return [(what, key, int(at)) for what, key, at in (line.split("\t") for line in lines)]
    return []


class Faults(Stage):
    """A server, a producer and workers, which come to it by `route`."""

    def __init__(self, options):
        super().__init__(options.programs, "faults")
        self.options = options
        self.route = self.url
        self.workers = []
        self.note = ""
        self.closing = contextlib.ExitStack()

    def close(self):
        self.closing.close()
        super().close()

    def environment(self):
        return {**super().environment(), "SEKALI_URL": self.route,
                "FAULT_NOTES": str(self.folder / "notes")}

    def prepare(self):
        self.run("sekali", "migrate")
        self.sql("create table effects(kind text, key text)")

    def sql(self, statement):
        if self.rows(statement) is None:
            raise Violation(f"{statement}: it failed; see {self.folder}")

    def start_worker(self, *flags):
        return self.start("fault_worker", "--concurrency", CONCURRENCY, "--lease",
                          self.options.lease, "--log-level", "warning", *flags)

    def start_load(self):
        with open(self.folder / "acks", "wb") as acks:
            self.producer = self.start("fault_producer", self.route, str(self.options.rate),
                                       stdin=subprocess.PIPE, stdout=acks)
        self.workers = [self.start_worker() for _ in range(WORKERS)]

    def end_load(self):
        self.producer.stdin.close()
        if self.producer.wait(PATIENCE_S) != 0:
            raise Violation(f"the producer failed; see {self.folder}/log")
        for worker in self.workers:
            worker.terminate()
        for worker in self.workers:
            if worker.wait(PATIENCE_S) != 0:
                raise Violation(f"a worker ended with {worker.returncode}; see {self.folder}/log")
        if self.start_worker("--drain").wait(PATIENCE_S) != 0:
            raise Violation(f"the last worker failed; see {self.folder}/log")

    def history(self):
        """When each job was acknowledged, and when each was done at first."""
        acks = {key: at for _, key, at in read_notes(self.folder / "acks")}
        done = {}
        for what, key, at in read_notes(self.folder / "notes"):
            if what == "done":
                done.setdefault(key, at)
        return acks, done

    def have_effects(self, keys):
        """Of jobs whose worker was killed between the commit and what it would have said of it."""
        rows = self.rows("select key from effects")
        return rows is not None and keys <= {key for key, in rows}

    def wait_until_settled(self, since):
        """Until jobs that were acknowledged behind `since`, and all before them, are done."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            acks, done = self.history()
            # The last ones may still be under way.
            behind = sorted((at, key) for key, at in acks.items() if at > since)[:SETTLED_JOBS]
            wanted = [key for key, at in acks.items() if behind and at <= behind[-1][0]]
            unsaid = {key for key in wanted if key not in done}
            if len(behind) == SETTLED_JOBS and (not unsaid or self.have_effects(unsaid)):
                return
            time.sleep(0.05)  # between two looks: what others write to files offers no event
        raise Violation(f"it does not go on; see {self.folder}")


# ---- what fails; each returns when it is over, in nanoseconds

def kill_worker(stage):
    stage.workers[0].kill()
    end = now_ns()
    stage.workers[0].wait()
    stage.workers[0] = stage.start_worker()
    return end


def kill_all_workers(stage):
    for worker in stage.workers:
        worker.kill()
    end = now_ns()
    for worker in stage.workers:
        worker.wait()
    stage.workers = [stage.start_worker() for _ in range(WORKERS)]
    return end


def terminate_backends(stage):
    stage.sql("select pg_terminate_backend(pid) from pg_stat_activity "
              "where application_name like 'sekali %'")
    return now_ns()


def restart_server(stage):
    """Ended at once, as by a crash, and started again."""
    stage.server("crash")
    return now_ns()


def promote_standby(stage):
    """The primary is gone for good; the standby takes over."""
    os.kill(int((stage.folder / "server" / "pid").read_text()), signal.SIGTERM)
    end = now_ns()
    stage.server("promote", folder="standby")
    stage.url = (stage.folder / "standby" / "url").read_text()
    return end


def read_only(stage):
    stage.sql("alter system set default_transaction_read_only = on")
    stage.sql("select pg_reload_conf()")
    time.sleep(WINDOW_S)  # the window itself
    stage.sql("alter system reset default_transaction_read_only")
    stage.sql("select pg_reload_conf()")
    return now_ns()


def cut(stage):
    stage.relay.cut()
    return now_ns()


def hold(stage):
    stage.relay.set(Way.HOLD)
    time.sleep(WINDOW_S)  # the black hole itself
    stage.relay.set(Way.PASS)
    return now_ns()


def lose(stage):
    stage.relay.set(Way.LOSE)
    time.sleep(WINDOW_S)  # the black hole itself
    stage.relay.set(Way.PASS)
    return now_ns()


def delay(stage):
    stage.relay.set(Way.PASS, delay_s=0.1)
    time.sleep(WINDOW_S)  # the delay itself
    stage.relay.set(Way.PASS)
    return now_ns()


def lose_answers(stage):
    before = stage.relay.answers_lost
    stage.relay.set(Way.DEAF)
    until = time.monotonic() + PATIENCE_S
    while stage.relay.answers_lost < before + COMMITS_LOST and time.monotonic() < until:
        time.sleep(0.01)  # between two looks
    stage.relay.set(Way.PASS)
    return now_ns()


def restart_pooler(stage):
    end = now_ns()
    stage.pooler("start", stage.folder / "server")
    return end


def hold_snapshot(stage):
    """A second session keeps an old snapshot while as much is worked off as goes."""
    before = max(work_off(stage) for _ in range(2))
    with subprocess.Popen(["psql", "-XAtq", stage.url], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as session:
        session.stdin.write("begin isolation level repeatable read;\n"
                            "select count(*) from sekali.records;\n")
        session.stdin.flush()
        session.stdout.readline()
        until = time.monotonic() + stage.options.hold
        under = work_off(stage)
        while time.monotonic() < until or dead_rows(stage) < DEAD_ROWS:
            under = work_off(stage)
        dead = dead_rows(stage)
        objections = doctors_objections(stage)
        session.stdin.close()
    if not {"oldest snapshot", "dead rows"} <= objections:
        raise Violation(f"doctor objects to {objections or 'nothing'} with {dead} dead rows")
    stage.note = (f"{before:.0f} jobs/s before, {under:.0f} under it at last, with "
                  f"{dead:,} dead rows; doctor objects")
    return now_ns()


def work_off(stage):
    """Jobs that are done in a second where nobody paces them."""
    lines = stage.folder / "bulk.jsonl"
    lines.write_text('{"kind": "nothing", "payload": {}}\n' * BULK)
    begin = time.monotonic()
    stage.run("sekali", "enqueue", "--bulk", str(lines))
    while stage.number("select count(*) from sekali.jobs where kind = 'nothing'"):
        if time.monotonic() > begin + PATIENCE_S:
            raise Violation(f"it does not go on; see {stage.folder}")
        time.sleep(0.05)  # between two looks
    return BULK / (time.monotonic() - begin)


def dead_rows(stage):
    return stage.number("select n_dead_tup from pg_stat_user_tables "
                        "where relid = 'sekali.jobs'::regclass")


def doctors_objections(stage):
    done = subprocess.run([stage.programs / "sekali", "doctor", "--json"],
                          env=stage.environment(), capture_output=True, text=True, check=False)
    return {check["check"] for check in json.loads(done.stdout)["checks"]
            if check["status"] != "ok"}


# ---- ways to the server

def directly(stage):
    del stage


def by_relay(stage):
    stage.relay = Relay(stage.folder / "relay", home_of(stage.folder / "server"))
    stage.closing.callback(stage.relay.close)
    stage.route = f"postgres://sekali@/postgres?host={stage.folder / 'relay'}"


def by_pooler(stage):
    def pooler(action, *words):
        subprocess.run([HERE / "pgbouncer.py", action, stage.folder / "pooler", *words],
                       check=True)
    stage.pooler = pooler
    pooler("start", stage.folder / "server")
    stage.closing.callback(pooler, "stop")
    stage.route = (stage.folder / "pooler" / "url").read_text()


def by_two_hosts(stage):
    """What was acknowledged is on both servers."""
    stage.server("standby", str(stage.folder / "server"), "--while", str(os.getpid()),
                 folder="standby")
    stage.closing.callback(stage.server, "stop", folder="standby")
    stage.sql("alter system set synchronous_standby_names = '*'")
    stage.sql("select pg_reload_conf()")
    until = time.monotonic() + PATIENCE_S
    while not stage.number("select count(*) from pg_stat_replication where sync_state = 'sync'"):
        if time.monotonic() > until:
            raise Violation("the standby does not follow")
        time.sleep(0.05)  # between two looks
    hosts = ",".join(str(home_of(stage.folder / name)) for name in ("server", "standby"))
    stage.route = f"postgres://sekali@/postgres?host={hosts}&target_session_attrs=read-write"


class Fault:
    def __init__(self, title, way, strike, bound_s=SLACK_S, is_quick=True, only_once=False):
        self.title = title
        self.way = way
        self.strike = strike
        self.bound_s = bound_s  # beyond the lease
        self.is_quick = is_quick
        self.only_once = only_once


FAULTS = {
    "kill": Fault("kill -9 of a worker", directly, kill_worker),
    "kill-all": Fault("kill -9 of all workers at once", directly, kill_all_workers),
    "terminate": Fault("pg_terminate_backend of all connections", directly, terminate_backends),
    "restart": Fault("immediate restart of the server", directly, restart_server),
    "promotion": Fault("primary gone, standby promoted", by_two_hosts, promote_standby,
                       only_once=True),
    "read-only": Fault(f"read-only for {WINDOW_S:.0f} s", directly, read_only),
    "cut": Fault("all connections cut", by_relay, cut),
    "black-hole": Fault(f"nothing passes for {WINDOW_S:.0f} s", by_relay, hold),
    "lost-links": Fault(f"what is sent in {WINDOW_S:.0f} s is gone, connections never notice",
                        by_relay, lose, bound_s=LONG_S, is_quick=False),
    "delay": Fault(f"100 ms more each way for {WINDOW_S:.0f} s", by_relay, delay),
    "lost-answers": Fault(f"{COMMITS_LOST} answers lost, each with its connection", by_relay,
                          lose_answers),
    "pooler": Fault("pgbouncer in transaction mode started again", by_pooler, restart_pooler),
    "snapshot": Fault("an old snapshot is held under load", directly, hold_snapshot,
                      only_once=True),
}


# ---- what came of it

def seconds(text):
    for unit, factor in (("ms", 0.001), ("s", 1), ("m", 60)):
        if text.endswith(unit):
            return float(text.removesuffix(unit)) * factor
    raise ValueError(text)


def recovery(stage, begin, end, until):
    """(when the next job succeeded, when the last late one did) in seconds from the end."""
    acks, done = stage.history()
    taken = {key: at - acks[key] for key, at in done.items() if key in acks}
    slowest = max(took for key, took in taken.items() if done[key] < begin)
    late = max(LATE_S * 1e9, LATE_FACTOR * slowest)
    behind = [at for at in done.values() if at > end]
    ends = [done[key] for key, took in taken.items()
            if took > late and begin < done[key] <= until]
    return (min(behind) - end) / 1e9, max(0.0, (max(ends, default=end) - end) / 1e9)


def judge(stage):
    """(acknowledged, lost, doubled, runs beyond one for each job)"""
    acks, _ = stage.history()
    states = dict(stage.rows("select key, state from sekali.sekali_v_jobs where kind = 'work'"))
    notes = read_notes(stage.folder / "notes")
    effects = [key for key, in stage.rows("select key from effects")]
    lost = [key for key in acks
            if states.get(key) != "succeeded" or key not in set(effects)]
    said = [key for what, key, _ in notes if what == "done"]
    doubled = (len(effects) - len(set(effects))) + (len(said) - len(set(said)))
    runs = sum(what == "enter" for what, _, _ in notes)
    if lost:
        print(f"lost: {[(key, states.get(key)) for key in lost[:5]]}; see {stage.folder}")
    return len(acks), len(lost), doubled, runs - len(set(effects))


def play(name, options):
    fault = FAULTS[name]
    with Faults(options) as stage:
        stage.prepare()
        fault.way(stage)
        stage.start_load()
        stage.wait_until_settled(0)
        times = []
        for _ in range(1 if fault.only_once else options.rounds):
            begin = now_ns()
            end = fault.strike(stage)
            stage.wait_until_settled(max(end, now_ns()))
            times.append(recovery(stage, begin, end, now_ns()))
        stage.end_load()
        jobs, lost, doubled, again = judge(stage)
        result = {"fault": fault.title, "jobs": jobs, "lost": lost, "double": doubled,
                  "runs_again": again, "goes_on_s": round(max(t[0] for t in times), 2),
                  "as_before_s": round(max(t[1] for t in times), 2), "note": stage.note}
        if lost or doubled:
            raise Violation(f"{result}; see {stage.folder}")
        if result["as_before_s"] > seconds(options.lease) + fault.bound_s:
            raise Violation(f"{result}: that is too late; see {stage.folder}")
        return result


HEAD = ("fault", "jobs", "lost", "double", "runs_again", "goes_on_s", "as_before_s", "note")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--only", default="", help=", ".join(FAULTS))
    parser.add_argument("--quick", action="store_true", help="leaves out what takes long")
    parser.add_argument("--rounds", type=int, default=3, help="of each fault; the worst is shown")
    parser.add_argument("--lease", default="15s")
    parser.add_argument("--hold", type=float, default=60, help="seconds of the old snapshot")
    parser.add_argument("--rate", type=int, default=200, help="jobs a second")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(FAULTS)
    if options.quick:
        names = [name for name in names if FAULTS[name].is_quick]
    if shutil.which("pgbouncer") is None:
        names = [name for name in names if FAULTS[name].way is not by_pooler]
    print("| " + " | ".join(HEAD) + " |\n|" + "---|" * len(HEAD), flush=True)
    failed = False
    for name in names:
        try:
            result = play(name, options)
            print("| " + " | ".join(str(result[column]) for column in HEAD) + " |", flush=True)
        except Violation as violation:
            print(f"VIOLATION {name}: {violation}", flush=True)
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
