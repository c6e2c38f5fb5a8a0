"""Locks that sekali shares with Redisson, Laravel and redis-py: who excludes and who wakes whom."""

import statistics
import unittest

import peers

ROUNDS = 20
LEASE_MS = 30_000
WOKEN_S = 0.05
# What polls by itself: Laravel every 250 ms, redis-py every 100 ms; sekali on their locks in
# growing steps of up to 500 ms.
POLLED_S = 1.0

FIGURES = []


def tearDownModule():
    print()
    for name, times in FIGURES:
        times = sorted(times)
        print(f"{name:58} p50 {1000 * statistics.median(times):8.2f} ms   "
              f"max {1000 * times[-1]:8.2f} ms   n {len(times)}")


class Interop(unittest.TestCase):
    profile = "redisson"

    def setUp(self):
        self.server = peers.RedisServer()
        self.addCleanup(self.server.stop)

    def peer(self, make, *more):
        peer = make(self.server, *more)
        self.addCleanup(peer.close)
        return peer

    def sekali(self):
        return self.peer(peers.sekali, self.profile)

    def answered(self, word, answer):
        self.assertEqual(answer.word, word, answer.more)
        return answer

    def excludes(self, holder, other, name):
        """Holder first, then the other, by tries alone."""
        self.answered("acquired", holder.ask("lock", name, 0, LEASE_MS))
        self.answered("busy", other.ask("lock", name, 0, LEASE_MS))
        self.answered("released", holder.ask("unlock", name))
        self.answered("acquired", other.ask("lock", name, 0, LEASE_MS))
        self.answered("busy", holder.ask("lock", name, 0, LEASE_MS))
        self.answered("released", other.ask("unlock", name))

    def hand_over(self, title, holder, waiter, bound_s, prepare):
        """How long a waiter takes to have what the holder gives back."""
        times = []
        for round_number in range(ROUNDS):
            name = f"order:{round_number}"
            self.answered("acquired", holder.ask("lock", name, 0, LEASE_MS))
            waiter.send("lock", name, 60_000, LEASE_MS)
            prepare(name)
            self.assertTrue(waiter.quiet())
            freed = self.answered("released", holder.ask("unlock", name))
            got = self.answered("acquired", waiter.receive())
            self.answered("released", waiter.ask("unlock", name))
            times.append(got.at - freed.at)
        FIGURES.append((title, times))
        self.assertLess(statistics.median(times), bound_s)


