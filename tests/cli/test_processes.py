"""Workers as processes: signals, supervision, recycling, and what they start."""

import json
import os
import resource
import signal
import unittest

from support import CommandTest


def children_of(pid):
    """The processes that this one has started and that are still there."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(child) for child in file.read().split()]
    except FileNotFoundError:
        return []


def is_there(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


class ProcessTest(CommandTest):
    def work(self, script, *words):
        return self.start("work", "--exec", f"k=sh -c '{script}'", *words)

    def workers(self, *words):
        return self.ok("worker", "list", "--json", *words).json["items"]

    def wait_for_workers(self, count):
        self.wait_until(lambda: len(self.workers("--state", "live")) == count, f"{count} workers")
        return self.workers("--state", "live")

    def wait_for_state(self, job_id, state):
        self.wait_until(lambda: self.job(job_id)["state"] == state, f"the job to be {state}")
        return self.job(job_id)

    def stop(self, process):
        process.send_signal(signal.SIGTERM)
        return self.finish(process)

    def events(self, job_id):
        return [entry["event"] for entry in self.ok("explain", job_id, "--json").json["timeline"]]


class Signals(ProcessTest):
    def test_g13_sigterm_lets_what_runs_finish_and_claims_nothing_more(self):
        self.gate("gate")
        first = self.enqueue("k")
        worker = self.work("echo run >> ledger; read x <gate", "--concurrency", "1")
        self.wait_until(self.ledger, "the first one to run")
        second = self.enqueue("k")
        worker.send_signal(signal.SIGTERM)
        self.wait_until(lambda: self.workers("--state", "stopping"), "the worker to stop")
        self.open_gate("gate")
        self.assertEqual(self.finish(worker).status, 0)
        self.assertEqual(self.job(first)["state"], "succeeded")
        self.assertEqual(self.job(second)["state"], "ready")
        self.assertEqual(len(self.ledger()), 1)
        self.assertEqual(self.workers(), [])

    def test_g01_what_outlives_the_grace_is_handed_back(self):
        job_id = self.enqueue("k")
        worker = self.work("echo run >> ledger; tail -f /dev/null & wait", "--grace", "1s")
        self.wait_until(self.ledger, "the job to run")
        self.assertEqual(self.stop(worker).status, 0)
        item = self.job(job_id)
        self.assertEqual((item["state"], item["attempts"], item["crashes"]), ("ready", 0, 0))
        self.assertIn("interrupted", self.events(job_id))

    def test_a_second_signal_ends_at_once(self):
        job_id = self.enqueue("k")
        worker = self.work("trap \"\" TERM; echo $$ >> ledger; tail -f /dev/null", "--grace", "1h")
        self.wait_until(self.ledger, "the job to run")
        worker.send_signal(signal.SIGTERM)
        self.wait_until(lambda: self.workers("--state", "stopping"), "the worker to stop")
        worker.send_signal(signal.SIGINT)
        self.finish(worker)
        self.assertFalse(is_there(int(self.ledger()[0])), "its child is gone")
        item = self.job(job_id)
        self.assertEqual((item["state"], item["attempts"]), ("ready", 0))

    def test_usr1_takes_nothing_more_and_lets_what_runs_go_on(self):
        self.gate("gate")
        first = self.enqueue("k")
        worker = self.work("echo run >> ledger; read x <gate")
        self.wait_until(self.ledger, "the first one to run")
        worker.send_signal(signal.SIGUSR1)
        self.wait_until(lambda: self.workers("--state", "stopping"), "the worker to be quiet")
        second = self.enqueue("k")
        self.assertIn("no live worker", self.ok("enqueue", "k").err)
        self.open_gate("gate")
        self.wait_for_state(first, "succeeded")
        self.assertEqual(self.job(second)["state"], "ready")
        self.assertIsNone(worker.poll())
        self.assertEqual(self.stop(worker).status, 0)


class Shortage(ProcessTest):
    def test_a_handler_that_cannot_be_started_now_costs_no_attempt(self):
        worker = self.work("echo run >> ledger", "--retry-base", "50ms", "--retry-cap", "50ms")
        self.wait_for_workers(1)
        (guard,) = children_of(worker.pid)
        open_files = len(os.listdir(f"/proc/{guard}/fd"))
        usual = resource.prlimit(guard, resource.RLIMIT_NOFILE)
        resource.prlimit(guard, resource.RLIMIT_NOFILE, (open_files, usual[1]))
        job_id = self.enqueue("k", "--max-attempts", "1")
        self.wait_until(lambda: "interrupted" in self.events(job_id), "the hand-back")
        item = self.job(job_id)
        self.assertEqual((item["attempts"], item["crashes"]), (0, 0))
        self.assertIn("cannot run", item["error"])
        resource.prlimit(guard, resource.RLIMIT_NOFILE, usual)
        self.assertEqual(self.wait_for_state(job_id, "succeeded")["attempts"], 1)
        self.assertEqual(self.ledger(), ["run"])
        self.assertEqual(self.stop(worker).status, 0)

    def test_a_program_that_is_not_there_is_a_failed_attempt(self):
        job_id = self.enqueue("k", "--max-attempts", "1")
        self.ok("work", "--drain", "--exec", "k=/nonexistent/program")
        item = self.job(job_id)
        self.assertEqual((item["state"], item["attempts"]), ("dead", 1))
        self.assertIn("cannot run /nonexistent/program", item["error"])


class Recycling(ProcessTest):
    def test_a_worker_that_lost_its_guard_begins_anew(self):
        worker = self.work("echo run >> ledger")
        (before,) = self.wait_for_workers(1)
        (guard,) = children_of(worker.pid)
        os.kill(guard, signal.SIGKILL)
        self.wait_until(
            lambda: [w for w in self.workers("--state", "live") if w["id"] != before["id"]],
            "its next life")
        self.assertIsNone(worker.poll(), "it is the same process")
        self.wait_for_state(self.enqueue("k"), "succeeded")
        self.assertEqual(self.stop(worker).status, 0)

    def test_a_child_dies_with_the_guard_and_its_job_runs_again(self):
        job_id = self.enqueue("k")
        worker = self.work("echo $$ >> ledger; test -e again || tail -f /dev/null",
                           "--retry-base", "10ms", "--retry-cap", "10ms")
        self.wait_until(self.ledger, "the job to run")
        (guard,) = children_of(worker.pid)
        open(self.path("again"), "w").close()
        os.kill(guard, signal.SIGKILL)
        item = self.wait_for_state(job_id, "succeeded")
        self.assertEqual((item["attempts"], item["crashes"]), (1, 0))
        self.assertEqual(len(self.ledger()), 2)
        self.assertFalse(is_there(int(self.ledger()[0])))
        self.assertEqual(self.stop(worker).status, 0)


class Supervision(ProcessTest):
    def logged(self, answer):
        lines = answer.err.splitlines()
        return [json.loads(line)["msg"] for line in lines if line.startswith("{")]

    def test_a_killed_worker_is_replaced_and_its_job_runs_again(self):
        supervisor = self.work("echo $PPID $$ >> ledger; test -e again || tail -f /dev/null",
                               "--processes", "2", "--lease", "1s", "--retry-base", "10ms",
                               "--retry-cap", "10ms")
        before = {worker["id"] for worker in self.wait_for_workers(2)}
        job_id = self.enqueue("k")
        self.wait_until(self.ledger, "the job to run")
        owner = self.job(job_id)["worker"]
        self.assertIn(owner, before)
        open(self.path("again"), "w").close()
        (pid,) = [worker["pid"] for worker in self.workers() if worker["id"] == owner]
        self.assertIn(pid, children_of(supervisor.pid))
        os.kill(pid, signal.SIGKILL)
        item = self.wait_for_state(job_id, "succeeded")
        self.assertEqual((item["attempts"], item["crashes"]), (1, 1))
        self.wait_until(lambda: len({w["id"] for w in self.workers("--state", "live")}) == 2,
                        "another in its place")
        self.assertNotIn(owner, {worker["id"] for worker in self.workers("--state", "live")})
        first_child = int(self.ledger()[0].split()[1])
        self.assertFalse(is_there(first_child), "its guard has ended the child")
        answer = self.stop(supervisor)
        self.assertEqual(answer.status, 0)
        self.assertTrue(any("killed by signal 9" in line for line in self.logged(answer)))
        self.assertEqual(self.workers("--state", "live"), [])

    def test_drain_ends_them_all(self):
        ids = [self.enqueue("k") for _ in range(20)]
        answer = self.ok("work", "--drain", "--processes", "3", "--exec",
                         "k=sh -c 'echo $PPID >> ledger'")
        self.assertEqual({self.job(job_id)["state"] for job_id in ids}, {"succeeded"})
        self.assertEqual(len(self.ledger()), 20)
        self.assertEqual(sum("exit status 0" in line for line in self.logged(answer)), 3)

    def test_signals_reach_every_worker(self):
        supervisor = self.work("echo run >> ledger", "--processes", "2")
        self.wait_for_workers(2)
        pids = children_of(supervisor.pid)
        supervisor.send_signal(signal.SIGUSR1)
        self.wait_until(lambda: len(self.workers("--state", "stopping")) == 2, "both to be quiet")
        self.assertEqual(self.stop(supervisor).status, 0)
        self.assertEqual([pid for pid in pids if is_there(pid)], [])

    def test_nothing_outlives_a_killed_supervisor(self):
        self.gate("gate")
        supervisor = self.work("echo $$ >> ledger; read x <gate", "--processes", "2",
                               "--grace", "500ms")
        self.wait_for_workers(2)
        workers = children_of(supervisor.pid)
        self.enqueue("k")
        self.wait_until(self.ledger, "the job to run")
        child = int(self.ledger()[0])
        supervisor.kill()
        self.wait_until(lambda: not any(is_there(pid) for pid in [*workers, child]),
                        "workers and child to end")
        self.assertEqual(self.workers("--state", "live"), [])


if __name__ == "__main__":
    unittest.main()
