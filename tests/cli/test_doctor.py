import os
import sqlite3
import unittest

from redis_server import RedisServer
from support import CommandTest


class Doctor(CommandTest):
    def setUp(self):
        super().setUp()
        # The folder of the tests may lie in memory, to which doctor objects first of all.
        with open("/proc/mounts") as mounts:
            folders = [line.split() for line in mounts]
        # In a changed root the file system at its top has no line.
        above = [m for m in folders if self.folder.startswith(m[1])]
        here = max(above, key=lambda m: len(m[1]), default=None)
        self.in_memory = here is not None and here[2] in ("tmpfs", "ramfs")

    def look(self, *words, status=None, **how):
        answer = self.run_command("doctor", "--json", *words, **how)
        document = answer.json
        self.assertEqual(set(document), {"ok", "checks"})
        for check in document["checks"]:
            self.assertEqual(set(check), {"check", "status", "detail", "advice"})
            self.assertEqual(check["advice"] is None, check["status"] == "ok", check)
        unsafe = [c["check"] for c in document["checks"] if c["status"] == "unsafe"]
        self.assertEqual(answer.status, 1 if unsafe else 0)
        self.assertEqual(document["ok"], not unsafe)
        found = {check["check"]: check for check in document["checks"]}
        self.assertEqual(len(found), len(document["checks"]))
        if self.in_memory and "file system" in found:
            self.assertEqual(found.pop("file system")["status"], "unsafe")
        return found

    def statuses(self, found):
        return {name: check["status"] for name, check in found.items() if check["status"] != "ok"}

    def test_without_a_database(self):
        found = self.look()
        self.assertEqual(self.statuses(found), {})
        self.assertIn("none at", found["database"]["detail"])
        self.assertFalse(os.path.exists(self.database))

    def test_a_good_database(self):
        self.enqueue("k")
        self.ok("work", "--drain", "--exec", "k=true")
        found = self.look()
        self.assertEqual(self.statuses(found), {})
        for check in ("configuration", "database", "synchronous", "space", "pages", "access",
                      "clock", "lease", "timeout k"):
            self.assertIn(check, found)
        self.assertIn("p99 of 1 runs", found["timeout k"]["detail"])
        self.assertIn("synchronous", self.run_command("doctor").out)

    def test_what_a_power_cut_may_take_back(self):
        self.enqueue("k")
        found = self.look("--url", f"sqlite:{self.database}?synchronous=normal")
        self.assertEqual(self.statuses(found), {"synchronous": "unsafe"})

    def test_the_timeout_against_what_was_measured(self):
        for number in range(20):
            self.enqueue("k", str(number))
        self.ok("work", "--drain", "--exec", "k=true")
        with sqlite3.connect(self.database) as database:
            database.execute("pragma wal_autocheckpoint = 0")
            database.execute("update sekali_attempts set finished_at = started_at + 100")
        database.close()
        self.assertIn("p99 of 20 runs is 100ms", self.look()["timeout k"]["detail"])
        self.assertEqual(self.statuses(self.look("--timeout", "200ms")), {})
        self.assertEqual(self.statuses(self.look("--timeout", "199ms")), {"timeout k": "warning"})
        found = self.look(environment={"SEKALI_TIMEOUT": "99ms"})
        self.assertEqual(self.statuses(found), {"timeout k": "unsafe"})
        self.assertIn("raise --timeout", found["timeout k"]["advice"])

    def test_the_configuration(self):
        config = self.path("sekali.toml")
        with open(config, "w") as file:
            file.write('[kinds.a]\nexec = "no-such-program x"\n'
                       '[kinds.b]\nexec = "true"\non_unknown = "probe"\n')
        found = self.look("--config", config)
        self.assertEqual(self.statuses(found), {"kind a": "unsafe", "kind b": "warning"})
        self.refused(2, "doctor", "--lease", "1ms")
        with open(config, "a") as file:
            file.write("tiemout = 5\n")
        self.assertIn("tiemout", self.refused(2, "doctor", "--config", config)["message"])

    def test_others_may_read_it(self):
        self.enqueue("k")
        os.chmod(self.database, 0o644)
        self.assertEqual(self.statuses(self.look()), {"access": "warning"})

    def test_a_lapsed_lease(self):
        job_id = self.enqueue("k")
        self.ok("work", "--drain", "--exec", "k=true")
        with sqlite3.connect(self.database) as database:
            database.execute("pragma wal_autocheckpoint = 0")
            database.execute("update sekali_attempts set outcome = 'lapsed' where job_id = ?",
                             (job_id,))
        database.close()
        found = self.look()
        self.assertEqual(self.statuses(found), {"lease": "unsafe"})
        self.assertIn("1 of 1", found["lease"]["detail"])

    def test_damage(self):
        self.enqueue("k", '"' + "x" * 100_000 + '"')
        self.ok("job", "list")
        with sqlite3.connect(self.database) as database:
            database.execute("pragma wal_checkpoint(truncate)")
        database.close()
        with open(self.database, "r+b") as file:
            file.seek(-40_000, os.SEEK_END)
            file.write(b"\x55" * 30_000)
        self.assertEqual(self.statuses(self.look()), {"pages": "unsafe"})

    def test_no_database_at_all(self):
        with open(self.database, "wb") as file:
            file.write(b"this is no database" * 1000)
        self.assertEqual(self.refused(3, "doctor")["code"], "refused")

    def look_at_locks(self, *options):
        server = RedisServer(*options)
        self.addCleanup(server.stop)
        return self.look("--lock-url", server.url)

    def test_a_redis_that_keeps_its_locks(self):
        found = self.look_at_locks("--appendonly", "yes")
        self.assertEqual(self.statuses(found), {})
        self.assertIn("everysec", found["lock persistence"]["detail"])
        for check in ("lock server", "lock eviction", "lock replicas", "lock clock"):
            self.assertIn(check, found)

    def test_a_redis_that_may_lose_them(self):
        found = self.look_at_locks("--maxmemory", "100mb", "--maxmemory-policy", "volatile-lru")
        self.assertEqual(self.statuses(found), {"lock eviction": "unsafe",
                                                "lock persistence": "warning"})
        self.assertIn("volatile-lru", found["lock eviction"]["detail"])
        found = self.look_at_locks("--maxmemory", "100mb", "--appendonly", "yes",
                                   "--appendfsync", "no")
        self.assertEqual(self.statuses(found), {"lock persistence": "warning"})

    def test_a_redis_that_hides_its_settings(self):
        found = self.look_at_locks("--appendonly", "yes", "--rename-command", "CONFIG", "")
        self.assertEqual(self.statuses(found), {})
        self.assertEqual(found["lock persistence"]["detail"], "appendonly yes")

    def test_a_replica_and_no_redis_at_all(self):
        found = self.look_at_locks("--appendonly", "yes", "--replicaof", "127.0.0.1", "1")
        self.assertEqual(self.statuses(found), {"lock server": "unsafe"})
        nobody = "redis+unix:" + self.path("nobody.sock")
        self.assertEqual(self.refused(3, "doctor", "--lock-url", nobody)["code"], "unreachable")


if __name__ == "__main__":
    unittest.main()
