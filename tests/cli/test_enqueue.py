import datetime
import json
import os
import subprocess
import unittest

from support import BINARY, ITEM_FIELDS, CommandTest

UUID = "01990000-0000-7000-8000-000000000001"


class Enqueue(CommandTest):
    def payload(self, job_id):
        return self.ok("job", "show", job_id, "--payload").raw

    def test_prints_the_bare_id_and_a_sentence(self):
        answer = self.ok("enqueue", "payment.charge", '{"order":1001}', "--key", "payment:1001")
        self.assertRegex(answer.out, r"^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f-]{17}\n$")
        self.assertIn('enqueued payment.charge on queue "default"', answer.err)
        self.assertIn("no live worker serves it", answer.err)

    def test_prints_one_document(self):
        document = self.ok("enqueue", "k", "--json").json
        self.assertEqual(document, {"id": document["id"], "status": "enqueued", "winner": None})

    def test_every_flag_is_seen_in_the_item(self):
        job_id = self.enqueue("payment.charge", "[]", "--queue", "mail", "--id", UUID, "--key", "k",
                              "--lock", "l", "--unique", "u", "--unique-for", "1h",
                              "--unique-until", "start", "--on-duplicate", "keep", "--delay", "1h",
                              "--priority", "9", "--max-attempts", "3")
        self.assertEqual(job_id, UUID)
        item = self.job(job_id)
        self.assertEqual(set(item), ITEM_FIELDS)
        expected = {"id": UUID, "kind": "payment.charge", "queue": "mail", "state": "scheduled",
                    "key": "k", "lock_key": "l", "unique_key": "u", "priority": 9,
                    "max_attempts": 3, "attempts": 0, "worker": None, "result": None}
        self.assertEqual({name: item[name] for name in expected}, expected)

    def test_defaults(self):
        job_id = self.enqueue("k")
        item = self.job(job_id)
        self.assertEqual(item["key"], job_id)
        self.assertEqual(item["queue"], "default")
        self.assertEqual(item["priority"], 0)
        self.assertEqual(item["max_attempts"], 10)
        self.assertIsNone(item["lock_key"])
        self.assertEqual(self.payload(job_id), b"null")

    def test_payloads_are_kept_byte_for_byte(self):
        for text in ('{"a": 1,  "b":[]}', "[]", "5", "-5", "null", '"\\u0000"', ' {"é":"ü"} '):
            self.assertEqual(self.payload(self.enqueue("k", text)), text.encode())
        self.assertEqual(self.payload(self.enqueue("k", "-", stdin=b'{"a":1}\n')), b'{"a":1}\n')

    def test_payloads_that_are_no_json_are_refused(self):
        for text in ("", "{", '{"a":1,"a":2}', "NaN", "'x'", '"\\ud800"', "[1,]",
                     "[" * 129 + "]" * 129):
            self.refused(2, "enqueue", "k", text)
        for data in (b"\xef\xbb\xbf{}", b"{} x", b"\xff", b'"\x00"'):
            self.refused(2, "enqueue", "k", "-", stdin=data)
        self.assertEqual(self.ok("job", "list", "--json").json["items"], [])

    def test_the_payload_limit_is_kept_while_reading(self):
        limit = 1024 * 1024
        text = '"' + "x" * (limit - 2) + '"'
        self.enqueue("k", "-", stdin=text)
        error = self.refused(2, "enqueue", "k", "-", stdin=text + " ")
        self.assertIn(str(limit), error["message"])
        self.refused(2, "enqueue", "k", '"xxxxxxxxx"', "--max-payload", "10")
        self.enqueue("k", '"xxxxxxxx"', "--max-payload", "10")

    def test_a_stream_without_end_is_cut_off(self):
        with open("/dev/zero", "rb") as endless:
            process = subprocess.run([BINARY, "enqueue", "k", "-"], stdin=endless,
                                     capture_output=True, env=self.environment, timeout=30)
        self.assertEqual(process.returncode, 2)

    def test_keys_are_bytes_within_limits(self):
        for key in (" ", "x" * 512, "é", "e\u0301", "'; DROP", "%s%n", "../x", "$(id)", "a:b:c",
                    "a%3Ab:c", "\u200b", "-x"):
            item = self.job(self.enqueue("k", "--key=" + key, "--lock=" + key))
            self.assertEqual(item["key"], key)
            self.assertEqual(item["lock_key"], key)
        for key in ("", "x" * 513, "a\nb", "a\r\nSET x 1", "\x1b[2J", "\x7f"):
            for flag in ("--key", "--lock", "--unique"):
                error = self.refused(2, "enqueue", "k", flag + "=" + key)
                self.assertIn(flag + ' "', error["message"])
                self.assertIn("512", error["message"])
        answer = self.run_command("enqueue", "k", "--key", b"\xff\xfe")
        self.assertEqual(answer.status, 2)

    def test_names_are_within_limits(self):
        self.enqueue("a" * 64, "--queue", "A.b_c-9")
        for name in ("", "a" * 65, ".a", "-a", "a/b", "é" * 10, "a b"):
            self.refused(2, "enqueue", "k", "--queue=" + name)
            self.refused(2, "enqueue", "--", name)

    def test_x13_only_queues_leave_the_prefix_of_brokers_alone(self):
        self.enqueue("amq.x", "--namespace", "amq.y")
        error = self.refused(2, "enqueue", "k", "--queue", "amq.x")
        self.assertIn('queue "amq.x" has 5 bytes', error["message"])
        wide = self.refused(2, "enqueue", "k", "--queue", "é" * 128)["message"]
        self.assertIn("256 bytes (allowed: 1 to 64)", wide)

    def test_a_refused_payload_is_named_with_its_limit(self):
        error = self.refused(2, "enqueue", "k", "[" * 129 + "]" * 129)
        self.assertIn("payload: ", error["message"])
        self.assertIn("128 levels", error["message"])
        error = self.refused(2, "enqueue", "k", '{"a":1,"a":100}')
        self.assertIn('payload: not valid JSON at byte 7', error["message"])
        self.assertIn('twice: "a"', error["message"])

    def test_numbers_are_range_checked(self):
        for flag, values in {
            "--priority": ("-1", "10", "9223372036854775808", "1.5", "x", ""),
            "--max-attempts": ("0", "-1", "4294967297000000000", "1e3"),
            "--delay": ("5", "-1s", "1.5s", "", "99999999999999999999d", "1 s", "1w"),
            "--at": ("2026-11-30T10:00:00", "tomorrow", "2026-13-30T10:00:00Z"),
            "--id": ("x", UUID.upper() + "A", "0199"),
            "--unique-until": ("stop",),
        }.items():
            for value in values:
                error = self.refused(2, "enqueue", "k", f"{flag}={value}")
                self.assertIn(flag, error["message"], value)

    def test_delays(self):
        self.assertEqual(self.job(self.enqueue("k", "--delay", "0s"))["state"], "ready")
        item = self.job(self.enqueue("k", "--delay", "1h"))
        self.assertEqual(item["state"], "scheduled")
        wait = self.moment(item["run_at"]) - self.moment(item["enqueued_at"])
        self.assertEqual(wait, datetime.timedelta(hours=1))
        self.refused(2, "enqueue", "k", "--delay", "1s", "--at", "2099-01-01T00:00:00Z")

    def test_a_time_with_a_zone(self):
        item = self.job(self.enqueue("k", "--at", "2099-01-01T07:00:00+07:00"))
        self.assertEqual(item["state"], "scheduled")
        off = abs(self.moment(item["run_at"]) - self.moment("2099-01-01T00:00:00.000Z"))
        self.assertLess(off, datetime.timedelta(seconds=5))

    def test_a_time_that_has_passed_means_now_and_is_told(self):
        answer = self.ok("enqueue", "k", "--at", "2001-01-01T00:00:00Z")
        self.assertIn("--at has passed", answer.err)
        self.assertEqual(self.job(answer.out.strip())["state"], "ready")

    @staticmethod
    def moment(text):
        return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ")

    def test_a_repeated_call_with_its_id_is_one_job(self):
        first = self.ok("enqueue", "k", "1", "--id", UUID, "--json").json
        again = self.ok("enqueue", "k", "1", "--id", UUID, "--json").json
        self.assertEqual(first, again)
        self.assertEqual(len(self.ok("job", "list", "--json").json["items"]), 1)
        self.assertEqual(self.refused(5, "enqueue", "k", "2", "--id", UUID)["code"], "conflict")

    def test_a_reused_key_is_refused(self):
        self.enqueue("k", "1", "--key", "a")
        error = self.refused(5, "enqueue", "k", "2", "--key", "a")
        self.assertIn("key_reused", error["message"])
        self.enqueue("k", "1", "--key", "a")
        self.enqueue("other", "2", "--key", "a")


