"""doctor on a PostgreSQL server of its own, whose settings are changed under it."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from support import CommandTest

TOOL = pathlib.Path(__file__).resolve().parents[1] / "postgres" / "server.py"


def server(action, folder, *words):
    subprocess.run([sys.executable, TOOL, action, folder, *words], check=True)


class Doctor(CommandTest):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="sekali-doctor-")
        cls.addClassCleanup(folder.cleanup)
        cls.place = pathlib.Path(folder.name)
        server("start", cls.place / "one", "--while", str(os.getpid()), "--durable")
        cls.addClassCleanup(server, "stop", cls.place / "one")
        cls.url = (cls.place / "one" / "url").read_text()

    def setUp(self):
        super().setUp()
        self.environment["SEKALI_URL"] = self.url
        self.ok("migrate")

    def sql(self, *statements):
        words = [word for statement in statements for word in ("-c", statement)]
        done = subprocess.run(["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", self.url, *words],
                              check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def checks(self):
        answer = self.run_command("doctor", "--json")
        self.assertIn(answer.status, (0, 1), answer.err)
        found = {check["check"]: check for check in answer.json["checks"]}
        unsafe = [name for name, check in found.items() if check["status"] == "unsafe"]
        self.assertEqual(answer.status, 1 if unsafe else 0)
        return found

    def objections(self):
        return {name: check["status"] for name, check in self.checks().items()
                if check["status"] != "ok"}

    def wait_for(self, objections, what):
        """The server takes a setting a moment later."""
        self.wait_until(lambda: self.objections() == objections, what)

    def test_a_good_server(self):
        found = self.checks()
        self.assertEqual(self.objections(), {})
        for name in ("database", "server", "isolation", "durability", "oldest snapshot",
                     "dead rows", "connections", "collation", "replication", "clock"):
            self.assertIn(name, found)

    def test_settings(self):
        for where, name, value, objections in (
                ("database postgres", "synchronous_commit", "off", {"durability": "unsafe"}),
                ("system", "autovacuum", "off", {"dead rows": "unsafe"}),
                ("database postgres", "default_transaction_isolation", "serializable",
                 {"isolation": "warning"}),
                ("database postgres", "default_transaction_read_only", "on",
                 {"server": "unsafe"})):
            with self.subTest(name):
                self.sql(f"alter {where} set {name} = '{value}'", "select pg_reload_conf()")
                self.wait_for(objections, f"an objection to {name}")
                self.sql("set default_transaction_read_only = off", f"alter {where} reset {name}",
                         "select pg_reload_conf()")
                self.wait_for({}, f"{name} is as it was")

    def test_a_server_that_does_not_sync(self):
        server("start", self.place / "lax", "--while", str(os.getpid()))
        self.addCleanup(server, "stop", self.place / "lax")
        self.environment["SEKALI_URL"] = (self.place / "lax" / "url").read_text()
        self.ok("migrate")
        self.assertEqual(self.objections(), {"durability": "unsafe"})

    def test_who_holds_a_snapshot(self):
        with subprocess.Popen(["psql", "-XAtq", self.url], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as session:
            session.stdin.write("begin isolation level repeatable read; select 1;\n"
                                "select pg_backend_pid();\n")
            session.stdin.flush()
            session.stdout.readline()
            pid = session.stdout.readline().strip()
            self.assertIn(f"by {pid} psql", self.checks()["oldest snapshot"]["detail"])
            session.stdin.close()

    def test_connections_that_are_nearly_used_up(self):
        free = 9
        limit = int(self.sql("select current_setting('max_connections')::int"
                             " - current_setting('superuser_reserved_connections')::int"))
        used = int(self.sql("select count(*) from pg_stat_activity"
                            " where backend_type = 'client backend'"))
        sessions = []
        for _ in range(limit - used - free):
            session = subprocess.Popen(["psql", "-XAtq", self.url], stdin=subprocess.PIPE,
                                       stdout=subprocess.DEVNULL)
            sessions.append(session)
        try:
            self.wait_for({"connections": "warning"}, "connections are nearly used up")
        finally:
            for session in sessions:
                session.stdin.close()
                session.wait()

    def test_a_collation_of_another_version(self):
        self.sql("create database old template template0 locale 'C.UTF-8'",
                 "update pg_database set datcollversion = '0' where datname = 'old'")
        self.addCleanup(self.sql, "drop database old")
        self.environment["SEKALI_URL"] = self.url.replace("/postgres?", "/old?")
        known = self.sql("select pg_database_collation_actual_version(oid) is not null"
                         " from pg_database where datname = 'old'")
        self.ok("migrate")
        status = self.checks()["collation"]["status"]
        self.assertEqual(status, "warning" if known == "t" else "ok")

    def test_a_standby_is_read_only_and_one_that_stands_still_lags(self):
        server("standby", self.place / "two", str(self.place / "one"), "--while", str(os.getpid()))
        self.addCleanup(server, "stop", self.place / "two")
        standby = (self.place / "two" / "url").read_text()
        self.environment["SEKALI_URL"] = standby
        self.assertEqual(self.checks()["server"]["status"], "unsafe")
        self.environment["SEKALI_URL"] = self.url
        self.wait_until(lambda: self.sql("select count(replay_lag) from pg_stat_replication,"
                                         " pg_switch_wal()") == "1", "the standby follows")
        self.assertIn("lags by", self.checks()["replication"]["detail"])


if __name__ == "__main__":
    unittest.main()
