#!/usr/bin/env python3
"""Takes the protocol's guards out, one at a time, and shows that a test notices.

usage: mutations.py [--check] [--simulator | --torture] [--only WORD]… [--sample N] [--seed S]
                    [--jobs N]

Works on a copy of the tracked files as they are now. Fails when a mutation survives, does not
build, or its text no longer stands in the tree exactly once; `--check` looks at nothing else.
What the conformance suites cannot see is left to the simulator; `--simulator` leaves all to it
first, and says after how many seeds it found each. `--torture` leaves all to real processes that
are tortured (tests/torture), which sees what many runs under faults show.
"""

import argparse
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

from guards import MUTATIONS

TOP = pathlib.Path(__file__).resolve().parents[2]
# The protocol is written once for all backends, so the one that needs no disk is enough.
OTHER_BACKENDS = "/(sqlite|postgres)$"
SECONDS_A_TEST = 60
SEEDS = 2000
SEEDS_ON_SQLITE = 500
SEEDS_UNCHANGED = 200
SECONDS_OF_SEEDS = 600
TORTURE = ["--pairing", "sqlite", "--seconds", "90", "--rate", "25"]
LONGEST_QUOTE = 100


def stale(mutation):
    found = (TOP / mutation.file).read_text(encoding="utf-8").count(mutation.text)
    if found == 1:
        return ""
    return f"{mutation.guard}: its text stands {found} times in {mutation.file}"


