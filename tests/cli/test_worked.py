"""What people see of jobs that workers have had."""

import json
import signal
import unittest

from support import CommandTest, needs_proof_of_death

UUID = "01990000-0000-7000-8000-000000000001"


class WorkedTest(CommandTest):
    def drain(self, script, *words, kind="k"):
        return self.ok("work", "--drain", "--exec", f"{kind}=sh -c '{script}'", *words)

    def start_worker(self, script, *words, kind="k"):
        worker = self.start("work", "--exec", f"{kind}=sh -c '{script}'", *words)
        self.wait_until(lambda: self.ok("worker", "list", "--json").json["items"],
                        "the worker to be there")
        return worker

    def explain(self, key):
        return self.ok("explain", key, "--json").json

    def causes(self, key):
        return [cause["cause"] for cause in self.explain(key)["causes"]]


class Ended(WorkedTest):
    def test_a_result_is_json_where_it_is_json(self):
        results = {'{"a": [1]}': {"a": [1]}, "5": 5, "done": "done\n", "": None}
        for output, result in results.items():
            job_id = self.enqueue("k", json.dumps(output))
            self.drain("cat >/dev/null; " + (f"echo \"{output}\"" if output else "true")
                       if '"' not in output else "cat >/dev/null; printf \"{\\\"a\\\": [1]}\"")
            item = self.job(job_id)
            self.assertEqual(item["state"], "succeeded")
            self.assertEqual(item["result"], result)
            self.assertEqual((item["attempts"], item["worker"]), (1, None))
            self.assertIsNotNone(item["finished_at"])

    def test_success_once(self):
        self.enqueue("k", "--key", "a")
        self.enqueue("k", "--key", "a")
        self.drain("echo run >> ledger")
        self.assertEqual(self.ledger(), ["run"])
        document = self.explain("a")
        self.assertIn("took effect once", document["verdict"])
        self.assertEqual(sorted(job["state"] for job in document["jobs"]),
                         ["duplicate", "succeeded"])
        self.assertEqual(self.causes("a"), ["double_dispatch"])
        self.assertIn("start", [entry["event"] for entry in document["timeline"]])

    def test_a_verdict_is_short(self):
        job_id = self.enqueue("k")
        self.drain("for i in 1 2 3; do echo line $i >&2; done; exit 65")
        self.assertEqual(self.job(job_id)["error"], "line 1\nline 2\nline 3")
        verdict = self.explain(job_id)["verdict"]
        self.assertTrue(verdict.endswith("permanent; line 3."), verdict)

    def test_a_worker_ends_with_one_document(self):
        self.assertEqual(self.drain("true", "--json").json, {"status": "done", "drained": True})
        worker = self.start_worker("true", "--json")
        worker.terminate()
        self.assertEqual(self.finish(worker).json, {"status": "done", "drained": False})

    def test_a_kind_has_one_handler(self):
        for words in (["--exec", "k=true", "--exec", "k=false"],
                      ["--exec", "k=true", "--http", "k=http://127.0.0.1:1/"],
                      ["--exec", "k=true", "--effects", "k=steps", "--effects", "k=commit"]):
            self.assertIn(" k ", self.refused(2, "work", "--drain", *words)["message"] + " ")

    def test_a_dead_letter_and_its_second_life(self):
        job_id = self.enqueue("k", '{"n":1}', "--key", "a")
        self.drain("echo wrong card >&2; exit 65")
        listed = self.ok("dead", "list", "--json").json["items"]
        self.assertEqual([(i["id"], i["state"], i["attempts"]) for i in listed],
                         [(job_id, "dead", 1)])
        self.assertIn("wrong card", listed[0]["error"])
        letter = self.ok("dead", "show", job_id, "--json").json
        self.assertEqual((letter["id"], letter["key"], letter["steps"]), (job_id, "a", []))
        self.assertIn("is dead", self.explain("a")["verdict"])
        self.assertEqual(self.run_command("check", "--max-dead", "0").status, 1)
        self.assertEqual(self.ok("dead", "retry", job_id, "--as", "ana", "--json").json,
                         {"id": job_id, "status": "retried"})
        self.refused(5, "dead", "retry", job_id)
        self.drain("cat")
        item = self.job(job_id)
        self.assertEqual((item["state"], item["key"], item["result"]), ("succeeded", "a", {"n": 1}))
        self.assertIn("replay", self.causes("a"))
        self.assertIn("ana", self.ok("explain", "a").out)
        self.refused(5, "dead", "retry", job_id)

    def test_a_dead_letter_whose_key_succeeded_is_a_duplicate(self):
        dead = self.enqueue("k", "--key", "a")
        self.drain("exit 65")
        self.enqueue("k", "--key", "a")
        self.drain("echo run >> ledger")
        self.ok("dead", "retry", dead)
        self.drain("echo run >> ledger")
        self.assertEqual(self.job(dead)["state"], "duplicate")
        self.assertEqual(self.ledger(), ["run"])

    def test_many_dead_letters(self):
        ids = [self.enqueue("k") for _ in range(3)]
        self.drain("exit 65")
        dry = self.ok("dead", "drop", "--kind", "k", "--dry-run", "--json").json
        self.assertEqual([item["id"] for item in dry["items"]], ids)
        self.ok("dead", "drop", ids[0], "--yes")
        self.refused(4, "dead", "show", ids[0])
        done = self.ok("dead", "retry", "--kind", "k", "--rate", "50/s", "--json").json
        self.assertEqual((done["done"], done["refused"]), (2, 0))
        self.assertEqual({self.job(job_id)["state"] for job_id in ids[1:]}, {"ready"})

    def test_a_retry_is_run_now(self):
        job_id = self.enqueue("k", "--key", "a")
        self.start_worker("echo run >> ledger; test -e mended", "--retry-base", "1h",
                          "--retry-cap", "2h")
        self.wait_until(lambda: self.job(job_id)["state"] == "scheduled", "the first failure")
        self.assertIn("is tried again at", self.explain("a")["verdict"])
        self.assertEqual(self.job(job_id)["attempts"], 1)
        open(self.path("mended"), "w").close()
        self.ok("job", "retry", job_id)
        self.wait_until(lambda: self.job(job_id)["state"] == "succeeded", "the second attempt")
        self.assertEqual(len(self.ledger()), 2)
        self.assertEqual(set(self.causes("a")) & {"retry_after_error", "manual_retry"},
                         {"retry_after_error", "manual_retry"})


