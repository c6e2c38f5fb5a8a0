"""Rules that need one file at a time. Each is a function from a Source to (line, message) pairs."""

import re

from source import functions

MAX_COLUMNS = 100
MAX_FUNCTION_LINES = 70
MAX_FILE_LINES = 600

MARKER = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
SLEEP = re.compile(r"\b(?:sleep_for|sleep_until|usleep|nanosleep|sleep)\s*\(|\bsleep [0-9]")
COMMENT = re.compile(r"//|#|/\*")

# (what is not called, what to write instead, where it is written all the same)
BANNED = [
    (r"system_clock\s*::\s*now", "base::wall_ms()", ["src/base/clock.cpp"]),
    (r"\bs?rand\s*\(", "the randomness of base", []),
    (r"\brandom_device\b", "the randomness of base", ["src/base/random.cpp"]),
    (r"\bgetenv\s*\(", "the settings that the command was given",
     ["src/base/faults.cpp", "examples/payments/main.cpp"]),
    # a static that threads may use until the process ends is never destroyed
    (r"^(?!\s*static\b).*\b(new\s+[A-Za-z_:]\w*)", "std::make_unique or a container", []),
    (r"\bdelete\s+[A-Za-z_(]|\bdelete\s*\[", "an owner such as std::unique_ptr", []),
    (r"\bassert\s*\(", "SEKALI_ASSERT, which stays on in release", []),
    (r"\.detach\s*\(\s*\)", "a thread that its owner joins", []),
    (r"\b(?:system|popen)\s*\(", "the process room, which needs no shell", []),
    (r"\b(?:localtime|gmtime|strtok)\s*\(", "its form that is safe among threads", []),
    (r"\bco_(?:await|return|yield)\b", "a state machine: GCC 12 miscompiles coroutines", []),
    (r"\bINADDR_ANY\b", "the loopback address", []),
]


def long_lines(source):
    for number, line in enumerate(source.lines, 1):
        if len(line) > MAX_COLUMNS:
            yield number, f"{len(line)} columns; at most {MAX_COLUMNS}"


def long_files(source):
    if source.is_cpp and not source.is_test and len(source.lines) > MAX_FILE_LINES:
        yield MAX_FILE_LINES, f"{len(source.lines)} lines; at most {MAX_FILE_LINES}: split it"


def long_functions(source):
    if not source.is_cpp or source.is_test:
        return
    for function in functions(source):
        if function.length > MAX_FUNCTION_LINES:
            yield function.line, (
                f"{function.name} has {function.length} lines; at most {MAX_FUNCTION_LINES}"
            )


def markers(source):
    for number, line in enumerate(source.lines, 1):
        if match := MARKER.search(line):
            yield number, f"{match.group()} is left over: do it, or open an issue"


def unexplained_sleeps(source):
    if not source.is_test or source.path.parts[1] == "tidy":
        return
    code_lines = source.code.splitlines() if source.is_cpp else source.lines
    for number, (code, line) in enumerate(zip(code_lines, source.lines), 1):
        if SLEEP.search(code) and not COMMENT.search(line):
            yield number, "a sleep in a test: wait for an event, or say on this line why"


def banned_calls(source):
    if not source.is_cpp or source.is_test:
        return
    for number, line in enumerate(source.code.splitlines(), 1):
        for pattern, instead, allowed in BANNED:
            if (match := re.search(pattern, line)) and str(source.path) not in allowed:
                call = match.group(match.lastindex or 0).strip()
                yield number, f"{call} is not used here; use {instead}"


def header_form(source):
    if source.path.suffix != ".hpp":
        return
    if "#pragma once" not in source.lines:
        yield 1, "a header begins with #pragma once"
    for number, line in enumerate(source.code.splitlines(), 1):
        if not source.is_test and re.match(r"\s*using\s+namespace\b", line):
            yield number, "using namespace in a header reaches everybody who includes it"


RULES = [
    long_lines,
    long_files,
    long_functions,
    markers,
    unexplained_sleeps,
    banned_calls,
    header_form,
]
