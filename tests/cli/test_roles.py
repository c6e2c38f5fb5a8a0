"""The roles of scripts/postgres-roles.sql: each can do its work, and nothing else."""

import os
import pathlib
import secrets
import subprocess
import unittest

from support import POSTGRES, CommandTest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "postgres-roles.sql"
ROLES = ("reader", "producer", "worker")


class Roles(CommandTest):
    def use_postgres(self):
        self.server = pathlib.Path(POSTGRES, "url").read_text()
        self.schema = "cli_" + secrets.token_hex(6)
        self.addCleanup(self.drop)
        self.admin(f"create role {self.schema}_owner login createrole;"
                   f"grant create on database postgres to {self.schema}_owner")
        self.be("owner")
        self.ok("migrate")
        done = self.psql("owner", "-v", f"schema={self.schema}", "-f", SCRIPT)
        self.assertEqual(done.returncode, 0, done.stderr)
        # As a program has it: a user of its own that is a member of the role.
        for role in ROLES:
            self.admin(f"create role {self.schema}_a_{role} login in role {self.schema}_{role}")

    def drop(self):
        members = [f"{self.schema}_a_{role}" for role in ROLES]
        roles = members + [f"{self.schema}_{role}" for role in ROLES]
        self.admin(f"set client_min_messages = error; drop schema if exists {self.schema} cascade;"
                   f"drop role if exists {', '.join(roles)};"
                   f"drop owned by {self.schema}_owner; drop role {self.schema}_owner")

    def admin(self, sql):
        subprocess.run(["psql", "-qX", "-v", "ON_ERROR_STOP=1", self.server, "-c", sql], check=True)

    def user(self, who):
        return f"{self.schema}_{who}" if who == "owner" else f"{self.schema}_a_{who}"

    def url(self, who):
        return self.server.replace("sekali@", f"{self.user(who)}@")

    def be(self, who):
        self.environment["SEKALI_URL"] = f"{self.url(who)}&schema={self.schema}"

    def psql(self, who, *words):
        return subprocess.run(["psql", "-qXAt", "-v", "ON_ERROR_STOP=1", self.url(who), *words],
                              capture_output=True, text=True, check=False)

    def may_not(self, who, *statements):
        for statement in statements:
            done = self.psql(who, "-c", statement.format(s=self.schema))
            self.assertNotEqual(done.returncode, 0, statement)
            self.assertRegex(done.stderr, "permission denied|must be owner", statement)

    def is_refused(self, *words):
        error = self.refused(3, *words)
        self.assertEqual(error["code"], "refused", words)
        self.assertIn("permission denied", error["message"], words)

    def enqueue_as_producer(self, *words):
        self.be("producer")
        return self.enqueue(*words)

    def starts_nothing(self, who, job):
        """A worker of somebody who has no right to be one leaves the job as it is."""
        worker = self.start("work", "--exec", "bad=touch started")
        undone = (f"select count(*) > 0 from pg_stat_activity "
                  f"where usename = '{self.user(who)}' and query = 'ROLLBACK'")
        self.wait_until(lambda: self.psql(who, "-c", undone).stdout.strip() == "t",
                        "the server refuses what the worker wants")
        worker.terminate()
        self.finish(worker)
        self.assertEqual(self.job(job)["attempts"], 0)
        self.assertFalse(os.path.exists(self.path("started")))

    def work(self, *words):
        self.be("worker")
        return self.ok("work", "--drain", *words)

    def test_the_reader_sees_everything_and_changes_nothing(self):
        job = self.enqueue_as_producer("k", "--key", "a", "--lock", "l", "--unique", "u")
        self.work("--exec", "k=true")
        waiting = self.enqueue_as_producer("k", "--delay", "1h")
        self.be("reader")
        self.assertEqual(self.job(job)["state"], "succeeded")
        for words in (("job", "list"), ("dead", "list"), ("held", "list"), ("queue", "list"),
                      ("unique", "list"), ("worker", "list"), ("locks", "list"), ("status",),
                      ("check", "--max-dead", "0"), ("explain", "a")):
            self.ok(*words)
        found = self.run_command("doctor", "--json").json["checks"]
        self.assertIn("oldest snapshot", {check["check"] for check in found})
        self.is_refused("enqueue", "k")
        self.is_refused("job", "cancel", waiting, "--yes")
        self.is_refused("queue", "pause", "default")
        self.is_refused("prune")
        fresh = self.enqueue_as_producer("bad")
        self.be("reader")
        self.starts_nothing("reader", fresh)
        self.may_not("reader", "delete from {s}.jobs", "update {s}.meta set version = 0",
                     "insert into {s}.queues values (true, 'default', 'q')",
                     "create table {s}.own()", "drop view {s}.sekali_v_jobs")

    def test_the_producer_enqueues_and_takes_back(self):
        self.be("producer")
        first = self.enqueue("k", "--key", "a", "--unique", "u", "--delay", "1h")
        self.assertEqual(self.ok("enqueue", "k", "--unique", "u", "--json").json["winner"], first)
        self.ok("enqueue", "--bulk", "-", stdin='{"kind": "k", "payload": {}}\n')
        done = self.psql("producer", "-c", f"select status from {self.schema}.enqueue('k')")
        self.assertEqual(done.stdout.strip(), "enqueued", done.stderr)
        self.ok("job", "cancel", first, "--yes")
        self.assertEqual(self.job(first)["state"], "cancelled")
        bad = self.enqueue("bad")
        self.work("--exec", "k=true", "--exec", "bad=sh -c 'exit 65'")
        self.be("producer")
        self.assertEqual(self.job(bad)["state"], "dead")
        self.ok("dead", "retry", bad, "--yes")
        self.assertEqual(self.job(bad)["state"], "ready")
        self.is_refused("queue", "pause", "default")
        self.is_refused("prune")
        self.starts_nothing("producer", bad)
        self.starts_nothing("producer", self.enqueue("bad"))
        self.may_not("producer", "delete from {s}.records", "delete from {s}.attempts",
                     "insert into {s}.workers select * from {s}.workers",
                     "update {s}.meta set version = 0", "create table {s}.own()",
                     "truncate {s}.jobs")

    def test_the_worker_runs_jobs_but_owns_nothing(self):
        good = self.enqueue_as_producer("good", "--key", "a", "--lock", "l")
        bad = self.enqueue_as_producer("bad")
        self.work("--exec", "good=true", "--exec", "bad=sh -c 'exit 65'")
        self.assertEqual(self.job(good)["state"], "succeeded")
        self.assertEqual(self.job(bad)["state"], "dead")
        self.ok("dead", "drop", bad, "--yes")
        self.ok("queue", "pause", "default")
        self.ok("queue", "resume", "default")
        self.ok("lock", "l", "--", "true")
        self.assertEqual(self.ok("once", "--key", "o", "--", "echo", "1").out, "1\n")
        self.ok("prune")
        self.may_not("worker", "delete from {s}.meta", "create table {s}.own()",
                     "drop table {s}.jobs", "alter table {s}.jobs add column x int",
                     "drop function {s}.expect", "truncate {s}.jobs")

    def test_nobody_else_sees_anything(self):
        self.admin(f"create role {self.schema}_a_stranger login")
        self.addCleanup(self.admin, f"drop role {self.schema}_a_stranger")
        self.may_not("stranger", "select * from {s}.sekali_v_jobs",
                     "select {s}.enqueue('k')")

    def test_the_owner_alone_upgrades(self):
        self.be("owner")
        self.ok("migrate")
        self.psql("owner", "-c", f"update {self.schema}.meta set version = version - 1")
        self.be("worker")
        self.assertNotEqual(self.run_command("work", "--drain", "--exec", "k=true").status, 0)


if __name__ == "__main__":
    unittest.main()
