import json
import os
import subprocess
import unittest

from support import BINARY, CommandTest


def lines_of(*objects):
    return "".join(json.dumps(item) + "\n" for item in objects)


class Bulk(CommandTest):
    def bulk(self, text, *words, status=0):
        answer = self.run_command("enqueue", "--bulk", "-", "--json", *words, stdin=text)
        self.assertEqual(answer.status, status, answer.out + answer.err)
        return answer

    def jobs(self):
        return self.ok("job", "list", "--json", "--limit", "10000").json["items"]

    def test_one_answer_a_line(self):
        answer = self.bulk(lines_of({"kind": "a"}, {"kind": "b", "payload": {"x": 1}}))
        ids = [item["id"] for item in self.jobs()]
        self.assertEqual(answer.lines, [
            {"line": 1, "id": ids[0], "status": "enqueued", "winner": None},
            {"line": 2, "id": ids[1], "status": "enqueued", "winner": None},
        ])

    def test_the_payload_is_the_slice_of_the_line(self):
        text = '{"payload": {"b" :1, "a":[ 2.50 ]} , "kind":"k"}\n'
        job_id = self.bulk(text).lines[0]["id"]
        self.assertEqual(self.ok("job", "show", job_id, "--payload").raw,
                         b'{"b" :1, "a":[ 2.50 ]}')

    def test_fields_are_named_like_the_flags(self):
        answer = self.bulk(lines_of({
            "kind": "k", "queue": "q", "key": "a", "lock": "l", "unique": "u", "unique_for": "1h",
            "unique_until": "end", "delay": "1h", "priority": 7, "max_attempts": 2,
            "on_duplicate": None, "at": None, "id": "01990000-0000-7000-8000-000000000007"}))
        item = self.job(answer.lines[0]["id"])
        self.assertEqual(
            (item["queue"], item["key"], item["lock_key"], item["unique_key"], item["priority"],
             item["max_attempts"], item["state"]), ("q", "a", "l", "u", 7, 2, "scheduled"))

    def test_bad_lines_are_told_and_the_others_go_in(self):
        text = "\n".join([
            '{"kind":"k"}', "nonsense", '{"kind":"k","kye":"x"}', '{"kind":"k","kind":"k"}',
            '{"payload":1}', '{"kind":"k","priority":10}', '{"kind":"k","priority":true}',
            '{"kind":"k","payload":{"a":1,"a":2}}', "[]", "", "   ", '{"kind":"not a kind"}',
            '{"kind":"k","unique_for":"1h","unique-for":"1h"}', '{"kind":"k"}'])
        answer = self.bulk(text, status=1)
        bad = [line for line in answer.lines if line["status"] == "error"]
        self.assertEqual([line["line"] for line in bad], [2, 3, 4, 5, 6, 7, 8, 9, 12, 13])
        for line in bad:
            self.assertEqual(set(line), {"line", "status", "error"})
        named = {line["line"]: line["error"] for line in bad}
        self.assertIn("kye", named[3])
        self.assertIn("kind", named[4])
        self.assertIn("kind", named[5])
        self.assertIn("priority", named[6])
        self.assertEqual(len(self.jobs()), 2)

    def test_refusals_of_the_store_are_told(self):
        text = lines_of({"kind": "k", "key": "a", "payload": 1},
                        {"kind": "k", "key": "a", "payload": 2},
                        {"kind": "k", "unique": "u"}, {"kind": "k", "unique": "u"})
        answer = self.bulk(text, status=1)
        self.assertEqual([line["status"] for line in answer.lines],
                         ["enqueued", "error", "enqueued", "duplicate"])
        self.assertIn("key_reused", answer.lines[1]["error"])
        self.assertEqual(answer.lines[3]["winner"], answer.lines[2]["id"])

    def test_duplicates_have_their_own_status_when_strict(self):
        text = lines_of(*[{"kind": "k", "unique": f"u{i % 997}"} for i in range(1000)])
        self.assertEqual(len(self.bulk(text, "--strict", status=5).lines), 1000)
        self.assertEqual(len(self.jobs()), 997)

    def test_atomic_is_all_or_nothing(self):
        bad = lines_of(*[{"kind": "k"}] * 5) + "nonsense\n" + lines_of({"kind": "k", "x": 1})
        answer = self.bulk(bad, "--atomic", status=1)
        self.assertEqual([line["line"] for line in answer.lines], [6, 7])
        self.assertEqual(self.jobs(), [])
        reused = lines_of({"kind": "k", "key": "a", "payload": 1},
                          {"kind": "k", "key": "a", "payload": 2})
        self.assertEqual([line["line"] for line in self.bulk(reused, "--atomic", status=1).lines],
                         [2])
        self.assertEqual(self.jobs(), [])
        answer = self.bulk(lines_of(*[{"kind": "k"}] * 2500), "--atomic")
        self.assertEqual([line["line"] for line in answer.lines], list(range(1, 2501)))
        self.assertEqual(len(self.jobs()), 2500)

    def test_without_json_the_bare_ids(self):
        answer = self.run_command("enqueue", "--bulk", "-",
                                  stdin=lines_of({"kind": "k"}) + "x\n" + lines_of({"kind": "k"}))
        self.assertEqual(answer.status, 1)
        self.assertEqual(answer.out.splitlines(), [item["id"] for item in self.jobs()])
        self.assertIn("line 2: ", answer.err)
        self.assertIn("enqueued 2 jobs; 1 lines were refused", answer.err)

    def test_hostile_lines_do_not_split_the_answer(self):
        answer = self.bulk(b'{"kind":"k\x1b[2J\\n"}\n\xff\xfe\n{"\\u000a":1}\n', status=1)
        self.assertEqual(len(answer.lines), 3)
        self.assertNotIn("\x1b", answer.out)

    def test_lines_beyond_the_limit_are_read_over(self):
        long = '{"kind":"k","payload":"' + "x" * 3_000_000 + '"}\n'
        answer = self.bulk('{"kind":"k"}\n' + long + '{"kind":"k"}', status=1)
        self.assertEqual([line["status"] for line in answer.lines],
                         ["enqueued", "error", "enqueued"])
        self.assertIn("bytes", answer.lines[1]["error"])

    def test_flags_of_one_job_do_not_go_with_a_file(self):
        self.assertIn("--key", self.refused(2, "enqueue", "--bulk", "-", "--key", "x")["message"])
        self.refused(2, "enqueue", "k", "--bulk", "-")
        self.refused(2, "enqueue", "k", "--atomic")
        self.refused(2, "enqueue", "--bulk", "/nonexistent")

    def test_a_slow_producer_gets_its_answers_at_once(self):
        process = subprocess.Popen([BINARY, "enqueue", "--bulk", "-", "--json"],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, env=self.environment)
        self.addCleanup(process.stdout.close)
        for number in (1, 2):
            process.stdin.write(b'{"kind":"k"}\n')
            process.stdin.flush()
            self.assertEqual(json.loads(process.stdout.readline())["line"], number)
        process.stdin.close()
        self.assertEqual(process.wait(timeout=30), 0)

    def test_a_large_file_needs_little_memory(self):
        path = os.path.join(self.folder, "jobs.jsonl")
        count = 20_000
        payload = "x" * 10_000
        with open(path, "w") as file:
            for i in range(count):
                file.write(json.dumps({"kind": "k", "key": f"k:{i}", "payload": payload}) + "\n")
        with open(self.path("answers"), "wb") as answers:
            process = subprocess.Popen([BINARY, "enqueue", "--bulk", path], stdout=answers,
                                       stderr=subprocess.DEVNULL, env=self.environment)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0)
        with open(self.path("answers")) as answers:
            self.assertEqual(len(answers.readlines()), count)
        self.assertLess(usage.ru_maxrss, 96 * 1024, "KiB, for a file of 200 MB")


if __name__ == "__main__":
    unittest.main()