class Held(WorkedTest):
    def held(self, key="a"):
        """A job whose only run was killed, under hold."""
        job_id = self.enqueue("k", "--key", key)
        self.drain("echo run >> ledger; kill -9 $$", "--on-unknown", "k=hold")
        self.assertEqual(self.job(job_id)["state"], "held")
        return job_id

    def test_is_listed_and_told(self):
        job_id = self.held()
        items = self.ok("held", "list", "--json").json["items"]
        self.assertEqual([item["id"] for item in items], [job_id])
        self.assertIn("sekali held resolve " + job_id, self.explain("a")["verdict"])
        self.assertEqual(self.run_command("check", "--max-held", "0").status, 1)
        self.assertIn("held resolve", self.refused(5, "job", "cancel", job_id)["hint"])

    def test_succeeded(self):
        job_id = self.held()
        answer = self.ok("held", "resolve", job_id, "--succeeded", '{"charge":1}', "--as", "ana",
                         "--json").json
        self.assertEqual(answer, {"id": job_id, "status": "resolved", "state": "succeeded"})
        self.assertEqual(self.job(job_id)["result"], {"charge": 1})
        again = self.enqueue("k", "--key", "a")
        self.drain("echo run >> ledger")
        item = self.job(again)
        self.assertEqual((item["state"], item["result"]), ("duplicate", {"charge": 1}))
        self.assertEqual(self.ledger(), ["run"])

    def test_rerun(self):
        job_id = self.held()
        self.ok("held", "resolve", job_id, "--rerun")
        self.drain("echo run >> ledger")
        self.assertEqual(self.job(job_id)["state"], "succeeded")
        self.assertEqual(self.ledger(), ["run", "run"])
        self.assertIn("manual_retry", self.causes("a"))
        self.assertIn("crash_before_record", self.causes("a"))
        self.assertIn("may have happened up to twice", self.explain("a")["verdict"])

    def test_many(self):
        ids = [self.held(f"m{i}") for i in range(3)]
        self.refused(2, "held", "resolve", "--rerun")
        self.refused(2, "held", "resolve", ids[0], "--kind", "k", "--rerun")
        dry = self.ok("held", "resolve", "--kind", "k", "--rerun", "--dry-run", "--json").json
        self.assertEqual([item["id"] for item in dry["items"]], ids)
        self.assertEqual((dry["matched"], dry["dry_run"]), (3, True))
        self.assertEqual(self.job(ids[0])["state"], "held")
        one = self.ok("held", "resolve", "--key", "m0", "--dead", "--json").json
        self.assertEqual((one["done"], one["refused"]), (1, 0))
        rest = self.ok("held", "resolve", "--queue", "default", "--succeeded", "5", "--rate", "50",
                       "--as", "ana", "--json").json
        self.assertEqual((rest["done"], rest["refused"]), (2, 0))
        self.assertEqual([self.job(job_id)["state"] for job_id in ids],
                         ["dead", "succeeded", "succeeded"])

    def test_dead(self):
        job_id = self.held()
        self.ok("held", "resolve", job_id, "--dead")
        self.assertEqual(self.job(job_id)["state"], "dead")
        self.refused(5, "held", "resolve", job_id, "--rerun")

    def test_reconcile_asks_the_probe(self):
        for status, action, state in ((0, "succeeded", "succeeded"), (4, "rerun", "ready"),
                                      (9, "held", "held")):
            with self.subTest(status=status):
                key = f"p{status}"
                job_id = self.held(key)
                untouched = self.ok("reconcile", "--json").json["items"]
                self.assertIn((key, "held"), [(i["key"], i["action"]) for i in untouched])
                probe = f"k=sh -c 'echo asked $SEKALI_KEY >> asked; echo 5; exit {status}'"
                dry = self.ok("reconcile", "--probe", probe, "--dry-run", "--json").json
                self.assertTrue(dry["dry_run"])
                self.assertEqual(self.job(job_id)["state"], "held")
                items = self.ok("reconcile", "--probe", probe, "--json").json["items"]
                self.assertEqual([i["action"] for i in items if i["key"] == key], [action])
                self.assertIn("asked " + key, self.ledger("asked"))
                item = self.job(job_id)
                self.assertEqual(item["state"], state)
                self.assertEqual(item["result"], 5 if status == 0 else None)

    @needs_proof_of_death
    def test_reconcile_recovers_what_a_dead_worker_left(self):
        job_id = self.enqueue("k", "--key", "a")
        answer = self.run_command("work", "--drain", "--exec", "k=true",
                                  environment={"SEKALI_FAULT_AT": "handler.after"})
        self.assertNotEqual(answer.status, 0)
        self.assertEqual(self.job(job_id)["state"], "running")
        dry = self.ok("reconcile", "--dry-run", "--json").json["items"]
        self.assertEqual([(i["id"], i["action"]) for i in dry], [(job_id, "left")])
        items = self.ok("reconcile", "--json").json["items"]
        self.assertEqual([(i["id"], i["action"]) for i in items], [(job_id, "recovered")])
        item = self.job(job_id)
        self.assertEqual((item["state"], item["crashes"]), ("ready", 1))

    def test_reconcile_usage(self):
        self.enqueue("k")
        for probe in ("true", "k=", "a b=true", "k=a | b"):
            self.refused(2, "reconcile", "--probe", probe)
        self.refused(2, "reconcile", "--probe", "k=true", "--probe", "k=false")


