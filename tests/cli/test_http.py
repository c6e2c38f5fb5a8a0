"""`work --http` against a small server on loopback."""

import datetime
import http.server
import json
import threading
import unittest

from support import CommandTest

# Names of the headers, as the documentation gives them.
JOB_HEADERS = ("Idempotency-Key", "Sekali-Job-Id", "Sekali-Namespace", "Sekali-Kind",
               "Sekali-Queue", "Sekali-Key", "Sekali-Lock-Key", "Sekali-Attempt", "Sekali-Epoch",
               "Sekali-Deadline-Ms")


class Service(http.server.BaseHTTPRequestHandler):
    """Answers each request with the next of `server.answers`; the last one is repeated."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.lock:
            self.server.requests.append((self.path, dict(self.headers), body))
            number = min(len(self.server.requests), len(self.server.answers)) - 1
            answer = self.server.answers[number]
        status, headers, text = answer(self.server) if callable(answer) else answer
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *words):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, address):
        """A caller that does not wait for its answer is no error here."""


class Http(CommandTest):
    def serve(self, *answers):
        server = Server(("127.0.0.1", 0), Service)
        server.answers = answers
        server.requests = []
        server.lock = threading.Lock()
        server.gone = threading.Event()
        self.addCleanup(server.server_close)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        self.addCleanup(server.gone.set)
        self.url = f"http://127.0.0.1:{server.server_port}/charge?by=sekali"
        return server

    def drain(self, *words):
        return self.ok("work", "--drain", "--http", "k=" + self.url, "--retry-base", "1ms",
                       "--retry-cap", "1ms", *words)

    def test_success(self):
        server = self.serve((201, {}, b'{"receipt": "r-1"}'))
        payload = '{ "order" : 1001 }'
        job_id = self.enqueue("k", payload, "--key", "é 1", "--lock", "order:1")
        self.drain()
        item = self.job(job_id)
        self.assertEqual((item["state"], item["attempts"]), ("succeeded", 1))
        self.assertEqual(item["result"], {"receipt": "r-1"})
        ((path, headers, body),) = server.requests
        self.assertEqual((path, body.decode()), ("/charge?by=sekali", payload))
        self.assertEqual(headers["Content-Type"], "application/json")
        for name in JOB_HEADERS:
            self.assertIn(name, headers)
        self.assertEqual(headers["Sekali-Job-Id"], job_id)
        self.assertEqual((headers["Sekali-Kind"], headers["Sekali-Attempt"]), ("k", "1"))

    def test_the_key_is_the_same_in_every_attempt(self):
        server = self.serve((503, {}, b"busy"), (429, {}, b""), (200, {}, b""))
        job_id = self.enqueue("k")
        self.drain()
        item = self.job(job_id)
        self.assertEqual((item["state"], item["attempts"], item["result"]), ("succeeded", 3, None))
        self.assertEqual(len({headers["Idempotency-Key"] for _, headers, _ in server.requests}), 1)
        self.assertEqual([headers["Sekali-Attempt"] for _, headers, _ in server.requests],
                         ["1", "2", "3"])

    def test_statuses(self):
        for status, state in ((200, "succeeded"), (204, "succeeded"), (400, "dead"), (404, "dead"),
                              (422, "dead"), (302, "dead"), (408, "scheduled"), (425, "scheduled"),
                              (429, "scheduled"), (500, "scheduled"), (503, "scheduled")):
            with self.subTest(status=status):
                self.serve((status, {}, b"" if status == 204 else b"why"))
                job_id = self.enqueue("k")
                self.run_until(state)
                item = self.job(job_id)
                self.assertEqual((item["state"], item["attempts"]), (state, 1), item)
                if state != "succeeded":
                    self.assertIn(f"HTTP status {status}", item["error"])
                    self.assertIn("why", item["error"])
                self.ok("job", "cancel", "--state", "scheduled", "--yes")

    def run_until(self, state):
        worker = self.start("work", "--http", "k=" + self.url, "--retry-base", "1h", "--retry-cap",
                            "2h")
        self.wait_until(
            lambda: not self.ok("job", "list", "--state", "ready", "--json").json["items"]
            and not self.ok("job", "list", "--state", "running", "--json").json["items"],
            f"the job to be {state}")
        worker.terminate()
        self.assertEqual(self.finish(worker).status, 0)

    def test_retry_after_is_honoured(self):
        self.serve((429, {"Retry-After": "3600"}, b""))
        job_id = self.enqueue("k")
        worker = self.start("work", "--http", "k=" + self.url, "--retry-base", "1ms")
        self.wait_until(lambda: self.job(job_id)["state"] == "scheduled", "the failure")
        worker.terminate()
        self.finish(worker)
        item = self.job(job_id)
        wait = self.moment(item["run_at"]) - self.moment(item["enqueued_at"])
        self.assertGreaterEqual(wait, datetime.timedelta(hours=1))

    @staticmethod
    def moment(text):
        return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ")

    def test_a_timeout_is_retried_and_unknown(self):
        def hang(server):
            server.gone.wait()
            return (200, {}, b"")

        server = self.serve(hang, (200, {}, b"5"))
        job_id = self.enqueue("k")
        self.drain("--timeout", "300ms")
        item = self.job(job_id)
        self.assertEqual((item["state"], item["attempts"], item["result"]), ("succeeded", 2, 5))
        self.assertEqual(len(server.requests), 2)
        timeline = self.ok("explain", job_id, "--json").json["timeline"]
        self.assertIn("timeout", [entry["event"] for entry in timeline])

        held = self.enqueue("k", "--key", "held")
        server.answers = (hang,)
        self.drain("--timeout", "300ms", "--on-unknown", "k=hold")
        self.assertEqual(self.job(held)["state"], "held")

    def test_nobody_listens(self):
        server = self.serve((200, {}, b""))
        server.shutdown()
        server.server_close()
        job_id = self.enqueue("k", "--max-attempts", "2")
        self.drain("--on-unknown", "k=hold")
        item = self.job(job_id)
        self.assertEqual((item["state"], item["attempts"]), ("dead", 2))
        self.assertIn("HTTP request failed", item["error"])

    def test_a_cancel_ends_the_request(self):
        def hang(server):
            server.gone.wait()
            return (200, {}, b"")

        server = self.serve(hang)
        job_id = self.enqueue("k")
        worker = self.start("work", "--http", "k=" + self.url)
        self.wait_until(lambda: server.requests, "the request")
        self.ok("job", "cancel", job_id)
        self.wait_until(lambda: self.job(job_id)["state"] == "cancelled", "the cancel")
        worker.terminate()
        self.assertEqual(self.finish(worker).status, 0)

    def test_large_results_are_cut(self):
        self.serve((200, {}, json.dumps("x" * 200_000).encode()))
        job_id = self.enqueue("k")
        self.drain()
        item = self.job(job_id)
        self.assertEqual(item["state"], "succeeded")
        self.assertLessEqual(len(item["result"].encode()), 64 * 1024)
        self.assertIn("cut", item["result"])

    def test_addresses_that_are_none(self):
        for url in ("k=ftp://x", "k=http://", "k=127.0.0.1:1", "k", "a b=http://x/"):
            self.refused(2, "work", "--drain", "--http", url)


if __name__ == "__main__":
    unittest.main()
