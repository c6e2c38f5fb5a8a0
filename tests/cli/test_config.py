import os
import unittest

from support import CommandTest


class Config(CommandTest):
    def write(self, text):
        path = os.path.join(self.folder, "sekali.toml")
        with open(path, "w") as file:
            file.write(text)
        return path

    def test_flag_beats_environment_beats_file(self):
        path = self.write('namespace = "file"\n')
        self.enqueue("k", "--config", path)
        self.enqueue("k", environment={"SEKALI_NAMESPACE": "env", "SEKALI_CONFIG": path})
        self.enqueue("k", "--namespace", "flag", "--config", path,
                     environment={"SEKALI_NAMESPACE": "env"})
        for namespace in ("file", "env", "flag"):
            items = self.ok("job", "list", "--namespace", namespace, "--json").json["items"]
            self.assertEqual(len(items), 1, namespace)

    def test_every_flag_of_work_may_stand_in_the_file(self):
        path = self.write('exec = ["a=true", "b=sh -c \'exit 65\'"]\ndrain = true\n'
                          'on_unknown = ["a=hold"]\neffects = ["a=steps"]\non_busy = "b=skip"\n'
                          'concurrency = 2\nlease = "2s"\n')
        first, second = self.enqueue("a"), self.enqueue("b")
        self.ok("work", "--config", path)
        self.assertEqual(self.job(first)["state"], "succeeded")
        self.assertEqual(self.job(second)["state"], "dead")
        third = self.enqueue("a")
        self.ok("work", "--config", path, "--exec", "a=sh -c 'exit 65'")
        self.assertEqual(self.job(third)["state"], "dead", "the flag wins")

    def test_kinds_have_defaults(self):
        path = self.write('queue = "slow"\n[kinds."payment.charge"]\nqueue = "fast"\n'
                          'priority = 7\nmax_attempts = 3\n')
        item = self.job(self.enqueue("payment.charge", "--config", path))
        self.assertEqual((item["queue"], item["priority"], item["max_attempts"]), ("fast", 7, 3))
        self.assertEqual(self.job(self.enqueue("other", "--config", path))["queue"], "slow")
        called = self.enqueue("payment.charge", "--config", path, "--queue", "mine")
        self.assertEqual(self.job(called)["queue"], "mine")

    def test_a_kind_chooses_its_fingerprint(self):
        path = self.write('[kinds.k]\nfingerprint = "fields:/order"\n[kinds.n]\n'
                          'fingerprint = "none"\n')
        for kind in ("k", "n"):
            self.enqueue(kind, '{"order":1,"nonce":1}', "--key", "x", "--config", path)
            self.enqueue(kind, '{"order":1,"nonce":2}', "--key", "x", "--config", path)
        self.refused(5, "enqueue", "k", '{"order":2}', "--key", "x", "--config", path)
        self.enqueue("n", '{"order":2}', "--key", "x", "--config", path)

    def test_a_kind_without_records_takes_no_key(self):
        path = self.write('[kinds.k]\nrecord = "none"\n')
        self.assertIn("--key", self.refused(2, "enqueue", "k", "--key", "x", "--config",
                                            path)["message"])
        self.enqueue("k", "--config", path)

    def test_what_is_unknown_or_twice_is_refused_by_name(self):
        for text, name in (('nmespace = "x"\n', "nmespace"),
                           ('namespace = "x"\nnamespace = "y"\n', "namespace"),
                           ('[kinds.k]\nqueeu = "x"\n', "queeu"),
                           ('[payment]\nqueue = "x"\n', "payment"),
                           ('namespace = "not one"\n', "namespace"),
                           ('[kinds.k]\nfingerprint = "field:/x"\n', "field")):
            error = self.refused(2, "enqueue", "k", "--config", self.write(text))
            self.assertIn(name, error["message"], text)
            self.assertEqual(error["code"], "usage")
        self.refused(2, "status", "--config", "/nonexistent.toml")

    def test_what_children_inherit_reaches_no_job(self):
        environment = {"SEKALI_KEY": "inherited", "SEKALI_QUEUE": "inherited",
                       "SEKALI_LOCK_KEY": "inherited", "SEKALI_KIND": "inherited",
                       "SEKALI_ATTEMPT": "7", "SEKALI_JOB_ID": "x"}
        item = self.job(self.enqueue("k", environment=environment))
        self.assertEqual((item["kind"], item["queue"], item["lock_key"]), ("k", "default", None))
        self.assertEqual(item["key"], item["id"])


if __name__ == "__main__":
    unittest.main()
