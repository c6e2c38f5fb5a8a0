import sqlite3
import unittest

from support import ITEM_FIELDS, CommandTest, needs_file


class Lists(CommandTest):
    def ids(self, *words):
        return [item["id"] for item in self.ok("job", "list", "--json", *words).json["items"]]

    def test_filters(self):
        a = self.enqueue("a", "--queue", "q1", "--key", "x")
        b = self.enqueue("b", "--queue", "q1", "--delay", "1h")
        c = self.enqueue("a", "--queue", "q2")
        self.assertEqual(self.ids(), [a, b, c])
        self.assertEqual(self.ids("--kind", "a"), [a, c])
        self.assertEqual(self.ids("--queue", "q1"), [a, b])
        self.assertEqual(self.ids("--key", "x"), [a])
        self.assertEqual(self.ids("--state", "scheduled"), [b])
        self.assertEqual(self.ids("--state", "ready", "--kind", "a", "--queue", "q2"), [c])
        self.assertEqual(self.ids("--state", "dead"), [])
        self.refused(2, "job", "list", "--state", "gone")
        for limit in ("0", "-1", "10001", "x"):
            self.refused(2, "job", "list", "--limit", limit)

    def test_pages(self):
        ids = [self.enqueue("k") for _ in range(7)]
        for state in ([], ["--state", "ready"]):
            seen = []
            after = []
            for _ in range(10):
                page = self.ok("job", "list", "--json", "--limit", "3", *state, *after).json
                self.assertEqual(set(page), {"items", "next"})
                self.assertLessEqual(len(page["items"]), 3)
                seen += [item["id"] for item in page["items"]]
                if page["next"] is None:
                    break
                after = ["--after", page["next"]]
            self.assertEqual(seen, ids)

    def test_items_have_every_field(self):
        self.enqueue("k")
        items = self.ok("job", "list", "--json").json["items"]
        self.assertEqual(set(items[0]), ITEM_FIELDS)

    def test_a_table_for_people(self):
        job_id = self.enqueue("k", "--key", "a")
        text = self.ok("job", "list").out
        self.assertIn(job_id, text)
        self.assertTrue(text.startswith("ID"))
        self.assertEqual(self.ok("dead", "list").out, "")
        self.assertIn(job_id, self.ok("job", "show", job_id).out)


class View(CommandTest):
    @needs_file
    def test_shows_what_lists_show(self):
        """Every field of `sekali_v_jobs` is that of the item."""
        self.enqueue("k", "--key", "a", "--lock", "l", "--unique", "u", "--priority", "3",
                     "--max-attempts", "4")
        self.enqueue("k", "--queue", "mail")
        self.enqueue("k", "--delay", "1h")
        due = self.enqueue("k", "--delay", "1ms")
        self.ok("job", "cancel", self.enqueue("k", "--key", "gone"))
        self.ok("queue", "pause", "mail")
        self.wait_until(lambda: self.job(due)["state"] == "ready", "the job to be due")
        items = self.ok("job", "list", "--json").json["items"]
        with sqlite3.connect(self.database) as database:
            database.row_factory = sqlite3.Row
            rows = {row["id"]: dict(row) for row in
                    database.execute("select * from sekali_v_jobs where namespace = 'default'")}
        database.close()
        self.assertEqual(len(items), 5)
        for item in items:
            row = rows[item["id"]]
            self.assertEqual(row.pop("namespace"), "default")
            self.assertEqual(row, item)