class Unique(CommandTest):
    def test_the_second_one_names_the_winner(self):
        winner = self.enqueue("k", "--unique", "u")
        answer = self.ok("enqueue", "k", "--unique", "u")
        self.assertEqual(answer.out, winner + "\n")
        self.assertIn("already queued as " + winner, answer.err)
        document = self.ok("enqueue", "k", "--unique", "u", "--json").json
        self.assertEqual(document, {"id": winner, "status": "duplicate", "winner": winner})
        self.assertEqual(self.run_command("enqueue", "k", "--unique", "u", "--strict").status, 5)
        self.enqueue("other", "--unique", "u")
        self.assertEqual(len(self.ok("job", "list", "--json").json["items"]), 2)

    def test_the_slot_is_freed_by_a_cancel(self):
        self.ok("job", "cancel", self.enqueue("k", "--unique", "u"))
        self.assertEqual(self.ok("enqueue", "k", "--unique", "u", "--json").json["status"],
                         "enqueued")

    def test_replace_cancels_the_one_that_waits(self):
        first = self.enqueue("k", "1", "--unique", "u")
        answer = self.ok("enqueue", "k", "2", "--unique", "u", "--on-duplicate", "replace",
                         "--json").json
        self.assertEqual(answer["status"], "replaced")
        self.assertNotEqual(answer["id"], first)
        old = self.job(first)
        self.assertEqual((old["state"], old["reason"]), ("cancelled", "replaced"))
        self.assertEqual(self.job(answer["id"])["state"], "ready")

    def test_replace_needs_a_unique_key_and_no_fixed_key(self):
        self.refused(2, "enqueue", "k", "--on-duplicate", "replace")
        self.refused(2, "enqueue", "k", "--unique", "u", "--key", "x", "--on-duplicate", "replace")

    def test_list_and_free(self):
        job_id = self.enqueue("k", "--unique", "u")
        self.enqueue("k")
        items = self.ok("unique", "list", "--json").json["items"]
        self.assertEqual([(i["unique_key"], i["kind"], i["id"]) for i in items],
                         [("u", "k", job_id)])
        self.refused(2, "unique", "free", "u")
        self.refused(4, "unique", "free", "other", "--yes")
        self.assertEqual(self.ok("unique", "free", "u", "--yes", "--json").json["id"], job_id)
        self.assertEqual(self.ok("unique", "list", "--json").json["items"], [])
        self.assertEqual(self.job(job_id)["state"], "ready")
        self.refused(4, "unique", "free", "u", "--yes")

    def test_a_key_of_two_kinds_must_be_chosen(self):
        self.enqueue("a", "--unique", "u")
        job_id = self.enqueue("b", "--unique", "u")
        self.refused(2, "unique", "free", "u", "--yes")
        self.assertEqual(
            self.ok("unique", "free", "u", "--kind", "b", "--yes", "--json").json["id"], job_id)


