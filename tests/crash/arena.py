"""A folder with a store, a ledger and worker processes, for the crash tests."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
import uuid

PATIENCE_S = 60.0
SERVER = os.environ.get("SEKALI_POSTGRES_SERVER")  # the folder of tests/postgres/server.py
READY, SCHEDULED, WAITING, RUNNING = 1, 0, 2, 3
FINAL = {"succeeded", "duplicate", "dead", "cancelled"}


class Violation(Exception):
    """Something that sekali promises was not so."""


class Schema:
    """One on a PostgreSQL server, with what `sqlite3` offers of a database here."""

    def __init__(self, folder):
        """`folder` is that of tests/postgres/server.py."""
        self.server = (pathlib.Path(folder) / "url").read_text()
        self.name = f"crash_{uuid.uuid4().hex[:12]}"
        self.url = self.url_on(self.server)

    def url_on(self, server):
        # Handlers' own tables are beside sekali's.
        return f"{server}&schema={self.name}&options=-csearch_path%3D{self.name}"

    def execute(self, question):
        if question.startswith("pragma"):
            return Rows([("ok",)])
        words = re.sub(r"\bsekali_(?!v_)", "", question)
        words = words.replace("begun <> 0", "begun").replace("done = 0", "not done")
        words = words.replace("s.not done", "not s.done")
        done = subprocess.run(
            ["psql", "-XAtq", "-F", "\t", f"{self.server}&options=-csearch_path%3D{self.name}",
             "-c", words],
            capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Violation(f"{words}: {done.stderr}")
        return Rows(tuple(line.split("\t")) for line in done.stdout.splitlines())

    def drop(self):
        self.execute(f"set client_min_messages = error; drop schema {self.name} cascade")


class Rows(list):
    def fetchall(self):
        return self

    def fetchone(self):
        return self[0] if self else None


class Programs:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def path(self, name):
        return str(self.folder / name)


class Arena:
    """One store in a folder of its own; removed at the end unless something went wrong."""

    def __init__(self, programs):
        self.programs = programs
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="sekali-crash-"))
        self.postgres = Schema(SERVER) if SERVER else None
        self.url = self.postgres.url if SERVER else f"sqlite:{self.folder / 'store.db'}"
        self.workers = []
        self.run("sekali", "migrate")
        with self.database() as db:
            db.execute("create table effects(kind text, key text, job text)")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        for worker in self.workers:
            if worker.poll() is None:
                worker.kill()
            worker.wait()
        if kind is None or not issubclass(kind, Violation):
            shutil.rmtree(self.folder)
            if self.postgres:
                self.postgres.drop()

    def environment(self, **more):
        own = {k: v for k, v in os.environ.items() if not k.startswith("SEKALI_")}
        # There nobody proves a death: a probe is asked once the run's time and grace are over.
        soon = {"SEKALI_TIMEOUT": "2s", "SEKALI_GRACE": "1s"} if self.postgres else {}
        return {**own, **soon, "SEKALI_URL": self.url, "CRASH_FOLDER": str(self.folder), **more}

    @contextlib.contextmanager
    def database(self):
        if self.postgres:
            yield self.postgres
            return
        db = sqlite3.connect(self.folder / "store.db", timeout=30, isolation_level=None)
        try:
            yield db
        finally:
            db.close()

    def run(self, program, *words, check=True, **environment):
        done = subprocess.run(
            [self.programs.path(program), *words], env=self.environment(**environment),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S,
            check=False)
        if check and done.returncode != 0:
            raise Violation(f"{program} {' '.join(words)}: {done.returncode}: {done.stderr}")
        return done

    def enqueue(self, jobs):
        """Stores jobs given as dicts like lines of a bulk file; returns their ids."""
        lines = self.folder / f"bulk-{uuid.uuid4().hex}.jsonl"
        lines.write_text("".join(json.dumps(job) + "\n" for job in jobs))
        done = self.run("sekali", "enqueue", "--bulk", str(lines), "--json")
        return [json.loads(line)["id"] for line in done.stdout.splitlines()]

    def start_worker(self, *flags, program="crash_worker", words=(), **environment):
        log = open(self.folder / "worker.log", "ab")
        worker = subprocess.Popen(
            [self.programs.path(program), *words, "--lease", "600ms", "--lock-ttl", "600ms",
             "--retry-base", "20ms", *flags],
            env=self.environment(**environment), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()
        self.workers.append(worker)
        return worker

    def end_of(self, worker, patience=PATIENCE_S):
        try:
            return worker.wait(patience)
        except subprocess.TimeoutExpired:
            raise Violation(f"a worker did not end in {patience} s; see {self.folder}") from None

    def drain(self, **environment):
        """A clean worker until nothing is left, however late what is left may become due."""
        status = self.end_of(self.start_worker("--drain", **environment))
        if status != 0:
            raise Violation(f"a clean worker ended with {status}; see {self.folder}")

    def wait_for(self, condition, what):
        # The operating system offers no event for what another process wrote.
        until = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > until:
                raise Violation(f"in vain: {what}; see {self.folder}")
            time.sleep(0.005)  # between two looks, see above

    def ledger_lines(self):
        path = self.folder / "ledger"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line.split("\t") for line in lines]

    def ledger(self, what):
        return [(key, job) for kind, key, job in self.ledger_lines() if kind == what]

    def recover_only(self):
        """A clean worker that puts back what dead ones had claimed, but is given nothing to run."""
        self.run("sekali", "queue", "pause", "default")
        worker = self.start_worker()
        self.wait_for(lambda: self.rows(f"select 1 from sekali_workers where pid = {worker.pid}"),
                      "a clean worker is there")
        self.wait_for(lambda: not self.rows("select 1 from sekali_jobs where state = 3"),
                      "what dead workers had claimed is put back")
        if rows := self.rows("select id, owner, lease_until from sekali_jobs "
                             "where owner <> '' or lease_until <> 0 or begun <> 0"):
            raise Violation(f"rows were left half-reset: {rows[:5]}; see {self.folder}")
        kill(worker, signal.SIGTERM)
        if (status := self.end_of(worker)) != 0:
            raise Violation(f"an idle worker ended with {status}; see {self.folder}")
        self.run("sekali", "queue", "resume", "default")

    def rows(self, question):
        with self.database() as db:
            return db.execute(question).fetchall()

    def open_gate(self):
        (self.folder / "open").touch()

    def states(self):
        with self.database() as db:
            return dict(db.execute("select id, state from sekali_v_jobs"))

    def effects(self):
        with self.database() as db:
            return list(db.execute("select kind, key, job from effects"))


def kill(worker, number=signal.SIGKILL):
    with contextlib.suppress(ProcessLookupError):
        os.kill(worker.pid, number)


# What no store may answer to where nothing runs any more.
RULES = {
    "an effect was written twice":
        "select kind, key from effects group by kind, key having count(*) > 1",
    "a key has two successes":
        "select kind, key from sekali_v_attempts where outcome = 'succeeded' "
        "group by namespace, kind, key having count(*) > 1",
    "a job is still claimed": "select id from sekali_jobs where state = 3 or owner <> ''",
    "a final job is live, too":
        "select j.id from sekali_jobs j join sekali_finished f on f.id = j.id",
    "a lock outlived its jobs": "select name from sekali_locks where owner <> ''",
    "a record is still open": "select key from sekali_records where state in (0, 3)",
    "a step of a success is open":
        "select s.key from sekali_steps s join sekali_records r using (ns, kind, key) "
        "where r.state = 1 and s.done = 0",
    "an attempt has no end": "select job_id from sekali_v_attempts where finished_at is null",
}


def broken_rules(db):
    """What is wrong, each with the rows that say so."""
    for violation, question in RULES.items():
        if rows := db.execute(question).fetchall():
            yield violation, rows
    if db.execute("pragma integrity_check").fetchone() != ("ok",):
        yield "the database is damaged", []


def check_store(arena, expected, exclusive=True):
    """The invariants of a store where nothing runs any more; `expected` is a state by job id.

    Who is frozen beyond the lease of its lock may find another inside; else nobody may.
    """
    states = arena.states()
    for job, state in expected.items():
        if states.get(job) != state:
            raise Violation(f"job {job} is {states.get(job)}, not {state}; see {arena.folder}")
    with arena.database() as db:
        for violation, rows in broken_rules(db):
            raise Violation(f"{violation}: {rows[:5]}; see {arena.folder}")
    overlaps = arena.ledger("overlap")
    if exclusive and overlaps:
        raise Violation(f"two handlers held one lock: {overlaps[:5]}; see {arena.folder}")
    charges = [key for key, _ in arena.ledger("charge")]
    if len(charges) != len(set(charges)):
        raise Violation(f"a key was charged twice; see {arena.folder}")
