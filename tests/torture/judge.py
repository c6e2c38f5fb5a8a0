"""Whether everything that was promised was kept, by the ledger of the outside world, by what
handlers wrote through their commits, and by what the producers were told."""

import collections
import dataclasses
import datetime
import itertools

from neighbours import broken_rules
from faults import LEASE_S
from producers import ACCEPTED, CALLING, MAYBE, REFUSED, SUPPRESSED, WITH_EFFECT

FINAL = {"succeeded", "duplicate", "dead", "cancelled"}
LOSSES = {"takeover", "lease_lost", "lock_lost", "lock_fenced", "interrupted", "worker_crash",
          "late_result", "superseded", "timeout", "held"}
ROUNDED_S = 0.01  # of the times in the store


def seconds(text):
    return datetime.datetime.fromisoformat(text).timestamp()


@dataclasses.dataclass
class Run:
    begin: int = 0
    noted: int = 0  # by the clock of the ledger
    end: int | None = None
    lock: str = ""


class Ledger:
    """What the effect server was told, in order."""

    def __init__(self, path):
        self.runs = {}  # (kind, key, epoch)
        self.twice = []  # runs that began although their epoch had
        self.grants = collections.defaultdict(list)  # own locks: (fence, when)
        self.outside = []  # (when, verb, step key, kind, key, epoch, …)
        for line in path.read_text().splitlines():
            when, verb, *words = line.split("\t")
            if verb in ("begin", "end", "lock"):
                self.take_run(int(when), verb, words)
            else:
                step, kind, key, epoch, *said = words
                self.outside.append((int(when), verb, step, kind, key, int(epoch), *said))

    def take_run(self, when, verb, words):
        kind, key, _, epoch, lock, fence, at = words
        name = (kind, key, int(epoch))
        if verb == "begin":
            if name in self.runs:
                self.twice.append(name)
            # A shell cannot read the clock.
            self.runs[name] = Run(int(at) or when, when, lock=lock)
        elif verb == "end":
            self.runs[name].end = int(at)
        else:
            self.grants[lock].append((int(fence), int(at)))


def followed(runs):
    """Each run with when it was granted, and the first begin and grant after that."""
    next_begin = next_grant = float("inf")
    runs = sorted(runs, key=lambda entry: entry[:2], reverse=True)
    for since, together in itertools.groupby(runs, key=lambda entry: entry[0]):
        group = list(together)  # in one millisecond nobody knows who was first
        for _, name, run in group:
            yield name, run, since, next_begin, next_grant
        next_begin = min(next_begin, *(run.begin for _, _, run in group))
        next_grant = since


