"""Runs the built `sekali` in a folder of its own."""

import json
import os
import secrets
import shutil
import subprocess
import tempfile
import time
import unittest

BINARY = os.environ["SEKALI"]
POSTGRES = os.environ.get("SEKALI_POSTGRES_SERVER")  # the folder of tests/postgres/server.py
TIMEOUT_S = 60

# A server elsewhere proves no death on this host: there only leases say that a process is gone.
needs_proof_of_death = unittest.skipIf(POSTGRES, "PostgreSQL waits for the lease")
needs_file = unittest.skipIf(POSTGRES, "the test reads the file of the database")

ITEM_FIELDS = {
    "id", "kind", "queue", "state", "key", "lock_key", "unique_key", "attempts", "crashes",
    "deliveries", "epoch", "max_attempts", "priority", "enqueued_at", "run_at", "finished_at",
    "worker", "waiting_for", "result", "error", "reason",
}


class Answer:
    def __init__(self, process):
        self.status = process.returncode
        self.raw = process.stdout
        self.out = process.stdout.decode("utf-8", "backslashreplace")
        self.err = process.stderr.decode("utf-8", "backslashreplace")

    @property
    def json(self):
        """The one document on stdout."""
        return json.loads(self.out)

    @property
    def lines(self):
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def error(self):
        return self.json["error"]


class CommandTest(unittest.TestCase):
    program = BINARY

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="sekali-cli-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.database = os.path.join(self.folder, "jobs.db")
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": self.folder,
            "SEKALI_URL": "sqlite:" + self.database,
            "LC_ALL": "C.UTF-8",
        }
        if POSTGRES:
            self.use_postgres()

    def use_postgres(self):
        """A schema of its own on the server that ctest has started."""
        with open(os.path.join(POSTGRES, "url")) as file:
            server = file.read()
        schema = "cli_" + secrets.token_hex(6)
        self.environment["SEKALI_URL"] = f"{server}&schema={schema}"
        self.addCleanup(subprocess.run, ["psql", "-qX", server, "-c",
                                         f"SET client_min_messages = error;"
                                         f"DROP SCHEMA IF EXISTS {schema} CASCADE"], check=True)
        self.ok("migrate")

    def run_command(self, *words, stdin=b"", environment=None, cwd=None):
        if isinstance(stdin, str):
            stdin = stdin.encode()
        process = subprocess.run(
            [self.program, *words],
            input=stdin,
            capture_output=True,
            env={**self.environment, **(environment or {})},
            cwd=cwd or self.folder,
            timeout=TIMEOUT_S,
        )
        return Answer(process)

    def start(self, *words, **how):
        """Starts the command and leaves it running; it is killed at the end of the test."""
        process = subprocess.Popen(
            [self.program, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env={**self.environment, **how.pop("environment", {})},
            cwd=self.folder, **how)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def finish(self, process):
        out, err = process.communicate(timeout=TIMEOUT_S)
        return Answer(subprocess.CompletedProcess((), process.returncode, out, err))

    def wait_until(self, condition, what):
        deadline = time.monotonic() + TIMEOUT_S
        while not condition():
            self.assertLess(time.monotonic(), deadline, "waited too long for " + what)
            time.sleep(0.02)  # the commands offer no event to wait for

    def path(self, name):
        return os.path.join(self.folder, name)

    def gate(self, name):
        """A pipe that a script waits on by `read x <name` until `open_gate`."""
        os.mkfifo(self.path(name))

    def open_gate(self, name):
        with open(self.path(name), "w") as pipe:
            pipe.write("go\n")

    def ledger(self, name="ledger"):
        try:
            with open(self.path(name)) as file:
                return file.read().splitlines()
        except FileNotFoundError:
            return []

    def ok(self, *words, **how):
        answer = self.run_command(*words, **how)
        self.assertEqual(answer.status, 0, f"{words}: {answer.out}{answer.err}")
        return answer

    def refused(self, status, *words, **how):
        """Runs with --json and checks the form of the refusal."""
        answer = self.run_command("--json", *words, **how)
        self.assertEqual(answer.status, status, f"{words}: {answer.out}{answer.err}")
        self.assertEqual(set(answer.json), {"error"})
        self.assertEqual(set(answer.error), {"code", "message", "applied", "hint"})
        self.assertIn(answer.error["applied"], ("no", "maybe"))
        return answer.error

    def enqueue(self, *words, **how):
        return self.ok("enqueue", *words, "--json", **how).json["id"]

    def job(self, job_id):
        return self.ok("job", "show", job_id, "--json").json
