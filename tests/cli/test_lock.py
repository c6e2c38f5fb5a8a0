import signal
import unittest

from support import BINARY, CommandTest


class Lock(CommandTest):
    def hold(self, name="deploy", *words):
        """Starts a holder that ends when its gate is opened."""
        self.gate("gate")
        process = self.start("lock", name, *words, "--", "sh", "-c",
                             "echo held >> ledger; read x <gate")
        self.wait_until(self.ledger, "the lock to be held")
        return process

    def test_the_status_is_the_commands_own(self):
        for script, status in (("exit 0", 0), ("exit 7", 7), ("exit 5", 5), ("kill -9 $$", 137),
                               ("kill -15 $$", 143)):
            answer = self.run_command("lock", "deploy", "--", "sh", "-c", script)
            self.assertEqual(answer.status, status, answer.err)
        self.assertEqual(self.run_command("lock", "deploy", "--", "/nonexistent").status, 127)
        self.assertEqual(self.run_command("lock", "deploy", "--", self.folder).status, 126)

    def test_output_and_input_pass_through(self):
        answer = self.ok("lock", "deploy", "--", "sh", "-c", "cat; echo err >&2", stdin="in\n")
        self.assertEqual((answer.out, answer.err), ("in\n", "err\n"))

    def test_one_at_a_time(self):
        holder = self.hold()
        error = self.refused(5, "lock", "deploy", "--no-wait", "--", "true")
        self.assertEqual(error["code"], "conflict")
        self.refused(5, "lock", "deploy", "--wait", "0s", "--", "true")
        self.refused(5, "lock", "deploy", "--wait", "50ms", "--", "true")
        self.assertEqual(self.run_command("lock", "deploy", "--no-wait", "--conflict-status", "75",
                                          "--", "true").status, 75)
        self.ok("lock", "other", "--no-wait", "--", "true")
        self.ok("lock", "deploy", "--namespace", "blue", "--no-wait", "--", "true")
        waiting = self.start("lock", "deploy", "--", "sh", "-c", "echo second >> ledger")
        self.open_gate("gate")
        self.assertEqual(self.finish(holder).status, 0)
        self.assertEqual(self.finish(waiting).status, 0)
        self.assertEqual(self.ledger(), ["held", "second"])

    def test_many_exclude_each_other(self):
        script = "mkdir inside && rmdir inside && echo run >> ledger"
        processes = [self.start("lock", "deploy", "--", "sh", "-c", script) for _ in range(10)]
        self.assertEqual([self.finish(process).status for process in processes], [0] * 10)
        self.assertEqual(len(self.ledger()), 10)

    def test_a_held_lock_is_shown(self):
        holder = self.hold("deploy", "--ttl", "20s")
        shown = self.ok("locks", "show", "deploy", "--json").json
        for field in ("name", "backend_key", "owner", "token", "ttl_ms", "holders"):
            self.assertIn(field, shown)
        self.assertEqual((shown["name"], shown["holders"]), ("deploy", 1))
        self.assertTrue(0 < shown["ttl_ms"] <= 20_000)
        items = self.ok("locks", "list", "--json").json["items"]
        self.assertEqual([item["token"] for item in items], [shown["token"]])
        self.open_gate("gate")
        self.finish(holder)
        self.refused(4, "locks", "show", "deploy")
        self.assertEqual(self.ok("locks", "list", "--json").json["items"], [])

    def test_a_lost_lock_ends_the_command(self):
        process = self.start("lock", "deploy", "--ttl", "600ms", "--grace", "10s", "--", "sh", "-c",
                             "trap 'echo told >> ledger; exit 0' TERM; echo held >> ledger; "
                             "tail -f /dev/null & wait")
        self.wait_until(self.ledger, "the lock to be held")
        self.refused(2, "locks", "break", "deploy")
        self.ok("locks", "break", "deploy", "--yes", "--json")
        answer = self.finish(process)
        self.assertEqual(answer.status, 5)
        self.assertIn("lock lost", answer.err)
        self.assertEqual(self.ledger(), ["held", "told"])
        self.refused(4, "locks", "break", "deploy", "--yes")

    def test_a_lost_lock_is_lost_whatever_the_command_said(self):
        holder = self.hold()
        self.ok("locks", "break", "deploy", "--yes")
        self.open_gate("gate")
        answer = self.finish(holder)
        self.assertEqual(answer.status, 5, answer.err)

    def test_without_renewal_the_lock_lapses(self):
        process = self.start("lock", "deploy", "--ttl", "500ms", "--no-renew", "--", "sh", "-c",
                             "echo held >> ledger; tail -f /dev/null & wait")
        answer = self.finish(process)
        self.assertEqual(answer.status, 5)
        self.assertIn("lock lost", answer.err)

    def test_renewal_outlives_the_life(self):
        holder = self.hold("deploy", "--ttl", "500ms")
        token = self.ok("locks", "show", "deploy", "--json").json["token"]
        self.refused(5, "lock", "deploy", "--wait", "1500ms", "--", "true")
        self.assertEqual(self.ok("locks", "show", "deploy", "--json").json["token"], token)
        self.open_gate("gate")
        self.assertEqual(self.finish(holder).status, 0)

    def test_the_fence_grows(self):
        fences = [int(self.ok("lock", "deploy", "--", "sh", "-c", "echo $SEKALI_LOCK_FENCE").out)
                  for _ in range(3)]
        self.assertEqual(fences, sorted(set(fences)))

    def test_one_document_with_json(self):
        answer = self.run_command("lock", "deploy", "--json", "--", "sh", "-c", "echo out; exit 3")
        self.assertEqual(answer.status, 3)
        self.assertEqual(set(answer.json), {"name", "token", "fence", "status"})
        self.assertEqual(answer.json["status"], 3)
        self.assertEqual(answer.err, "out\n")

    def test_signals_reach_the_command(self):
        process = self.start("lock", "deploy", "--", "sh", "-c",
                             "trap 'exit 9' TERM; echo held >> ledger; "
                             "tail -f /dev/null & wait")
        self.wait_until(self.ledger, "the lock to be held")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.finish(process).status, 9)
        self.ok("lock", "deploy", "--no-wait", "--", "true")

    def test_lists_by_pages(self):
        self.hold("c", "--", BINARY, "lock", "a", "--", BINARY, "lock", "b")
        first = self.ok("locks", "list", "--limit", "2", "--json").json
        self.assertEqual([item["name"] for item in first["items"]], ["a", "b"])
        rest = self.ok("locks", "list", "--after", first["next"], "--json").json
        self.assertEqual([item["name"] for item in rest["items"]], ["c"])
        self.assertIsNone(rest["next"])

    def test_names_that_are_commands(self):
        self.assertEqual(self.ok("lock", "list", "--", "echo", "hi").out, "hi\n")

    def test_usage(self):
        self.refused(2, "lock", "--", "true")
        self.refused(2, "lock", "deploy")
        self.refused(2, "lock", "deploy", "--ttl", "499ms", "--", "true")
        self.refused(2, "lock", "deploy", "--wait", "1s", "--no-wait", "--", "true")
        self.refused(2, "lock", "a\nb", "--", "true")
        self.refused(2, "lock", "deploy", "--mode", "read", "--", "true")
        self.ok("lock", "deploy", "--mode", "write", "--", "true")


if __name__ == "__main__":
    unittest.main()