class Judge:
    def __init__(self, db, producers, ledger):
        self.db = db
        self.asked = producers.jobs
        self.ledger = ledger
        self.violations = []
        self.figures = {}

    def rows(self, question):
        return self.db.execute(question).fetchall()

    def accuse(self, what, evidence):
        """Says it where there is any evidence."""
        evidence = list(evidence)
        if evidence:
            self.violations.append(f"{what}: {len(evidence)} times, e.g. {evidence[:3]}")
        return len(evidence)

    def run(self):
        self.jobs = {row[0]: row for row in self.rows(
            "select id, kind, key, state, reason from sekali_v_jobs")}
        self.states = collections.defaultdict(list)
        for _, kind, key, state, _ in self.jobs.values():
            self.states[kind, key].append(state)
        self.succeeded = {key for key, states in self.states.items() if "succeeded" in states}
        self.effects = [(kind, key, job, int(epoch), account, int(cents), lock, int(fence), int(at))
                        for kind, key, job, epoch, account, cents, lock, fence, at in self.rows(
                            "select kind, key, job, epoch, account, cents, lock_name, fence, at "
                            "from effects")]
        for check in (self.check_jobs, self.check_store, self.check_effects, self.check_money,
                      self.check_outside, self.check_epochs, self.check_exclusion,
                      self.check_fences):
            check()
        self.count()
        return self.violations

    def check_jobs(self):
        accepted = [job for job in self.asked if job.status == ACCEPTED]
        lost = [job.id for job in accepted if job.id not in self.jobs]
        self.figures["lost"] = self.accuse("an accepted job is lost", lost)
        self.accuse("what was refused as not applied is there",
                    (job.id for job in self.asked
                     if job.status in (REFUSED, SUPPRESSED) and job.id in self.jobs))
        known = {job.key for job in self.asked}
        paid = {("receipt", f"of:{key}") for kind, key in known if kind == "pay"}
        self.accuse("a job that nobody asked for",
                    (job for job, kind, key, _, _ in self.jobs.values()
                     if (kind, key) not in known | paid))
        cancelled = {job.key for job in self.asked if job.may_be_cancelled}
        self.accuse("a job has not come to its end",
                    ((job, kind, state, reason) for job, kind, key, state, reason
                     in self.jobs.values() if not self.may_end(kind, key, state, cancelled)))

    def may_end(self, kind, key, state, cancelled):
        if state == "cancelled":
            return (kind, key) in cancelled
        if state not in FINAL:
            return state == "held" or (state == "waiting" and "held" in self.states[kind, key])
        return (state == "dead") == (kind == "doomed")

    def check_store(self):
        held = {key for key, states in self.states.items() if "held" in states}
        for violation, rows in broken_rules(self.db):
            # What is held waits for a person, with its record.
            if violation == "a record is still open":
                rows = [row for row in rows if row[0] not in {key for _, key in held}]
                if not rows:
                    continue
            self.violations.append(f"{violation}: {rows[:3]}")

    def check_effects(self):
        written = collections.Counter((kind, key) for kind, key, *_ in self.effects)
        wanted = {name for name in self.succeeded if name[0] in WITH_EFFECT}
        self.figures["double"] = self.accuse(
            "an effect was written twice", (name for name, times in written.items() if times > 1))
        self.figures["lost"] += self.accuse("a success without its effect",
                                            (name for name in wanted if name not in written))
        self.accuse("an effect without its success",
                    (name for name in written if name not in wanted))
        paid = {f"of:{key}" for kind, key in written if kind == "pay"}
        asked = {key for kind, key in self.states if kind == "receipt"}
        self.accuse("a payment and its receipt are not one commit", paid ^ asked)

    def check_money(self):
        booked = collections.Counter()
        for _, _, _, _, account, cents, *_ in self.effects:
            booked[account] += cents
        self.accuse("a balance is not the sum of its payments",
                    ((account, balance, booked[account]) for account, balance
                     in self.rows("select id, balance from accounts")
                     if int(balance) != booked[account]))

    def check_outside(self):
        first = {}
        times = collections.Counter()
        knew = set()  # (kind, key, epoch) whose probe had found the effect
        late = []
        for when, verb, _, kind, key, epoch, *said in self.ledger.outside:
            name = (kind, key)
            if verb == "effect":
                first[name] = when
                times[name] += 1
            elif verb == "probe" and said == ["yes"]:
                knew.add((kind, key, epoch))
            elif verb == "call" and kind != "call":
                began = self.ledger.runs.get((kind, key, epoch), Run()).noted
                if (kind, key, epoch) in knew or first.get(name, began) < began:
                    late.append((kind, key, epoch))
        self.figures["outside calls"] = sum(line[1] == "call" for line in self.ledger.outside)
        self.figures["outside effects"] = sum(times.values())
        self.figures["double"] += self.accuse(
            "a key has two effects outside", (name for name, count in times.items() if count > 1))
        self.accuse("a step ran again although its effect was known", late)
        self.figures["lost"] += self.accuse(
            "a success that never called outside",
            (name for name in self.succeeded if name[0] in CALLING and name not in times))

    def check_epochs(self):
        self.accuse("two runs began with one epoch", self.ledger.twice)
        largest = collections.Counter()
        for kind, key, epoch in self.ledger.runs:
            largest[kind, key] = max(largest[kind, key], epoch)
        self.accuse("a commit of an epoch below the largest that had begun",
                    ((kind, key, epoch, largest[kind, key])
                     for kind, key, _, epoch, *_ in self.effects
                     if epoch != largest[kind, key]))

    def check_exclusion(self):
        """By the order in which the store granted a lock or a key."""
        granted = {(kind, key, int(epoch)): seconds(started) for kind, key, epoch, started
                   in self.rows("select kind, key, epoch, started_at from sekali_v_attempts")}
        by_holding = collections.defaultdict(list)
        for name, run in self.ledger.runs.items():
            if name not in granted:
                continue
            by_holding[name[:2]].append((granted[name], name, run))
            if run.lock:
                by_holding[run.lock].append((granted[name], name, run))
        lost = {(kind, key) for kind, key, event in self.rows(
            "select kind, key, event from sekali_v_events") if event in LOSSES}
        committed = {(kind, key, epoch): at for kind, key, _, epoch, *_, at in self.effects}
        late, overlaps, too_soon = set(), set(), set()
        for runs in by_holding.values():
            for name, run, since, next_begin, next_grant in followed(runs):
                if next_begin < committed.get(name, 0):
                    late.add(name)
                if run.end is not None and next_begin < run.end:
                    overlaps.add(name)
                    if next_grant - since < LEASE_S - ROUNDED_S:
                        too_soon.add(name)
        self.figures["overlaps of stale runs"] = len(overlaps)
        self.accuse("a run committed after another had begun", late)
        self.accuse("two runs at once within a lease", too_soon)
        self.accuse("two runs at once and none had lost its lease",
                    (name for name in overlaps if name[:2] not in lost))

    def check_fences(self):
        for lock, grants in self.ledger.grants.items():
            fences = [fence for fence, _ in grants]
            self.accuse(f"a fence of {lock} was given twice",
                        (fence for fence, times in collections.Counter(fences).items()
                         if times > 1))
        self.accuse("a commit with a fence below one that was in use",
                    ((kind, key, fence) for kind, key, _, _, _, _, lock, fence, at in self.effects
                     if any(other > fence and when < at
                            for other, when in self.ledger.grants.get(lock, []))))

    def count(self):
        statuses = collections.Counter(job.status for job in self.asked)
        states = collections.Counter(row[3] for row in self.jobs.values())
        events = {event: int(count) for event, count in self.rows(
            "select event, count(*) from sekali_v_events group by event")}
        deliveries = self.rows("select sum(deliveries), count(*) from sekali_v_jobs")[0]
        self.figures.update({
            "asked for": len(self.asked), "accepted": statuses[ACCEPTED],
            "suppressed by a unique key": statuses[SUPPRESSED],
            "maybe": statuses[MAYBE], "refused": statuses[REFUSED], "jobs": len(self.jobs),
            "commits": len(self.effects), "runs begun": len(self.ledger.runs),
            "deliveries beyond the first": int(deliveries[0] or 0) - int(deliveries[1]),
            "states": dict(states), "events": events})
