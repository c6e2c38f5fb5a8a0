"""Every shell example of the README runs, and does what the README says of it."""
import os
import re
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def shell_blocks():
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as readme:
        return re.findall(r"^```sh\n(.*?)^```", readme.read(), re.S | re.M)


class Readme(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        programs = os.path.join(self.folder.name, "bin")
        os.mkdir(programs)
        os.symlink(os.environ["SEKALI"], os.path.join(programs, "sekali"))
        self.environment = {
            "PATH": programs + ":" + os.environ["PATH"],
            "HOME": self.folder.name,
            "XDG_STATE_HOME": os.path.join(self.folder.name, "state"),
            "LANG": "C.UTF-8",
        }

    def run_block(self, block):
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", block], cwd=self.folder.name,
                              env=self.environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, f"{block}\n--- stdout\n{done.stdout}"
                                             f"\n--- stderr\n{done.stderr}")
        return done.stdout

    def test_the_first_job_takes_effect_once(self):
        out = self.run_block(shell_blocks()[0])
        self.assertIn("took effect once", out)
        self.assertEqual(out.count("succeeded  payment:1001"), 1)
        self.assertEqual(out.count("duplicate  payment:1001"), 1)

    def test_a_dead_letter_is_retried(self):
        out = self.run_block(shell_blocks()[1])
        self.assertIn("permanent", out)
        self.assertIn('"state":"succeeded"', out)

    def test_once_prints_the_stored_output_again(self):
        out = self.run_block(shell_blocks()[2])
        self.assertEqual(out, "the backup ran\nthe backup ran\nnobody else deploys\n")

    def test_an_unknown_run_is_held(self):
        out = self.run_block(shell_blocks()[3])
        self.assertIn("held", out)

    def test_no_block_is_left_out(self):
        self.assertEqual(len(shell_blocks()), 4)


if __name__ == "__main__":
    unittest.main()
