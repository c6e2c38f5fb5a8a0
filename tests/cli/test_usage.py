import os
import subprocess
import unittest

from support import BINARY, CommandTest


class Usage(CommandTest):
    def test_version(self):
        self.assertRegex(self.ok("--version").out, r"^sekali \d+\.\d+\.\d+\n$")
        self.assertRegex(self.ok("--version", "--json").json["version"], r"^\d+\.\d+\.\d+$")

    def test_help_names_every_command(self):
        text = self.ok("--help").out
        for word in ("migrate", "enqueue", "job", "dead", "held", "queue", "unique", "worker",
                     "explain", "status", "check", "prune", "backoff"):
            self.assertIn(word, text)
        self.assertEqual(text, self.ok("help").out)
        self.assertEqual(text, self.ok("-h").out)

    def test_help_of_a_command_has_examples(self):
        for words in (["enqueue"], ["job", "list"], ["explain"], ["queue", "purge"]):
            text = self.ok(*words, "--help").out
            self.assertIn("Usage: sekali " + " ".join(words), text)
            self.assertIn("Examples:", text)
            self.assertEqual(text, self.ok("help", *words).out)
        self.assertIn("cancel", self.ok("job", "--help").out)

    def test_fault_points_are_listed(self):
        names = self.ok("--list-faults").out.splitlines()
        self.assertIn("commit.after", names)
        items = self.ok("--list-faults", "--json").json["items"]
        self.assertEqual([item["name"] for item in items], names)

    def test_an_unknown_command_names_the_nearest(self):
        answer = self.run_command("enqeue", "x")
        self.assertEqual(answer.status, 2)
        self.assertEqual(answer.out, "")
        self.assertIn("sekali enqueue", answer.err)
        self.assertIn("`sekali job list`", self.refused(2, "job", "lsit")["hint"])
        self.assertEqual(self.run_command().status, 2)
        self.assertEqual(self.run_command("job").status, 2)

    def test_unknown_and_repeated_flags_are_refused_by_name(self):
        error = self.refused(2, "enqueue", "k", "--lokc", "x")
        self.assertIn("--lokc", error["message"])
        self.assertIn("--lock", error["hint"])
        error = self.refused(2, "enqueue", "k", "--key", "a", "--key", "b")
        self.assertIn("--key", error["message"])

    def test_global_flags_work_before_and_behind_the_command(self):
        other = "sqlite:" + os.path.join(self.folder, "other.db")
        self.ok("--url", other, "--namespace", "blue", "enqueue", "k", "--key", "one")
        self.ok("enqueue", "k", "--key", "two", "--url", other, "--namespace=blue")
        before = self.ok("--json", "--url", other, "--namespace", "blue", "job", "list").json
        behind = self.ok("job", "list", "--json", "--url", other, "--namespace", "blue").json
        between = self.ok("job", "--json", "--namespace", "blue", "list", "--url", other).json
        self.assertEqual([item["key"] for item in before["items"]], ["one", "two"])
        self.assertEqual(before, behind)
        self.assertEqual(before, between)

    def test_words_behind_dashes_are_not_flags(self):
        self.enqueue("k", "--key=--json")
        answer = self.ok("explain", "--", "--json")
        self.assertTrue(answer.out.startswith("--json (k)"), answer.out)

    def test_namespaces_are_apart(self):
        job_id = self.enqueue("k", "--namespace", "blue")
        self.assertEqual(self.ok("job", "list", "--json").json["items"], [])
        self.refused(4, "job", "show", job_id)
        self.refused(4, "job", "cancel", job_id)

    def test_other_backends_are_refused_by_name_and_without_their_secrets(self):
        for url in ("redis://:hunter2@r/0", "amqp://a:hunter2@b"):
            answer = self.run_command("status", "--url", url)
            self.assertEqual(answer.status, 2)
            self.assertIn(url.split(":")[0], answer.err)
            self.assertNotIn("hunter2", answer.err + answer.out)
        away = self.run_command("status", "--url", "postgres://me:hunter2@127.0.0.1:1/x")
        self.assertEqual(away.status, 3, away.err)
        self.assertNotIn("hunter2", away.err + away.out)
        self.assertIn("library", self.refused(2, "status", "--url", "memory:")["hint"])
        self.assertIn("sqlite:PATH", self.refused(2, "status", "--url", "/a/b.db")["hint"])

    def test_the_default_store_is_in_the_state_folder_and_named(self):
        state = os.path.join(self.folder, "state")
        environment = {"XDG_STATE_HOME": state}
        del self.environment["SEKALI_URL"]
        answer = self.ok("enqueue", "k", environment=environment)
        database = os.path.join(state, "sekali", "sekali.db")
        self.assertIn(database, answer.err)
        self.assertEqual(os.stat(database).st_mode & 0o777, 0o600)
        self.assertEqual(os.stat(os.path.dirname(database)).st_mode & 0o777, 0o700)
        self.assertNotIn(database, self.ok("status", environment=environment).err)

    def test_reading_makes_no_database(self):
        for words in (["job", "list"], ["dead", "list"], ["held", "list"], ["queue", "list"],
                      ["unique", "list"], ["worker", "list"]):
            self.assertEqual(self.ok(*words, "--json").json, {"items": [], "next": None})
        self.ok("status", "--json")
        self.ok("check", "--max-dead", "0")
        self.refused(4, "explain", "key")
        self.refused(4, "job", "show", "01990000-0000-7000-8000-000000000001")
        error = self.refused(4, "queue", "pause", "default")
        self.assertIn("no database", error["message"])
        self.assertFalse(os.path.exists(self.database))

    def test_a_database_that_is_just_being_made_holds_nothing(self):
        open(self.database, "w").close()
        self.assertEqual(self.ok("job", "list", "--json").json, {"items": [], "next": None})
        self.refused(4, "explain", "key")

    def test_a_broken_database_is_told(self):
        with open(self.database, "wb") as file:
            file.write(b"this is no database" * 100)
        self.assertEqual(self.refused(3, "enqueue", "k")["code"], "refused")

    def test_an_answer_that_cannot_be_written_is_told(self):
        with open("/dev/full", "wb") as full:
            process = subprocess.run([BINARY, "enqueue", "k"], stdout=full,
                                     stderr=subprocess.PIPE, env=self.environment)
        self.assertEqual(process.returncode, 3)
        self.assertIn(b"stdout", process.stderr)