class WithRedisson(Interop):
    def setUp(self):
        super().setUp()
        self.java = self.peer(peers.redisson)
        self.cpp = self.sekali()

    def channel(self, name):
        return f"redisson_lock__channel:{{{name}}}"

    def test_they_exclude_each_other(self):
        for name in ("plain", "with:colon", "with{tag}inside", "umlaut-\u00e4"):
            self.excludes(self.java, self.cpp, name)

    def test_cpp_is_woken_by_java(self):
        self.hand_over("Redisson releases, sekali waits", self.java, self.cpp, WOKEN_S,
                       lambda name: self.server.wait_for_subscribers(self.channel(name)))

    def test_java_is_woken_by_cpp(self):
        self.hand_over("sekali releases, Redisson waits", self.cpp, self.java, WOKEN_S,
                       lambda name: self.server.wait_for_subscribers(self.channel(name)))

    def test_holds_are_counted(self):
        self.answered("acquired", self.java.ask("lock", "x", 0, 0))
        again = self.answered("acquired", self.java.ask("lock", "x", 0, 0))
        self.assertEqual(again.more, ["2"])
        self.answered("released", self.java.ask("unlock", "x"))
        self.answered("busy", self.cpp.ask("lock", "x", 0, 0))
        self.answered("released", self.java.ask("unlock", "x"))
        self.answered("acquired", self.cpp.ask("lock", "x", 0, 0))
        self.answered("lost", self.java.ask("unlock", "x"))

    def test_what_java_lets_expire_cpp_gets(self):
        self.answered("acquired", self.java.ask("lock", "x", 0, 1000))
        self.answered("acquired", self.cpp.ask("lock", "x", 60_000, 0))
        self.answered("lost", self.java.ask("unlock", "x"))
        self.answered("released", self.cpp.ask("unlock", "x"))

    def test_what_cpp_lets_expire_java_gets(self):
        self.answered("acquired", self.cpp.ask("lock", "x", 0, 1000))
        self.answered("acquired", self.java.ask("lock", "x", 60_000, 0))
        self.answered("lost", self.cpp.ask("unlock", "x"))
        self.answered("released", self.java.ask("unlock", "x"))

    def test_a_crash_of_cpp_frees_the_lock_for_java(self):
        self.answered("acquired", self.cpp.ask("lock", "x", 0, 2000))
        self.java.send("lock", "x", 60_000, 0)
        self.cpp.kill()
        self.answered("acquired", self.java.receive())

    def test_a_crash_of_java_frees_the_lock_for_cpp(self):
        self.answered("acquired", self.java.ask("lock", "x", 0, 2000))
        self.cpp.send("lock", "x", 60_000, 0)
        self.java.kill()
        self.answered("acquired", self.cpp.receive())

    def test_java_may_take_it_by_force(self):
        self.answered("acquired", self.cpp.ask("lock", "x", 0, 0))
        self.answered("released", self.java.ask("force", "x"))
        self.answered("acquired", self.java.ask("lock", "x", 0, 0))
        self.answered("lost", self.cpp.ask("unlock", "x"))
        self.answered("busy", self.cpp.ask("lock", "x", 0, 0))

    def test_fences_of_both_grow_together(self):
        fences = []
        for _ in range(4):
            answer = self.answered("acquired", self.java.ask("fenced", "x", 0))
            fences.append(int(answer.more[0]))
            self.answered("released", self.java.ask("unlock", "x"))
            answer = self.answered("acquired", self.cpp.ask("lock", "x", 0, 0))
            fences.append(int(answer.more[1]))
            self.answered("released", self.cpp.ask("unlock", "x"))
        self.assertEqual(fences, sorted(set(fences)))

    def test_they_share_the_permits_of_a_semaphore(self):
        self.answered("acquired", self.java.ask("permit", "s", 2, 0))
        self.answered("acquired", self.cpp.ask("permit", "s", 2, 0))
        other = self.sekali()
        self.answered("busy", other.ask("permit", "s", 2, 0))
        other.send("permit", "s", 2, 60_000)
        self.server.wait_for_subscribers("redisson_sc:{s}")
        freed = self.answered("released", self.java.ask("unpermit", "s"))
        got = self.answered("acquired", other.receive())
        FIGURES.append(("Redisson gives a permit back, sekali waits", [got.at - freed.at]))
        self.answered("busy", self.java.ask("permit", "s", 2, 0))
        self.java.send("permit", "s", 2, 60_000)
        self.server.wait_for_subscribers("redisson_sc:{s}")
        freed = self.answered("released", self.cpp.ask("unpermit", "s"))
        got = self.answered("acquired", self.java.receive())
        FIGURES.append(("sekali gives a permit back, Redisson waits", [got.at - freed.at]))
        self.answered("released", self.java.ask("unpermit", "s"))
        self.answered("released", other.ask("unpermit", "s"))
        self.assertEqual(self.server.ask("GET", "s"), "2")


class StringProfile(Interop):
    profile = "string"

    def check(self, title, other, key):
        cpp = self.sekali()
        renamed = Renamed(cpp, key)
        self.excludes(other, renamed, "report")
        self.hand_over(f"{title} releases, sekali waits", other, renamed, POLLED_S,
                       lambda name: self.server.wait_for_subscribers(
                           f"sekali_lock__channel:{{{key.format(name)}}}"))
        # Nothing tells that the others have begun to wait.
        self.hand_over(f"sekali releases, {title} waits", renamed, other, POLLED_S, lambda _: None)
        self.answered("acquired", renamed.ask("lock", "x", 0, 1000))
        self.answered("acquired", other.ask("lock", "x", 60_000, LEASE_MS))
        self.answered("lost", renamed.ask("unlock", "x"))
        self.answered("released", other.ask("unlock", "x"))
        self.answered("acquired", other.ask("lock", "y", 0, 1000))
        self.answered("acquired", renamed.ask("lock", "y", 60_000, 0))
        self.answered("lost", other.ask("unlock", "y"))
        renamed.kill()

    def test_with_laravel(self):
        self.check("Laravel", self.peer(peers.laravel), "laravel_cache:{}")

    def test_with_redis_py(self):
        self.check("redis-py", self.peer(peers.redis_py), "{}")


class Renamed:
    """A peer that is told the whole key where the other library adds to the name."""

    def __init__(self, peer, pattern):
        self.peer = peer
        self.pattern = pattern

    def send(self, command, name, *words):
        self.peer.send(command, self.pattern.format(name), *words)

    def ask(self, *words):
        self.send(*words)
        return self.peer.receive()

    def __getattr__(self, name):
        return getattr(self.peer, name)


if __name__ == "__main__":
    unittest.main()
