"""A socket between sekali and PostgreSQL that breaks connections in the ways of networks."""

import asyncio
import contextlib
import enum
import pathlib
import threading

CHUNK = 65536


class Way(enum.Enum):
    """What becomes of what passes."""

    PASS = "pass"
    HOLD = "hold"  # nothing passes until another way is set
    LOSE = "lose"  # what comes is gone, the connections stay
    DEAF = "deaf"  # requests arrive; instead of the next answer the connection ends


class Link:
    """One connection through the relay."""

    def __init__(self, relay, client, server):
        self.relay = relay
        self.client = client
        self.server = server
        self.is_lost = False  # what is gone cannot be made up for: it never passes again

    def close(self):
        for _, writer in (self.client, self.server):
            writer.close()

    async def pump(self, reader, writer, is_answer):
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            while chunk := await reader.read(CHUNK):
                if self.relay.delay_s:
                    await asyncio.sleep(self.relay.delay_s)  # the delay that was asked for
                await self.relay.open.wait()
                self.is_lost = self.is_lost or self.relay.way is Way.LOSE
                if self.is_lost:
                    continue
                if self.relay.way is Way.DEAF and is_answer:
                    self.relay.answers_lost += 1
                    break
                writer.write(chunk)
                await writer.drain()
        self.close()

    async def run(self):
        (from_client, to_client), (from_server, to_server) = self.client, self.server
        await asyncio.gather(self.pump(from_client, to_server, False),
                             self.pump(from_server, to_client, True))


class Relay:
    """Listens in `folder` as PostgreSQL does and passes on to the socket in `server`."""

    def __init__(self, folder, server):
        self.folder = pathlib.Path(folder)
        self.server = pathlib.Path(server)
        self.way = Way.PASS
        self.delay_s = 0.0
        self.answers_lost = 0
        self.links = set()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.do(self.listen())

    def do(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    async def listen(self):
        self.open = asyncio.Event()
        self.open.set()
        self.folder.mkdir(exist_ok=True)
        self.listener = await asyncio.start_unix_server(
            self.serve, self.folder / ".s.PGSQL.5432")

    async def serve(self, reader, writer):
        try:
            server = await asyncio.open_unix_connection(self.server / ".s.PGSQL.5432")
        except OSError:
            writer.close()
            return
        link = Link(self, (reader, writer), server)
        self.links.add(link)
        await link.run()
        self.links.discard(link)

    def set(self, way, delay_s=0.0):
        async def change():
            self.way = way
            self.delay_s = delay_s
            (self.open.clear if way is Way.HOLD else self.open.set)()
        self.do(change())

    def cut(self):
        """Ends every connection at once."""
        async def end():
            for link in self.links:
                link.close()
        self.do(end())

    def close(self):
        self.cut()

        async def end():
            self.listener.close()
        self.do(end())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
