import os
import signal
import unittest

from support import CommandTest


class Bench(CommandTest):
    def scratch(self):
        return [name for name in os.listdir(self.folder) if name.startswith("sekali-bench-")]

    def test_a_file_system_in_memory_is_refused(self):
        if not os.path.isdir("/dev/shm") or not os.access("/dev/shm", os.W_OK):
            self.skipTest("no file system in memory")
        error = self.refused(2, "bench", "--folder", "/dev/shm")
        self.assertIn("lies in memory", error["message"])
        self.assertFalse([name for name in os.listdir("/dev/shm")
                          if name.startswith("sekali-bench-")])

    def test_a_folder_that_is_not_there(self):
        self.assertIn("nowhere", self.refused(2, "bench", "--folder", "nowhere")["message"])

    def test_postgres_is_measured_only_where_the_call_names_it(self):
        self.assertIn("--url", self.refused(2, "bench", "--backend", "postgres")["hint"])
        error = self.refused(2, "bench", "--folder", ".", "--url", "postgres://127.0.0.1:1/x")
        self.assertIn("--folder", error["message"])
        self.refused(3, "bench", "--url", "postgres://127.0.0.1:1/x")

    def test_a_signal_leaves_nothing_behind(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.start("bench", "--jobs", "1000")
            self.wait_until(self.scratch, "the bench to begin")
            process.send_signal(number)
            self.assertNotEqual(self.finish(process).status, 0)
            self.assertEqual(self.scratch(), [])


if __name__ == "__main__":
    unittest.main()
