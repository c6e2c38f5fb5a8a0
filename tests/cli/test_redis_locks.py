import unittest

from redis_server import RedisServer
from support import CommandTest


class RedisLocks(CommandTest):
    def setUp(self):
        super().setUp()
        self.redis = RedisServer()
        self.addCleanup(self.redis.stop)
        self.environment["SEKALI_LOCK_URL"] = self.redis.url

    def hold(self, name, *words, ledger="ledger"):
        """Starts a holder that ends when its gate is opened."""
        self.gate("gate")
        process = self.start("lock", name, *words, "--", "sh", "-c",
                             f"echo held >> {ledger}; read x <gate")
        self.wait_until(lambda: self.ledger(ledger), "the lock to be held")
        return process

    def test_one_at_a_time_on_the_key_that_is_shown(self):
        holder = self.hold("deploy")
        self.refused(5, "lock", "deploy", "--no-wait", "--", "true")
        self.refused(5, "lock", "deploy", "--wait", "50ms", "--", "true")
        shown = self.ok("locks", "show", "deploy", "--json").json
        self.assertEqual(set(shown), {"name", "backend_key", "owner", "token", "ttl_ms", "holders",
                                      "fence", "job_id"})
        self.assertEqual(shown["backend_key"], "sekali:default:lock:deploy")
        self.assertEqual(shown["holders"], 1)
        self.assertTrue(0 < shown["ttl_ms"] <= 30_000)
        self.assertEqual(self.redis.ask("HKEYS", shown["backend_key"]), shown["owner"])
        items = self.ok("locks", "list", "--json").json["items"]
        self.assertEqual([item["name"] for item in items], ["deploy"])
        waiting = self.start("lock", "deploy", "--", "sh", "-c", "echo second >> ledger")
        self.open_gate("gate")
        self.assertEqual(self.finish(holder).status, 0)
        self.assertEqual(self.finish(waiting).status, 0)
        self.assertEqual(self.ledger(), ["held", "second"])
        self.refused(4, "locks", "show", "deploy")
        self.assertEqual(self.ok("locks", "list", "--json").json["items"], [])
        self.assertEqual(self.redis.ask("EXISTS", "sekali:default:lock:deploy"), "0")

    def test_many_exclude_each_other(self):
        script = "mkdir inside && rmdir inside && echo run >> ledger"
        processes = [self.start("lock", "deploy", "--", "sh", "-c", script) for _ in range(10)]
        self.assertEqual([self.finish(process).status for process in processes], [0] * 10)
        self.assertEqual(len(self.ledger()), 10)

    def test_names_as_other_programs_write_them(self):
        self.environment["SEKALI_LOCK_PREFIX"] = ""
        self.environment["SEKALI_LOCK_PROFILE"] = "string"
        self.redis.ask("SET", "laravel_database_laravel_cache_:report", "abcdefghijklmnop",
                       "PX", "60000")
        error = self.refused(5, "lock", "laravel_database_laravel_cache_:report", "--no-wait", "--",
                             "true")
        self.assertIn("abcdefghijklmnop", error["message"])
        self.ok("locks", "break", "laravel_database_laravel_cache_:report", "--yes")
        token = self.ok("lock", "laravel_database_laravel_cache_:report", "--", "sh", "-c",
                        "echo $SEKALI_LOCK_TOKEN").out.strip()
        self.assertRegex(token, "^[0-9a-f-]{36}:1$")
        self.refused(2, "locks", "list")

    def test_a_key_of_the_other_profile_is_named(self):
        self.redis.ask("SET", "sekali:default:lock:deploy", "someone")
        error = self.refused(3, "lock", "deploy", "--", "true")
        self.assertIn("profile", error["message"])
        self.assertIn("--lock-profile string", error["hint"])

    def test_a_broken_lock_ends_the_command(self):
        holder = self.hold("deploy", "--ttl", "600ms")
        self.refused(2, "locks", "break", "deploy")
        self.ok("locks", "break", "deploy", "--yes", "--json")
        answer = self.finish(holder)
        self.assertEqual(answer.status, 5, answer.err)
        self.assertIn("lock lost", answer.err)
        self.refused(4, "locks", "break", "deploy", "--yes")

    def test_a_server_that_dies_ends_the_command(self):
        holder = self.hold("deploy", "--ttl", "600ms")
        self.redis.process.kill()
        answer = self.finish(holder)
        self.assertEqual(answer.status, 5, answer.err)

    def test_permits(self):
        one = self.hold("report", "--mode", "permits=2", ledger="one")
        self.ok("lock", "report", "--mode", "permits=2", "--no-wait", "--", "true")
        self.refused(5, "lock", "report", "--mode", "permits=1", "--no-wait", "--", "true")
        self.assertEqual(self.ok("locks", "show", "report", "--json").json["holders"], 1)
        self.open_gate("gate")
        self.assertEqual(self.finish(one).status, 0)
        self.refused(4, "locks", "show", "report")
        self.refused(2, "lock", "report", "--mode", "permits=0", "--", "true")
        self.refused(2, "lock", "report", "--mode", "read", "--", "true")

    def test_nobody_there(self):
        self.environment["SEKALI_LOCK_URL"] = "redis+unix:/nonexistent/redis.sock"
        self.refused(3, "lock", "deploy", "--no-wait", "--", "true")
        self.refused(3, "locks", "show", "deploy")
        self.refused(3, "locks", "list")

    def test_usage(self):
        for words in (["--lock-profile", "hash"], ["--lock-url", "redis://"],
                      ["--lock-url", "redis://:hunter2@h/x"]):
            error = self.refused(2, "lock", "deploy", *words, "--", "true")
            self.assertNotIn("hunter2", str(error))
        del self.environment["SEKALI_LOCK_URL"]
        self.refused(2, "lock", "deploy", "--lock-prefix", "x", "--", "true")
        self.ok("lock", "deploy", "--url", self.redis.url, "--", "true")

    def test_jobs_are_kept_out_and_keep_others_out(self):
        self.environment["SEKALI_LOCK_PREFIX"] = ""
        holder = self.hold("order:1")
        job = self.enqueue("mail.send", "{}", "--lock", "order:1")
        self.gate("job")
        worker = self.start("work", "--exec",
                            "mail.send=sh -c 'echo job >> ledger; read x <job'")
        self.wait_until(lambda: self.job(job)["waiting_for"] == "lock:order:1", "the job to park")
        self.open_gate("gate")
        self.assertEqual(self.finish(holder).status, 0)
        self.wait_until(lambda: self.ledger() == ["held", "job"], "the job to run")
        self.refused(5, "lock", "order:1", "--no-wait", "--", "true")
        self.open_gate("job")
        self.ok("lock", "order:1", "--wait", "30s", "--", "true")
        worker.terminate()
        self.assertEqual(self.finish(worker).status, 0)
        self.assertEqual(self.job(job)["attempts"], 1)

    def test_jobs_stay_where_they_are(self):
        self.ok("enqueue", "mail.send", "{}")
        self.assertEqual(len(self.ok("job", "list", "--json").json["items"]), 1)


if __name__ == "__main__":
    unittest.main()
