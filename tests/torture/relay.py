#!/usr/bin/env python3
"""A TCP relay that can be told to misbehave, as a process of its own.

usage: relay.py SOCKET NAME…

It listens on a free port of loopback for each NAME and hands connections on to the server's SOCKET.
The first line that it prints names the ports. After that it takes lines {"link", "mode", …} and
answers each by how many connections that link has; it ends with its input.
"""

import asyncio
import contextlib
import json
import random
import socket
import struct
import subprocess
import sys

PIECE = 16  # bytes at most, of what is split
SPLIT_AT_MOST = 2048  # of a read; the rest goes in one piece
RESET_AT_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER: on, for no time


def reset(writer):
    """Ends it at once, for the other side to see."""
    end = writer.get_extra_info("socket")
    if end.family == socket.AF_INET:
        with contextlib.suppress(OSError):  # it has ended by itself
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
    writer.transport.abort()


class Connection:
    def __init__(self, client, server):
        self.writers = {"up": server, "down": client}
        self.robbed = False  # something was dropped: it can never be whole again

    def reset(self):
        for writer in self.writers.values():
            reset(writer)


class Link:
    """One way to the server, with its present mood."""

    def __init__(self, server):
        self.server = server
        self.connections = set()
        self.mode = "pass"
        self.settings = {}
        self.changed = asyncio.Event()

    def become(self, mode, settings):
        affected = len(self.connections)
        self.mode, self.settings = mode, settings
        self.changed.set()
        self.changed = asyncio.Event()
        for connection in list(self.connections):
            if mode == "reset" or connection.robbed:
                connection.reset()
        return affected

    async def accept(self, reader, writer):
        if self.mode == "reset":
            reset(writer)
            return
        try:
            server_reader, server_writer = await asyncio.open_unix_connection(self.server)
        except OSError:
            writer.transport.abort()
            return
        connection = Connection(writer, server_writer)
        self.connections.add(connection)
        pumps = [asyncio.create_task(self.pump(reader, connection, "up")),
                 asyncio.create_task(self.pump(server_reader, connection, "down"))]
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for pump in pumps:
            pump.cancel()
        self.connections.discard(connection)
        for end in connection.writers.values():
            end.close()

    async def pump(self, reader, connection, direction):
        writer = connection.writers[direction]
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                while self.mode == "hole":
                    await self.changed.wait()
                if self.mode == "mute" and direction == "down":
                    connection.robbed = True
                elif self.mode == "split":
                    await self.write_pieces(writer, data)
                else:
                    if self.mode == "delay":
                        await asyncio.sleep(self.settings["ms"] / 1000)  # what it is told to do
                    writer.write(data)
                    await writer.drain()

    @staticmethod
    async def write_pieces(writer, data):
        at = 0
        while at < min(len(data), SPLIT_AT_MOST):
            size = random.randint(1, PIECE)
            writer.write(data[at : at + size])
            await asyncio.sleep(0)  # lets the piece out
            at += size
        writer.write(data[at:])
        await writer.drain()


async def serve(server, names):
    links = {name: Link(server) for name in names}
    ports = {}
    for name, link in links.items():
        listener = await asyncio.start_server(link.accept, "127.0.0.1", 0)
        ports[name] = listener.sockets[0].getsockname()[1]
    print(json.dumps(ports), flush=True)
    commands = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    while line := await commands.readline():
        command = json.loads(line)
        affected = links[command.pop("link")].become(command.pop("mode"), command)
        print(affected, flush=True)


class Relay:
    """The process, for who tells it what to do."""

    def __init__(self, server, names, log):
        self.process = subprocess.Popen(
            [sys.executable, __file__, server, *names], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=log, text=True)
        self.ports = json.loads(self.process.stdout.readline())

    def become(self, link, mode, **settings):
        """Returns how many connections felt it."""
        self.process.stdin.write(json.dumps({"link": link, "mode": mode, **settings}) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def stop(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], sys.argv[2:]))