def copy_tree(place):
    listed = subprocess.run(["git", "-C", TOP, "ls-files", "-z", "--cached", "--others",
                             "--exclude-standard"], check=True, capture_output=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        if (TOP / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(TOP / name, place / name)


class Laboratory:
    """A copy of the tree with a build of its own."""

    def __init__(self, place, jobs):
        self.tree = place / "tree"
        self.build = self.tree / "build" / "dev"
        self.fast_build = self.tree / "build" / "release"
        self.jobs = str(jobs)
        copy_tree(self.tree)
        self.call("cmake", "--preset", "dev", "--log-level=NOTICE", cwd=self.tree)
        self.call("cmake", "--preset", "release", "--log-level=NOTICE", cwd=self.tree)

    @staticmethod
    def call(*command, cwd):
        done = subprocess.run(command, cwd=cwd, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}:\n{done.stdout[-4000:]}")
        return done.stdout

    def make(self, *targets):
        self.call("ninja", "-j", self.jobs, *targets, cwd=self.build)

    def simulate(self, arguments, seeds=None):
        """After how many seeds the simulator found something, and what; (0, "") where nothing."""
        self.call("ninja", "-j", self.jobs, "sekali-sim", cwd=self.fast_build)
        seeds = seeds or (SEEDS_ON_SQLITE if "--sqlite" in arguments else SEEDS)
        try:
            done = subprocess.run(["./sekali-sim", "--seeds", str(seeds), "--until-failure",
                                   *arguments], cwd=self.fast_build, text=True, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=SECONDS_OF_SEEDS)
        except subprocess.TimeoutExpired:
            return 1, "a run does not end"
        if done.returncode == 0:
            return 0, ""
        seed = re.search(r"^seed (\d+) ", done.stdout, re.M)
        said = re.search(r"^  (\S.*)$", done.stdout, re.M)
        crashed = done.stdout.strip().splitlines()[-1:] or [f"status {done.returncode}"]
        return int(seed[1]) + 1 if seed else 1, said[1] if said and seed else crashed[0]

    def torture(self):
        """What the torture of real processes accuses, where it finds anything."""
        self.call("ninja", "-j", self.jobs, "sekali", "torture_worker", cwd=self.fast_build)
        done = subprocess.run(["tests/torture/torture.py", "build/release", *TORTURE],
                              cwd=self.tree, text=True, stdout=subprocess.PIPE, check=False,
                              env={**os.environ, "TMPDIR": str(self.tree)})
        found = re.search(r"^\S+: VIOLATION (.*)$", done.stdout, re.M)
        return {"torture": found[1]} if found else {}

    def test(self, pattern):
        """The tests that are red, each with the first thing that it said, and how many ran."""
        done = subprocess.run(
            ["ctest", "-R", pattern, "-E", OTHER_BACKENDS, "-j", self.jobs, "--output-on-failure",
             "--timeout", str(SECONDS_A_TEST)],
            cwd=self.build, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            check=False)
        results = re.findall(r"^ *\d+/\d+ Test +#\d+: (\S+) \.*([^\n]*)\n", done.stdout, re.M)
        red = {}
        for name, result in results:
            if "Passed" not in result:
                red[name] = self.said(done.stdout, name) or result.strip(" *")
        return red, len(results)

    @staticmethod
    def said(output, name):
        start = output.find("[ RUN      ] " + name)
        lines = output[start:].splitlines()[1:] if start >= 0 else []
        # "FILE:LINE: Failure", then what was expected.
        failures = [i for i, line in enumerate(lines) if line.endswith(": Failure")]
        if not failures:
            return lines[0].strip() if lines else ""
        words = []
        for line in lines[failures[0] + 1:]:
            if not line.strip() or line.startswith("["):
                break
            words.append(line.strip())
        return " ".join(words)


def try_mutation(laboratory, mutation, first):
    """What caught it and what that said, or nothing where it survived."""
    file = laboratory.tree / mutation.file
    whole = file.read_text(encoding="utf-8")
    file.write_text(whole.replace(mutation.text, mutation.instead), encoding="utf-8")
    try:
        if first == "torture":
            return laboratory.torture()
        if first == "simulator" or not mutation.tests:
            seeds, said = laboratory.simulate(mutation.simulator)
            if seeds:
                name = " ".join(["sekali-sim", *mutation.simulator])
                return {f"{name}, {seeds} seed{'s' * (seeds > 1)}": said}
        if not mutation.tests:
            return {}
        laboratory.make(mutation.target)
        return laboratory.test(mutation.tests)[0]
    finally:
        file.write_text(whole, encoding="utf-8")


def shown(text):
    text = " ".join(text.split()).replace("|", "\\|")
    return text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE - 1] + "…"


def report(mutation, red):
    first = min(red, key=len)
    more = f" and {len(red) - 1} more" if len(red) > 1 else ""
    change = f"`{shown(mutation.text)}` → `{shown(mutation.instead) or 'nothing'}`"
    print(f"| {mutation.guard} | {change} | {first}{more} | {shown(red[first])} |", flush=True)


def check_unchanged(laboratory, mutations, first):
    failures = []
    if first == "torture":
        return [f"torture: red unchanged: {said}" for said in laboratory.torture().values()]
    patterns = {mutation.tests for mutation in mutations if mutation.tests}
    for pattern in sorted(patterns if first == "tests" else {}):
        red, count = laboratory.test(pattern)
        if red or count == 0:
            failures.append(f"{pattern}: {len(red)} of {count} tests are red unchanged")
    simulated = {mutation.simulator for mutation in mutations
                 if first == "simulator" or not mutation.tests}
    for arguments in sorted(simulated):
        seeds, said = laboratory.simulate(arguments, SEEDS_UNCHANGED)
        if seeds:
            failures.append(f"sekali-sim {' '.join(arguments)}: red unchanged: {said}")
    return failures


def survived_by(mutation, first):
    return first if first == "torture" else mutation.tests or "sekali-sim"


def run(mutations, jobs, first):
    failures = []
    with tempfile.TemporaryDirectory(prefix="sekali-mutations-") as place:
        laboratory = Laboratory(pathlib.Path(place), jobs)
        targets = {mutation.target for mutation in mutations if mutation.target}
        if targets and first == "tests":
            laboratory.make(*sorted(targets))
        failures = check_unchanged(laboratory, mutations, first)
        if failures:
            return failures
        print("| guard | mutation | caught by | what the test said |\n|---|---|---|---|",
              flush=True)
        for mutation in mutations:
            try:
                red = try_mutation(laboratory, mutation, first)
            except RuntimeError as error:
                failures.append(f"{mutation.guard}: does not build: {error}")
                continue
            if red:
                report(mutation, red)
            else:
                failures.append(f"{mutation.guard}: survived {survived_by(mutation, first)}")
    return failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true", help="only whether each text still applies")
    parser.add_argument("--simulator", action="store_const", const="simulator", dest="first",
                        default="tests", help="the simulator looks first")
    parser.add_argument("--torture", action="store_const", const="torture", dest="first",
                        help="only the torture looks")
    parser.add_argument("--only", action="append", default=[], metavar="WORD",
                        help="guards whose name holds this word")
    parser.add_argument("--sample", type=int, metavar="N", help="some of them")
    parser.add_argument("--seed", type=int, help="which ones")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    mutations = [mutation for mutation in MUTATIONS
                 if not options.only or any(word in mutation.guard for word in options.only)]
    failures = list(filter(None, map(stale, mutations)))
    if options.sample is not None:
        picked = random.Random(options.seed).sample(range(len(mutations)),
                                                    min(options.sample, len(mutations)))
        mutations = [mutations[i] for i in sorted(picked)]
    if not failures and not options.check:
        failures = run(mutations, options.jobs, options.first)
    for failure in failures:
        print(f"mutations: {failure}", file=sys.stderr)
    print(f"mutations: {len(mutations)} guards, {len(failures)} failures", file=sys.stderr)
    return 1 if failures or not mutations else 0


if __name__ == "__main__":
    sys.exit(main())
