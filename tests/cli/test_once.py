import os
import signal
import unittest

from support import CommandTest, needs_proof_of_death

RUN = "echo run >> ledger; echo out; echo err >&2"


class Once(CommandTest):
    def once(self, script, *words, key="k", **how):
        return self.run_command("once", "--key", key, *words, "--", "sh", "-c", script, **how)

    def start_once(self, script, *words, key="k", **how):
        return self.start("once", "--key", key, *words, "--", "sh", "-c", script, **how)

    def held_id(self):
        items = self.ok("held", "list", "--json").json["items"]
        self.assertEqual(len(items), 1)
        return items[0]["id"]

    def live(self):
        return [item["state"] for item in self.ok("job", "list", "--json").json["items"]
                if item["state"] in ("ready", "scheduled", "running", "waiting", "held")]

    def test_runs_once_and_prints_what_is_stored(self):
        first = self.once(RUN)
        self.assertEqual((first.status, first.out, first.err), (0, "out\n", "err\n"))
        again = self.once("echo other >> ledger; echo other")
        self.assertEqual((again.status, again.out), (0, "out\n"))
        self.assertIn("was done at", again.err)
        self.assertEqual(self.ledger(), ["run"])

    def test_keys_and_namespaces_are_apart(self):
        self.once(RUN)
        self.once(RUN, key="other")
        self.run_command("once", "--namespace", "blue", "--key", "k", "--", "sh", "-c", RUN)
        self.assertEqual(len(self.ledger()), 3)

    def test_one_document_with_json(self):
        first = self.once(RUN, "--json")
        self.assertEqual(
            (first.json["ran"], first.json["status"], first.json["stdout"]), (True, 0, "out\n"))
        self.assertIn("out\n", first.err)
        again = self.once(RUN, "--json").json
        self.assertEqual(set(again), {"key", "job_id", "ran", "status", "stdout"})
        self.assertEqual((again["ran"], again["stdout"]), (False, "out\n"))
        self.assertEqual(again["job_id"], first.json["job_id"])

    def test_a_failure_is_an_answer_that_is_not_kept(self):
        self.assertEqual(self.once(RUN + "; exit 3").status, 3)
        self.assertEqual(self.once(RUN + "; exit 137").status, 137)
        self.assertEqual(self.once(RUN).status, 0)
        self.assertEqual(len(self.ledger()), 3)
        self.assertEqual(self.ok("dead", "list", "--json").json["items"], [])
        self.assertEqual(self.ok("held", "list", "--json").json["items"], [])

    def test_a_failure_is_kept_where_that_is_asked_for(self):
        self.assertEqual(self.once(RUN + "; exit 3", "--store-failure").status, 3)
        again = self.once(RUN)
        self.assertEqual((again.status, again.out), (3, "out\n"))
        self.assertEqual(self.ledger(), ["run"])

    def test_a_command_that_cannot_be_run(self):
        self.assertEqual(self.run_command("once", "--key", "k", "--", "/nonexistent").status, 127)
        self.assertEqual(self.run_command("once", "--key", "k", "--", self.folder).status, 126)
        self.assertEqual(self.once(RUN).status, 0)

    def test_a_killed_command_is_held(self):
        answer = self.once("echo run >> ledger; kill -9 $$")
        self.assertEqual(answer.status, 137)
        error = self.refused(5, "once", "--key", "k", "--", "sh", "-c", RUN)
        self.assertIn("held", error["message"])
        job_id = self.held_id()
        self.assertIn(f"sekali held resolve {job_id} --succeeded RESULT | --rerun | --dead",
                      error["hint"])
        self.assertIn(job_id, answer.err)
        self.assertEqual(self.ledger(), ["run"])

    def test_a_person_answers_what_is_held(self):
        for answer, status, runs in ((["--succeeded", "by hand\n"], 0, 1), (["--rerun"], 0, 2),
                                     (["--dead"], 0, 2)):
            key = answer[0]
            self.once("echo run >> ledger" + key + "; kill -9 $$", key=key)
            self.ok("held", "resolve", self.held_id(), *answer)
            again = self.once("echo run >> ledger" + key + "; echo out", key=key)
            self.assertEqual(again.status, status, again.err)
            self.assertEqual(again.out, "by hand\n" if runs == 1 else "out\n")
            self.assertEqual(len(self.ledger("ledger" + key)), runs)
            self.assertEqual(self.live(), [])

    def test_rerun_runs_again(self):
        self.assertEqual(self.once("kill -9 $$", "--on-unknown", "rerun").status, 137)
        self.assertEqual(self.live(), [], "nobody would ever claim a job of that caller")
        self.assertEqual(self.once(RUN, "--on-unknown", "rerun").status, 0)

    @needs_proof_of_death
    def test_a_dead_callers_job_ends_with_the_next_call(self):
        for key, policy, left in (("k1", "rerun", []), ("k2", "hold", ["held"])):
            killed = self.once(RUN, "--on-unknown", policy, key=key,
                               environment={"SEKALI_FAULT_AT": "handler.before"})
            self.assertEqual(killed.status, -signal.SIGKILL)
            self.assertEqual(self.once(RUN, key=key + " of another").status, 0)
            self.assertEqual(self.live(), left, key)
        self.assertEqual(self.once(RUN, "--on-unknown", "rerun", key="k1").status, 0)

    def test_the_stricter_policy_rules(self):
        self.once("kill -9 $$", "--on-unknown", "hold")
        self.assertEqual(self.once(RUN, "--on-unknown", "rerun").status, 5)

    @needs_proof_of_death
    def test_a_dead_caller_at_every_point(self):
        for point, status, runs in (("begin.before", 0, 1), ("begin.after", 5, 0),
                                    ("handler.before", 5, 0), ("handler.after", 5, 1),
                                    ("commit.before", 5, 1), ("commit.after", 0, 1)):
            script = f"echo run >> {point}; echo out"
            killed = self.once(script, key=point, environment={"SEKALI_FAULT_AT": point})
            self.assertEqual(killed.status, -signal.SIGKILL, point)
            again = self.once(script, "--wait", "0s", key=point)
            self.assertEqual(again.status, status, point + again.err)
            self.assertEqual(len(self.ledger(point)), runs, point)
            if status == 5:
                self.assertIn("held resolve", again.err)

    def test_others_wait_for_the_answer(self):
        self.gate("gate")
        first = self.start_once("echo run >> ledger; read x <gate; echo out")
        self.wait_until(self.ledger, "the first one to begin")
        others = [self.start_once("echo run >> ledger; echo other") for _ in range(5)]
        busy = self.once("echo run >> ledger", "--wait", "0s")
        self.assertEqual(busy.status, 5)
        self.assertEqual(self.refused(5, "once", "--key", "k", "--wait", "10ms", "--",
                                      "true")["code"], "conflict")
        self.open_gate("gate")
        self.assertEqual(self.finish(first).out, "out\n")
        for other in others:
            answer = self.finish(other)
            self.assertEqual((answer.status, answer.out), (0, "out\n"))
        self.assertEqual(self.ledger(), ["run"])

    def test_the_next_in_line_runs_when_the_first_one_fails(self):
        self.gate("gate")
        first = self.start_once("echo first >> ledger; read x <gate; exit 3")
        self.wait_until(self.ledger, "the first one to begin")
        second = self.start_once("echo second >> ledger; echo out")
        self.open_gate("gate")
        self.assertEqual(self.finish(first).status, 3)
        self.assertEqual(self.finish(second).out, "out\n")
        self.assertEqual(self.ledger(), ["first", "second"])

    def test_a_waiting_caller_may_be_interrupted(self):
        self.gate("gate")
        first = self.start_once("echo run >> ledger; read x <gate")
        self.wait_until(self.ledger, "the first one to begin")
        waiting = self.start_once("true")
        self.wait_until(lambda: len(os.listdir(f"/proc/{waiting.pid}/task")) > 2,
                        "the second one to wait, for which it has a thread more")
        waiting.send_signal(signal.SIGTERM)
        self.assertEqual(self.finish(waiting).status, 128 + signal.SIGTERM)
        self.open_gate("gate")
        self.assertEqual(self.finish(first).status, 0)

    def test_signals_reach_the_command(self):
        process = self.start_once("trap 'echo told >> ledger; exit 7' TERM; echo up >> ledger; "
                                  "tail -f /dev/null & wait")
        self.wait_until(self.ledger, "the command to begin")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.finish(process).status, 7)
        self.assertIn("told", self.ledger())

    def test_retention(self):
        self.once(RUN, "--keep", "1ms")
        self.once(RUN, "--keep", "30d")
        self.once(RUN)
        self.assertEqual(len(self.ledger()), 2)

    def test_the_result_is_capped_and_marked(self):
        answer = self.once("yes | head -c 200000")
        self.assertEqual(len(answer.out), 200000)
        again = self.once("true")
        self.assertEqual(again.status, 0)
        self.assertLessEqual(len(again.raw), 65536)
        self.assertIn("cut", again.out[-40:])

    def test_hostile_output_is_a_success_all_the_same(self):
        self.assertEqual(self.once(r"printf '\000\377\033[2J'").status, 0)
        self.assertEqual(self.once("exit 1").status, 0)

    def test_the_child_finds_its_run(self):
        answer = self.once('echo "$SEKALI_KEY $SEKALI_KIND $SEKALI_ATTEMPT $SEKALI_EPOCH"; '
                           'test -n "$SEKALI_JOB_ID" && test -n "$SEKALI_STEP_KEY_PREFIX"')
        self.assertEqual((answer.status, answer.out), (0, "k once 1 1\n"))

    def test_a_running_one_is_seen(self):
        self.gate("gate")
        process = self.start_once("echo run >> ledger; read x <gate")
        self.wait_until(self.ledger, "the command to begin")
        job = self.ok("job", "list", "--key", "k", "--json").json["items"][0]
        self.assertEqual((job["state"], job["kind"]), ("running", "once"))
        workers = self.ok("worker", "list", "--json").json["items"]
        self.assertEqual([(w["id"], w["pid"], w["running"]) for w in workers],
                         [(job["worker"], process.pid, 1)])
        self.open_gate("gate")
        self.finish(process)
        self.assertEqual(self.ok("worker", "list", "--json").json["items"], [])

    def test_usage(self):
        self.refused(2, "once", "--", "true")
        self.refused(2, "once", "--key", "k")
        self.refused(2, "once", "--key", "", "--", "true")
        self.refused(2, "once", "--key", "k", "--keep", "0s", "--", "true")
        self.refused(2, "once", "--key", "k", "--on-unknown", "probe", "--", "true")


if __name__ == "__main__":
    unittest.main()
