#!/usr/bin/env python3
"""Checks the house rules that no compiler knows; status 1 if one is broken: tidy.py [TOP]"""

import os
import pathlib
import sys

import text_rules
import tree_rules
from source import Source

FOLDERS = ["include", "src", "tests", "bench", "examples", "cmake", "scripts", ".ci"]
SUFFIXES = {".cpp", ".hpp", ".cmake", ".py"}


def is_checked(path: pathlib.Path) -> bool:
    if path.suffix in SUFFIXES or path.name == "CMakeLists.txt":
        return True
    with path.open("rb") as file:
        return path.suffix in ("", ".sh") and file.read(2) == b"#!"


def read_tree(top: pathlib.Path) -> list[Source]:
    sources = []
    for folder in FOLDERS:
        for place, _, names in os.walk(top / folder):
            for path in (pathlib.Path(place) / name for name in names):
                if is_checked(path):
                    inner = pathlib.PurePosixPath(path.relative_to(top))
                    sources.append(Source(inner, path.read_text(encoding="utf-8")))
    return sorted(sources, key=lambda source: source.path)


def findings(sources: list[Source]) -> list[str]:
    found = []
    for source in sources:
        for rule in text_rules.RULES:
            found += [(source.path, line, message) for line, message in rule(source)]
    for rule in tree_rules.RULES:
        found += rule(sources)
    return [f"{path}:{line}: {message}" for path, line, message in sorted(found)]


def main() -> int:
    default_top = pathlib.Path(__file__).resolve().parents[2]
    top = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default_top
    sources = read_tree(top)
    if not any(source.is_cpp for source in sources):
        print(f"tidy: no C++ below {top}", file=sys.stderr)
        return 2
    found = findings(sources)
    for finding in found:
        print(finding, file=sys.stderr)
    if found:
        print(f"tidy: {len(found)} findings in {len(sources)} files", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