class EveryList(CommandTest):
    LISTS = (["job"], ["dead"], ["held"], ["queue"], ["unique"], ["worker"])

    def test_takes_the_same_flags(self):
        self.enqueue("k", "--unique", "u")
        for words in self.LISTS:
            state = "live" if words == ["worker"] else "scheduled"
            page = self.ok(*words, "list", "--json", "--state", state, "--kind", "other", "--queue",
                           "q", "--key", "x", "--limit", "5").json
            self.assertEqual(page, {"items": [], "next": None}, words)

    def test_queues_by_name_and_by_their_jobs(self):
        for name in ("c", "a", "b"):
            self.enqueue("k" + name, "--queue", name, "--key", "x" + name)
        self.ok("job", "cancel", self.enqueue("k", "--queue", "a"))
        names = lambda *words: [
            item["queue"] for item in self.ok("queue", "list", "--json", *words).json["items"]]
        self.assertEqual(names(), ["a", "b", "c"])
        self.assertEqual(names("--state", "cancelled"), ["a"])
        self.assertEqual(names("--kind", "kb"), ["b"])
        self.assertEqual(names("--key", "xc", "--state", "ready"), ["c"])
        self.assertEqual(names("--queue", "b"), ["b"])
        page = self.ok("queue", "list", "--limit", "2", "--json").json
        self.assertEqual(page["next"], "b")
        self.assertEqual(names("--after", page["next"]), ["c"])

    def test_slots_by_either_key(self):
        first = self.enqueue("k", "--unique", "u1", "--key", "a")
        second = self.enqueue("k", "--unique", "u2")
        ids = lambda *words: [
            item["id"] for item in self.ok("unique", "list", "--json", *words).json["items"]]
        self.assertEqual(ids(), [first, second])
        self.assertEqual(ids("--key", "u2"), [second])
        self.assertEqual(ids("--key", "a"), [first])
        page = self.ok("unique", "list", "--limit", "1", "--json").json
        self.assertEqual([item["id"] for item in page["items"]], [first])
        self.assertEqual(ids("--after", page["next"]), [second])

    def test_a_state_that_a_list_cannot_hold_gives_an_empty_one_and_a_refused_act(self):
        self.enqueue("k")
        self.assertEqual(self.ok("dead", "list", "--state", "ready", "--json").json["items"], [])
        self.refused(2, "dead", "drop", "--state", "ready", "--yes")


class Queues(CommandTest):
    def queue(self, name):
        items = self.ok("queue", "list", "--json").json["items"]
        return next(item for item in items if item["queue"] == name)

    def test_pause_and_resume(self):
        job_id = self.enqueue("k", "--queue", "mail")
        self.assertEqual(self.ok("queue", "pause", "mail", "--json").json,
                         {"queue": "mail", "paused": True})
        self.assertTrue(self.queue("mail")["paused"])
        item = self.job(job_id)
        self.assertEqual((item["state"], item["waiting_for"]), ("waiting", "pause"))
        listed = self.ok("job", "list", "--state", "waiting", "--json").json["items"]
        self.assertEqual([entry["id"] for entry in listed], [job_id])
        self.assertEqual(self.ok("job", "list", "--state", "ready", "--json").json["items"], [])
        self.ok("queue", "resume", "mail")
        self.assertFalse(self.queue("mail")["paused"])
        self.assertEqual(self.job(job_id)["state"], "ready")

    @needs_file
    def test_who_paused_and_resumed_is_recorded(self):
        self.enqueue("k", "--queue", "mail")
        self.ok("queue", "pause", "mail")
        self.ok("queue", "resume", "mail", "--as", "ana")
        with sqlite3.connect(self.database) as database:
            done = [row[0] for row in database.execute(
                "select detail from sekali_v_events where event = 'resolved' order by at")]
        database.close()
        self.assertTrue(done[0].startswith("queue mail paused by "), done)
        self.assertEqual(done[1:], ["queue mail resumed by ana"])

    def test_numbers(self):
        self.enqueue("k")
        self.enqueue("k", "--delay", "1h")
        queue = self.queue("default")
        self.assertEqual((queue["ready"], queue["scheduled"], queue["live_workers"]), (1, 1, 0))
        status = self.ok("status", "--json").json
        self.assertEqual(status["unserved"], ["default"])
        self.assertEqual(status["ready"], 1)
        self.assertEqual(status["dead"], 0)

    def test_purge(self):
        keep = self.enqueue("k", "--queue", "other")
        gone = [self.enqueue("k", "--unique", "u"), self.enqueue("k", "--delay", "1h")]
        self.assertIn("--yes", self.refused(2, "queue", "purge", "default")["hint"])
        dry = self.ok("queue", "purge", "default", "--dry-run", "--json").json
        self.assertEqual((dry["matched"], dry["dry_run"]), (2, True))
        self.assertEqual(self.job(gone[0])["state"], "ready")
        done = self.ok("queue", "purge", "default", "--yes", "--json").json
        self.assertEqual((done["done"], done["refused"]), (2, 0))
        self.assertEqual(sorted(item["id"] for item in done["items"]), sorted(gone))
        for job_id in gone:
            item = self.job(job_id)
            self.assertEqual((item["state"], item["reason"]), ("cancelled", "purged"))
        self.assertEqual(self.job(keep)["state"], "ready")
        self.assertEqual(self.ok("enqueue", "k", "--unique", "u", "--json").json["status"],
                         "enqueued")