class Backoff(CommandTest):
    def delays(self, *words):
        items = self.ok("backoff", "--jitter", "0", "--json", *words).json["items"]
        return [(item["attempt"], item["delay_ms"]) for item in items]

    def test_schedule(self):
        self.assertEqual(self.delays()[:4], [(1, 1000), (2, 2000), (3, 4000), (4, 8000)])
        self.assertEqual(self.delays()[-1][0], 9)
        self.assertEqual(self.delays("--attempt", "1", "--attempt", "3", "--base", "5s"),
                         [(1, 5000), (3, 20000)])
        self.assertEqual(self.delays("--attempt", "18446744073709551615", "--cap", "1h"),
                         [(18446744073709551615, 3600000)])

    def test_jitter_takes_away_its_share_at_most(self):
        for _ in range(20):
            items = self.ok("backoff", "--attempt", "3", "--jitter", "0.5", "--json").json["items"]
            self.assertTrue(2000 <= items[0]["delay_ms"] <= 4000, items)

    def test_nonsense_is_refused(self):
        for words in (["--jitter", "1.5"], ["--factor", "0.5"], ["--base", "0s"], ["--base", "1"],
                      ["--base", "2h", "--cap", "1h"], ["--attempt", "0"], ["--attempt", "-1"],
                      ["--attempt", "18446744073709551616"]):
            self.refused(2, "backoff", *words)


if __name__ == "__main__":
    unittest.main()