class Concurrency(CommandTest):
    def test_many_callers_of_one_unique_key_make_one_job(self):
        processes = [
            subprocess.Popen([BINARY, "enqueue", "k", "--unique", "u", "--json"],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             env=self.environment)
            for _ in range(20)
        ]
        answers = [json.loads(process.communicate(timeout=60)[0]) for process in processes]
        self.assertEqual(sum(answer["status"] == "enqueued" for answer in answers), 1)
        self.assertEqual(len({answer["id"] for answer in answers}), 1)

    def test_a_killed_producer_leaves_all_or_nothing(self):
        for point, stored in (("enqueue.before", 0), ("enqueue.after", 1)):
            key = "p:" + point
            answer = self.run_command("enqueue", "k", "--key", key,
                                      environment={"SEKALI_FAULT_AT": point})
            self.assertEqual(answer.status, -9)
            items = self.ok("job", "list", "--key", key, "--json").json["items"]
            self.assertEqual(len(items), stored, point)

    def test_a_lost_reply_is_maybe_applied(self):
        answer = self.run_command("enqueue", "k", "--json",
                                  environment={"SEKALI_FAULT_AT": "enqueue.after:1:error"})
        self.assertEqual(answer.status, 3)
        self.assertEqual(answer.error["applied"], "maybe")


if __name__ == "__main__":
    unittest.main()