class Live(WorkedTest):
    def test_who_is_there(self):
        self.start_worker("true", "--queues", "default,mail", "--concurrency", "3")
        listed = lambda *words: self.ok("worker", "list", "--json", *words).json["items"]
        worker = listed()[0]
        self.assertEqual(listed("--state", "live", "--kind", "k", "--queue", "mail"), [worker])
        for words in (["--state", "dead"], ["--kind", "x"], ["--queue", "x"], ["--key", "x"],
                      ["--after", worker["id"]]):
            self.assertEqual(listed(*words), [], words)
        self.assertEqual((worker["state"], worker["queues"], worker["kinds"],
                          worker["concurrency"]), ("live", ["default", "mail"], ["k"], 3))
        self.assertNotIn("no live worker", self.ok("enqueue", "k").err)
        self.assertIn("no live worker there handles this kind", self.ok("enqueue", "other").err)
        self.assertIn("no live worker serves it", self.ok("enqueue", "k", "--queue", "far").err)
        status = self.ok("status", "--json").json
        self.assertEqual((status["workers"], status["unserved"]), (1, ["far"]))

    def test_a_job_without_a_handler_waits(self):
        job_id = self.enqueue("other", "--key", "a")
        self.start_worker("true")
        item = self.job(job_id)
        self.assertEqual((item["state"], item["waiting_for"]), ("waiting", "handler"))
        listed = self.ok("job", "list", "--state", "waiting", "--json").json["items"]
        self.assertEqual([entry["id"] for entry in listed], [job_id])
        verdict = self.explain("a")["verdict"]
        self.assertIn("a worker that handles other", verdict)
        self.assertIn("handle k", verdict)

    def test_m04_names_the_holder_of_the_lock(self):
        self.gate("gate")
        first = self.enqueue("k", "--key", "first", "--lock", "order:1")
        self.start_worker("echo run >> ledger; test $SEKALI_KEY = second || read x <gate")
        self.wait_until(self.ledger, "the first one to run")
        second = self.enqueue("k", "--key", "second", "--lock", "order:1")
        self.wait_until(lambda: self.job(second)["waiting_for"] == "lock:order:1",
                        "the second one to wait")
        verdict = self.explain("second")["verdict"]
        for part in ('lock "order:1"', first, '"first"', "(in "):
            self.assertIn(part, verdict)
        lock = self.ok("locks", "show", "order:1", "--json").json
        self.assertEqual(lock["job_id"], first)
        self.open_gate("gate")
        self.wait_until(lambda: self.job(second)["state"] == "succeeded", "the second one")

    def test_a_running_job_is_asked_to_stop(self):
        job_id = self.enqueue("k")
        self.start_worker("echo run >> ledger; tail -f /dev/null & wait", "--grace", "1s")
        self.wait_until(self.ledger, "the job to run")
        self.assertEqual(self.job(job_id)["state"], "running")
        self.assertEqual(self.ok("job", "cancel", job_id, "--json").json["status"], "requested")
        self.wait_until(lambda: self.job(job_id)["state"] == "cancelled", "the cancel")

    def test_m05_logs_are_lines_of_json(self):
        self.enqueue("k", "--key", "\u202ea\u200b\"}", "--lock", "l")
        worker = self.start_worker("true")
        self.wait_until(lambda: self.ok("job", "list", "--state", "succeeded",
                                        "--json").json["items"], "the job")
        worker.send_signal(signal.SIGTERM)
        answer = self.finish(worker)
        self.assertEqual(answer.status, 0)
        lines = [json.loads(line) for line in answer.err.splitlines() if line.startswith("{")]
        about = [line for line in lines if line["key"] is not None]
        self.assertTrue(about, answer.err)
        for line in about:
            for field in ("job_id", "kind", "queue", "key", "lock_key", "lock_token", "attempt",
                          "epoch", "worker", "duration_ms", "result", "error_class", "time",
                          "level", "msg"):
                self.assertIn(field, line)
            self.assertEqual(line["key"], "\u202ea\u200b\"}")
            self.assertTrue(line["lock_token"].startswith(line["worker"] + "/"), line)


if __name__ == "__main__":
    unittest.main()
