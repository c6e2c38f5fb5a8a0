import unittest

from support import CommandTest


class Explain(CommandTest):
    def test_the_document(self):
        job_id = self.enqueue("payment.charge", "--key", "payment:1001")
        document = self.ok("explain", "payment:1001", "--json").json
        self.assertEqual(set(document), {"key", "kind", "verdict", "jobs", "timeline", "causes"})
        self.assertEqual((document["key"], document["kind"]), ("payment:1001", "payment.charge"))
        self.assertEqual([job["id"] for job in document["jobs"]], [job_id])
        self.assertEqual(set(document["timeline"][0]),
                         {"at", "event", "job_id", "attempt", "epoch", "worker", "detail"})
        self.assertEqual(document, self.ok("explain", job_id, "--json").json)

    def test_an_unknown_key_names_the_nearest(self):
        self.enqueue("k", "--key", "payment:1001")
        error = self.refused(4, "explain", "payment:1002")
        self.assertIn("payment:1001", error["hint"])
        answer = self.run_command("explain", "payment:1002")
        self.assertEqual(answer.out, "")
        self.assertIn("payment:1001", answer.err)

    def test_a_key_of_several_kinds_must_be_chosen(self):
        self.enqueue("a", "--key", "x")
        self.enqueue("b", "--key", "x")
        error = self.refused(2, "explain", "x")
        self.assertIn("a, b", error["message"])
        self.assertEqual(self.ok("explain", "x", "--kind", "b", "--json").json["kind"], "b")

    def test_m04_why_is_it_not_running(self):
        self.enqueue("k", "--key", "ready")
        self.assertIn("no live worker serves", self.ok("explain", "ready").out)
        self.enqueue("k", "--key", "late", "--delay", "1h")
        self.assertRegex(self.ok("explain", "late").out, r"delayed until \S+Z \(in \S+\)")
        self.ok("queue", "pause", "default")
        self.assertIn("sekali queue resume default", self.ok("explain", "ready").out)

    def test_a_producer_that_repeats_itself_is_named(self):
        self.enqueue("k", "--key", "x")
        self.enqueue("k", "--key", "x")
        causes = self.ok("explain", "x", "--json").json["causes"]
        self.assertEqual([cause["cause"] for cause in causes], ["double_dispatch"])
        self.assertEqual(set(causes[0]), {"cause", "evidence", "advice"})


if __name__ == "__main__":
    unittest.main()