class Actions(CommandTest):
    def test_cancel_one(self):
        job_id = self.enqueue("k")
        self.assertEqual(self.ok("job", "cancel", job_id, "--json").json,
                         {"id": job_id, "status": "cancelled"})
        item = self.job(job_id)
        self.assertEqual(item["state"], "cancelled")
        self.assertIsNotNone(item["finished_at"])
        error = self.refused(5, "job", "cancel", job_id)
        self.assertIn("it is cancelled", error["message"])
        self.refused(4, "job", "cancel", "01990000-0000-7000-8000-000000000001")

    def test_who_did_it_is_recorded(self):
        job_id = self.enqueue("k", "--key", "a")
        self.ok("job", "cancel", job_id, "--as", "ana")
        timeline = self.ok("explain", "a", "--json").json["timeline"]
        self.assertIn("ana", [e for e in timeline if e["event"] == "cancelled"][0]["detail"])

    def test_many_by_filter_never_all(self):
        ids = [self.enqueue("k") for _ in range(3)]
        other = self.enqueue("other")
        self.refused(2, "job", "cancel")
        self.refused(2, "job", "cancel", ids[0], "--kind", "k")
        self.refused(2, "job", "cancel", "--kind", "k")
        dry = self.ok("job", "cancel", "--kind", "k", "--dry-run", "--json").json
        self.assertEqual([item["id"] for item in dry["items"]], ids)
        self.assertEqual({item["status"] for item in dry["items"]}, {"matched"})
        done = self.ok("job", "cancel", "--kind", "k", "--yes", "--json", "--rate", "100/s").json
        self.assertEqual((done["matched"], done["done"], done["refused"]), (3, 3, 0))
        self.assertEqual(self.job(ids[2])["state"], "cancelled")
        self.assertEqual(self.job(other)["state"], "ready")
        self.refused(2, "job", "cancel", "--kind", "k", "--yes", "--rate", "0")

    def test_several_ids(self):
        ids = [self.enqueue("k") for _ in range(2)]
        missing = "01990000-0000-7000-8000-000000000001"
        answer = self.run_command("job", "cancel", *ids, missing, "--json")
        self.assertEqual(answer.status, 4)
        self.assertEqual([item["status"] for item in answer.json["items"]],
                         ["cancelled", "cancelled", "refused"])

    def test_retry_runs_a_delayed_job_now(self):
        job_id = self.enqueue("k", "--delay", "1h")
        self.ok("job", "retry", job_id)
        self.assertEqual(self.job(job_id)["state"], "ready")
        self.assertIn("it is ready", self.refused(5, "job", "retry", job_id)["message"])

    def test_dead_and_held_name_the_state(self):
        job_id = self.enqueue("k")
        for words in (["dead", "retry", job_id], ["dead", "drop", job_id, "--yes"],
                      ["dead", "show", job_id], ["held", "resolve", job_id, "--rerun"]):
            self.assertIn("it is ready", self.refused(5, *words)["message"])
        self.refused(2, "held", "resolve", job_id)
        self.refused(2, "held", "resolve", job_id, "--rerun", "--dead")
        self.refused(2, "dead", "drop", job_id)
        self.refused(2, "dead", "retry")


class Check(CommandTest):
    def test_exit_status_follows_the_numbers(self):
        self.refused(2, "check")
        self.ok("check", "--max-ready", "0", "--max-dead", "0", "--max-held", "0")
        self.enqueue("k")
        answer = self.run_command("check", "--max-ready", "0", "--max-dead", "0", "--json")
        self.assertEqual(answer.status, 1)
        self.assertFalse(answer.json["ok"])
        self.assertEqual([(c["check"], c["value"], c["ok"]) for c in answer.json["checks"]],
                         [("max-ready", 1, False), ("max-dead", 0, True)])
        self.ok("check", "--max-ready", "1")
        self.refused(2, "check", "--max-age", "0s")
        self.wait_until(lambda: self.run_command("check", "--max-age", "1ms").status == 1,
                        "the job to be older than that")
        self.ok("check", "--max-age", "1h")
        self.assertEqual(self.run_command("check", "--min-workers", "1").status, 1)
        self.assertEqual(self.run_command("check", "--max-unserved", "0").status, 1)


class Maintenance(CommandTest):
    def test_migrate_may_be_repeated(self):
        self.ok("migrate")
        self.ok("migrate", "--json")

    def test_prune_forgets_what_ended_long_ago(self):
        job_id = self.enqueue("k")
        self.ok("job", "cancel", job_id)
        self.assertEqual(self.ok("prune", "--json").json, {"records": 0, "history": 0})
        self.job(job_id)
        self.refused(2, "prune", "--keep", "0s")


if __name__ == "__main__":
    unittest.main()
