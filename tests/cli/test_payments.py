"""The example program, against its own gateway."""

import os
import unittest

from support import BINARY, CommandTest

PROGRAM = os.environ["PAYMENTS"]


class Payments(CommandTest):
    program = PROGRAM

    def setUp(self):
        super().setUp()
        self.environment["PAYMENTS_GATEWAY"] = self.path("gateway.sock")
        self.start("gateway", self.path("gateway.sock"), self.path("gateway.ledger"))
        self.wait_until(lambda: os.path.exists(self.path("gateway.sock")), "the gateway")

    def balance(self, account):
        return int(self.ok("balance", account).out)

    def test_charges_and_refunds_of_one_account_come_out_right(self):
        ids = set()
        for order in range(12):
            ids.add(self.ok("charge", f"o{order}", "alice", "100").out)
            ids.add(self.ok("charge", f"o{order}", "alice", "100").out)
        for order in range(4):
            ids.add(self.ok("refund", f"o{order}", "alice", "40").out)
        self.assertEqual(len(ids), 28, "each call made a job")
        self.assertEqual(self.balance("alice"), 0)
        self.ok("--drain", "--concurrency", "8", "--lease", "2s")
        self.assertEqual(self.balance("alice"), -12 * 100 + 4 * 40)
        with open(self.path("gateway.ledger")) as file:
            moved = [line for line in file if line.startswith("move ")]
        self.assertEqual(len(moved), 16)

    def test_the_worker_has_the_flags_of_work(self):
        shown = self.ok("--help").out
        self.assertIn("--processes", shown)
        self.assertIn(f"Usage: {os.path.basename(PROGRAM)} [flags]", shown)
        self.assertEqual(self.run_command("--no-such-flag").status, 2)
        self.assertEqual(self.run_command("charge", "o", "a", "-5").status, 2)

    def test_other_jobs_wait_visibly(self):
        self.program = BINARY
        job_id = self.enqueue("mail.send")
        self.program = PROGRAM
        self.assertIn("mail.send", self.ok("--drain").err)
        self.program = BINARY
        self.assertEqual(self.job(job_id)["state"], "ready")


if __name__ == "__main__":
    unittest.main()
