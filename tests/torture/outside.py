#!/usr/bin/env python3
"""The effect server of a torture run: the world outside, which nobody kills.

usage: outside.py FOLDER SEED

Its ledger FOLDER/ledger only grows, and is on the disk before anybody is answered. Lines come to
the socket FOLDER/outside; `POST /call` comes to a port of loopback, which is the first line that
it prints. A key has its effect once, however often it is called. Some HTTP callers, drawn by the
seed, hear 503 before or after the effect, or nothing. It ends with its input.
"""

import asyncio
import contextlib
import os
import random
import subprocess
import sys
import time

REFUSED, FORGOTTEN, CUT = 0.05, 0.05, 0.03  # shares of HTTP calls


class Outside:
    def __init__(self, folder, seed):
        self.ledger = os.open(f"{folder}/ledger", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self.effects = set()
        self.rng = random.Random(seed)

    def note(self, *lines):
        now = time.monotonic_ns()
        text = "".join("\t".join([str(now), *words]) + "\n" for words in lines).encode()
        while text:
            text = text[os.write(self.ledger, text) :]
        os.fdatasync(self.ledger)

    def charge(self, words):
        key = words[0]
        lines = [("call", *words)]
        if key not in self.effects:
            self.effects.add(key)
            lines.append(("effect", *words))
        self.note(*lines)
        return f"receipt-{key}"

    def answer(self, verb, words):
        if verb == "charge":
            return self.charge(words)
        if verb == "probe":
            said = "yes" if words[0] in self.effects else "no"
            self.note(("probe", *words, said))
            return f"receipt-{words[0]}" if said == "yes" else said
        self.note((verb, *words))  # begin, end, lock
        return "ok"

    async def line(self, reader, writer):
        with contextlib.suppress(ConnectionError):
            words = (await reader.readline()).decode().rstrip("\n").split("\t")
            if len(words) > 1:
                writer.write(self.answer(words[0], words[1:]).encode() + b"\n")
                await writer.drain()
        writer.close()

    async def request(self, reader, writer):
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            fields = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
            await reader.readexactly(int(fields.get("content-length", "0")))
            writer.write(self.respond(fields))
            await writer.drain()
        writer.close()

    def respond(self, fields):
        chance = self.rng.random()
        if chance < REFUSED:
            return self.response("503 Service Unavailable", "")
        receipt = self.charge([fields[name] for name in (
            "idempotency-key", "sekali-kind", "sekali-key", "sekali-epoch")])
        if chance < REFUSED + FORGOTTEN:
            return self.response("503 Service Unavailable", "")
        if chance < REFUSED + FORGOTTEN + CUT:
            return b""
        return self.response("200 OK", f'"{receipt}"')

    @staticmethod
    def response(status, body):
        return (f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n"
                f"Connection: close\r\n\r\n{body}").encode()


async def serve(folder, seed):
    outside = Outside(folder, seed)
    await asyncio.start_unix_server(outside.line, f"{folder}/outside", backlog=1024)
    listener = await asyncio.start_server(outside.request, "127.0.0.1", 0, backlog=1024)
    print(listener.sockets[0].getsockname()[1], flush=True)
    end = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(end), sys.stdin)
    await end.read()


class OutsideProcess:
    def __init__(self, folder, seed, log):
        self.socket = f"{folder}/outside"
        self.ledger = folder / "ledger"
        self.process = subprocess.Popen(
            [sys.executable, __file__, str(folder), str(seed)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=log, text=True)
        self.port = int(self.process.stdout.readline())

    def stop(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2])))
