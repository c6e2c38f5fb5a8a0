"""What is done to a run, drawn by its seed. Each fault says what it did, and how it is undone."""

import collections
import heapq
import signal

LEASE_S = 2.0
PAUSE_S = 0.7  # between two faults, on average
SMALLEST_ROOM_KB, LARGEST_ROOM_KB = 16, 4096  # what a full disk has left
ROLES = {"worker": 6, "guard": 2, "supervisor": 1, "child": 2, "producer": 2}
WAYS = {"delay": 3, "hole": 3, "reset": 3, "mute": 3, "split": 2}


class Faults:
    """Begins faults at their time, and ends them; counts what really happened."""

    def __init__(self, fleet, producers, backends, links, rng, log):
        self.fleet, self.producers, self.backends = fleet, producers, backends
        self.links = links
        self.rng = rng
        self.log = log
        self.counts = collections.Counter()
        self.ends = []  # (when, number, what, who)
        self.number = 0
        self.busy = set()  # what has a fault already
        self.now = 0.0
        self.next_at = None
        self.table = [(10, self.kill), (6, self.stop), (1, self.cancel)]
        for server in backends.servers:
            if server.relay is not None:
                self.table.append((6, lambda s=server: self.bend(s)))
            if hasattr(server, "crash"):
                self.table.append((1, lambda s=server: self.crash(s)))
            if hasattr(server, "flush"):
                self.table.append((1, lambda s=server: self.flush(s)))
            if getattr(server, "is_mounted", False):
                self.table.append((2, lambda s=server: self.fill(s)))

    def advance(self, now):
        self.now = now
        while self.ends and self.ends[0][0] <= now:
            _, _, undo, subject = heapq.heappop(self.ends)
            self.busy.discard(subject)
            undo()
        if self.next_at is None:
            self.next_at = now + PAUSE_S
        if now >= self.next_at:
            self.next_at = now + self.rng.expovariate(1 / PAUSE_S)
            self.rng.choices([fault for _, fault in self.table],
                             [weight for weight, _ in self.table])[0]()

    def heal(self):
        """Undoes everything that still lasts."""
        while self.ends:
            heapq.heappop(self.ends)[2]()
        self.busy.clear()

    def did(self, what, detail=""):
        self.counts[what] += 1
        self.log(f"{what} {detail}")

    def later(self, seconds, subject, undo):
        self.number += 1
        self.busy.add(subject)
        heapq.heappush(self.ends, (self.now + seconds, self.number, undo, subject))

    def victim(self):
        by_role = collections.defaultdict(list)
        for process in self.fleet.processes():
            by_role[process.role].append(process)
        role = self.rng.choices(list(ROLES), ROLES.values())[0]
        processes = sorted(by_role[role], key=lambda process: process.pid)
        return self.rng.choice(processes) if processes else None

    def kill(self):
        if victim := self.victim():
            self.fleet.kill(victim)
            self.did(f"kill {victim.role}", victim.pid)

    def stop(self):
        victim = self.victim()
        if victim is None or victim in self.busy:
            return
        seconds = self.rng.uniform(0.1, 2.5) * LEASE_S
        victim.send(signal.SIGSTOP)
        self.later(seconds, victim, lambda: victim.send(signal.SIGCONT))
        past = " past the lease" if seconds > LEASE_S else ""
        self.did(f"stop {victim.role}{past}", f"{victim.pid} {seconds:.1f} s")

    def cancel(self):
        if self.producers.cancel_one():
            self.did("cancel")

    def bend(self, server):
        link = self.rng.choice(self.links)
        subject = (server.name, link)
        if subject in self.busy:
            return
        way = self.rng.choices(list(WAYS), WAYS.values())[0]
        seconds = 0.1 if way == "reset" else self.rng.uniform(0.2, 2.5) * LEASE_S
        felt = server.relay.become(link, way, ms=self.rng.randrange(5, 400))
        self.later(seconds, subject, lambda: server.relay.become(link, "pass"))
        self.did(f"{server.name}: {way}", f"{link} {seconds:.1f} s, {felt} connections")

    def crash(self, server):
        if server in self.busy:
            return
        server.crash()
        forgets = hasattr(server, "lose_everything") and self.rng.random() < 0.5
        if forgets:
            server.lose_everything()
        self.later(self.rng.uniform(0.1, 2 * LEASE_S), server, server.revive)
        self.did(f"{server.name}: crash{' that forgets' if forgets else ''}")

    def flush(self, server):
        if server not in self.busy:
            server.flush()
            self.did(f"{server.name}: flush")

    def fill(self, server):
        if server in self.busy:
            return
        server.fill(self.rng.randrange(SMALLEST_ROOM_KB, LARGEST_ROOM_KB))
        self.later(self.rng.uniform(0.5, 3 * LEASE_S), server, server.empty)
        self.did(f"{server.name}: disk full")
