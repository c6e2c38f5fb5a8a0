#!/usr/bin/env python3
"""Checks the model of the protocol with spin, whole and with each of its guards left out.

usage: model.py [--table]

Fails when the whole model has an error, when it was not searched to its end, when a guard can be
left out without a counterexample, or when a statement that the model quotes is no longer in the
tree. `--table` prints docs/protocol.md's table.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
QUOTED_ROOMS = ["src/engine", "src/backends/redis"]

KEY = ("one key", ["-DKEYS=1", "-DLOCKED=0"])
LOCK = ("one lock", ["-DKEYS=2", "-DLOCKED=1"])
BOTH = ("key and lock", ["-DKEYS=1", "-DLOCKED=1"])
WHOLE = [KEY, LOCK, BOTH]
# Each guard with jobs that share what it guards; the comments are those of guards.pml.
GUARDS = [
    ("EPOCH", KEY), ("NEW_EPOCH", KEY), ("FENCE", LOCK), ("NEW_FENCE", LOCK), ("FINAL", BOTH),
    ("ATOMIC", BOTH), ("DUPLICATE", BOTH), ("WAIT", KEY), ("LOCK_ROW", LOCK), ("MARK", BOTH),
    ("HOLD", BOTH), ("RECORDED", BOTH), ("OWN_END", BOTH), ("ANSWER", BOTH), ("DEADLINE", BOTH),
]
PROMISES = {
    "effects": "effects at most once",
    "mine == begins": "no commit below the largest epoch",
    "grant == grants": "no commit below the largest fence",
    "unanswered": "no second run under `hold`",
    "BOTH_KEPT": "one handler at a time",
    "mine > 0": "no handler without a begin",
}


@dataclass
class Result:
    seconds: float
    states: int
    depth: int  # the deepest path of a whole search, the counterexample's length otherwise
    errors: int
    line: str  # of the model, where an assertion failed
    complete: bool


def run(*command, cwd):
    done = subprocess.run(command, cwd=cwd, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        raise SystemExit(f"model: {' '.join(command)}:\n{done.stdout[-2000:]}")
    return done.stdout


def search(flags):
    with tempfile.TemporaryDirectory(prefix="sekali-model-") as place:
        for name in ["protocol.pml", "guards.pml"]:
            (pathlib.Path(place) / name).write_bytes((HERE / name).read_bytes())
        run("spin", "-a", *flags, "protocol.pml", cwd=place)
        run("gcc", "-O1", "-DSAFETY", "-DMEMLIM=2000", "-o", "pan", "pan.c", cwd=place)
        begin = time.monotonic()
        said = run("./pan", "-m10000", cwd=place)
        seconds = time.monotonic() - begin
        numbers = re.search(r"depth reached (\d+), errors: (\d+)", said)
        states = re.search(r"(\d+) states, stored", said)
        depth, errors = map(int, numbers.groups())
        complete = "Search not completed" not in said and "max search depth" not in said
        line = ""
        if errors:
            trail = run("spin", "-t", *flags, "protocol.pml", cwd=place)
            at = re.search(r"protocol.pml:(\d+), Error", trail)
            line = (HERE / "protocol.pml").read_text().splitlines()[int(at[1]) - 1] if at else said
            depth = int(re.search(r"trail ends after (\d+) steps", trail)[1])
    return Result(seconds, int(states[1]), depth, errors, line, complete)


def quotes_that_are_gone():
    text = (HERE / "protocol.pml").read_text(encoding="utf-8")
    quotes = [quote for comment in re.findall(r"/\*.*?\*/", text, re.S)
              for quote in re.findall(r'"(.+?)"(?=[\s),.]|\*)', comment)]
    sources = "".join(path.read_text(encoding="utf-8") for room in QUOTED_ROOMS
                      for path in sorted((TOP / room).glob("*.cpp")))
    return [quote for quote in quotes if quote not in sources], len(quotes)


def comments_of_guards():
    text = (HERE / "guards.pml").read_text(encoding="utf-8")
    return {name: comment.strip() for name, comment in
            re.findall(r"#ifn?def NO_(\w+) +/\* (.+?) \*/", text)}


def promise_of(line):
    return next((promise for part, promise in PROMISES.items() if part in line), line.strip())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", action="store_true", help="print what docs/protocol.md shows")
    as_table = parser.parse_args().table
    gone, quoted = quotes_that_are_gone()
    failures = [f'"{quote}" is no longer in {" or ".join(QUOTED_ROOMS)}' for quote in gone]
    if quoted == 0:
        failures.append("the model quotes nothing")
    comments = comments_of_guards()
    print("| left out | jobs share | states | seconds | result |\n|---|---|---:|---:|---|")
    for name, flags in WHOLE:
        found = search(flags)
        print(f"| nothing | {name} | {found.states:,} | {found.seconds:.1f} | no error; "
              f"searched to its end, {found.depth} steps deep |", flush=True)
        if found.errors or not found.complete:
            failures.append(f"the whole model with {name}: {found.errors} errors {found.line}")
    for guard, (name, flags) in GUARDS:
        found = search([*flags, f"-DNO_{guard}"])
        told = f"{promise_of(found.line)}: broken after {found.depth} steps"
        print(f"| {comments[guard] if as_table else guard} | {name} | {found.states:,} | "
              f"{found.seconds:.1f} | {told if found.errors else 'no counterexample'} |",
              flush=True)
        if not found.errors:
            failures.append(f"without {guard} nothing is broken")
    failures += [f"{guard} is in guards.pml but not tried" for guard in
                 sorted(set(comments) - {guard for guard, _ in GUARDS})]
    for failure in failures:
        print(f"model: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
