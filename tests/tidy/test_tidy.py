#!/usr/bin/env python3
"""Every house rule finds what it is there for, and nothing in code that keeps it."""

import pathlib
import unittest

import text_rules
import tree_rules
from source import Source, functions


def source(path, text):
    return Source(pathlib.PurePosixPath(path), text)


def lengths(text):
    return {f.name: f.length for f in functions(source("src/engine/a.cpp", text))}


def text_findings(rule, path, text):
    return [line for line, _ in rule(source(path, text))]


def tree_findings(rule, **files):
    sources = [source(path, text) for path, text in files.items()]
    return [str(path) for path, _, _ in rule(sources)]


class Functions(unittest.TestCase):
    def test_free_functions_and_members(self):
        text = """
namespace sekali {
struct Job final : Base {
 public:
    int id() const noexcept { return id_; }
    bool operator==(const Job& other) const = default;

 private:
    int id_{0};
};
template <typename T, class = std::enable_if_t<true>>
auto read(T value)
    -> std::optional<T> {
    if (value) {
        return {value};
    }
    return {};
}
}  // namespace sekali
"""
        self.assertEqual(lengths(text), {"id": 1, "read": 8})

    def test_constructor_with_braced_members(self):
        text = """Worker::Worker(Options options)
    : options_{std::move(options)}, clock_(options_.clock), rows_{} {
    start();
}
"""
        self.assertEqual(lengths(text), {"Worker::Worker": 4})

    def test_tables_are_no_functions(self):
        text = """constexpr Row kRows[] = {
    {"a", 1},
    {"b", 2},
};
const std::map<std::string, std::function<void(int)>> kActions{{"a", run}};
enum class State { kReady, kRunning };
"""
        self.assertEqual(lengths(text), {})

    def test_lambdas_count_with_their_function(self):
        text = """void run() {
    auto later = [] {
        go();
    };
    later();
}
"""
        self.assertEqual(lengths(text), {"run": 6})

    def test_braces_in_literals_and_comments(self):
        text = """void run() {
    print("}{", '}', R"({"a": {)");  // }
    /* { */
}
#define OPEN {   \\
    {
int next() { return 1'000'000; }
"""
        self.assertEqual(lengths(text), {"run": 4, "next": 1})


class TextRules(unittest.TestCase):
    def test_long_lines_are_counted_in_characters(self):
        text = "x" * 100 + "\n" + "…" * 100 + "\n" + "x" * 101 + "\n"
        self.assertEqual(text_findings(text_rules.long_lines, "src/base/a.cpp", text), [3])

    def test_long_files_outside_tests(self):
        text = "\n" * 601
        self.assertEqual(text_findings(text_rules.long_files, "src/base/a.cpp", text), [600])
        self.assertEqual(text_findings(text_rules.long_files, "tests/unit/a.cpp", text), [])

    def test_long_functions(self):
        text = "void run() {\n" + "    go();\n" * 69 + "}\n"
        self.assertEqual(text_findings(text_rules.long_functions, "src/base/a.cpp", text), [1])
        text = "void run() {\n" + "    go();\n" * 68 + "}\n"
        self.assertEqual(text_findings(text_rules.long_functions, "src/base/a.cpp", text), [])

    def test_markers(self):
        text = "// TO" + "DO later\nint todo = 0;\n"
        self.assertEqual(text_findings(text_rules.markers, "src/base/a.cpp", text), [1])

    def test_sleeps_without_a_reason(self):
        text = "std::this_thread::sleep_for(1s);\nusleep(1);  // the pause itself is tested\n"
        rule = text_rules.unexplained_sleeps
        self.assertEqual(text_findings(rule, "tests/unit/a.cpp", text), [1])
        self.assertEqual(text_findings(rule, "tests/crash/a.sh", "sleep 1\n"), [1])
        self.assertEqual(text_findings(rule, "tests/unit/b.cpp", "// no sleep( here\n"), [])

    def test_banned_calls(self):
        rule = text_rules.banned_calls
        for call in (
            "auto now = std::chrono::system_clock::now();",
            "int n = rand();",
            'auto* home = getenv("HOME");',
            "auto* job = new Job();",
            "delete job;",
            "assert(n > 0);",
            "thread.detach();",
            'system("ls");',
            "co_return 1;",
        ):
            with self.subTest(call):
                self.assertEqual(text_findings(rule, "src/engine/a.cpp", call), [1])
        for call in (
            'print("new Job");',
            "Job(const Job&) = delete;",
            "static_assert(sizeof(int) == 4);",
            "new (place) Job();",
            "static auto* jobs = new Jobs();",
            "operand(1);",
            "std::error_code code(errno, std::system_category());",
        ):
            with self.subTest(call):
                self.assertEqual(text_findings(rule, "src/engine/a.cpp", call), [])

    def test_header_form(self):
        text = "using namespace std;\n"
        self.assertEqual(text_findings(text_rules.header_form, "src/base/a.hpp", text), [1, 1])


class TreeRules(unittest.TestCase):
    def test_arrows_point_downwards(self):
        files = {
            "src/engine/up.cpp": '#include "backends/sqlite/store.hpp"\n',
            "src/engine/down.cpp": '#include "base/ids.hpp"\n#include "engine/ports.hpp"\n',
            "src/client/cli.cpp": '#include "cli/table.hpp"\n',
            "src/backends/memory/other.cpp": '#include "backends/sqlite/store.hpp"\n',
            "src/backends/sqlite/own.cpp": '#include "backends/sqlite/store.hpp"\n',
            "src/backends/sqlite/shared.cpp": '#include "backends/rows/ports.hpp"\n',
            "src/backends/open.cpp": '#include "backends/open.hpp"\n',
            "include/sekali/up.hpp": '#include "base/ids.hpp"\n',
        }
        self.assertEqual(
            tree_findings(tree_rules.include_direction, **files),
            [
                "src/engine/up.cpp",
                "src/client/cli.cpp",
                "src/backends/memory/other.cpp",
                "include/sekali/up.hpp",
            ],
        )

    def test_rooms_are_known(self):
        files = {"src/attic/a.cpp": "", "src/base/a.cpp": "", "src/CMakeLists.txt": ""}
        self.assertEqual(tree_findings(tree_rules.unknown_rooms, **files), ["src/attic/a.cpp"])

    def test_public_headers_stand_alone(self):
        files = {
            "include/sekali/fmt.hpp": "#include <fmt/format.h>\n",
            "include/sekali/std.hpp": '#include <string_view>\n#include "sekali/fmt.hpp"\n',
            "include/sekali/json.hpp": "#include <nlohmann/json.hpp>\n",
        }
        found = tree_findings(tree_rules.public_includes, **files)
        self.assertEqual(found, ["include/sekali/fmt.hpp"])

    def test_one_file_includes_a_slow_library(self):
        files = {
            "src/cli/parse.cpp": "#include <CLI/CLI.hpp>\n",
            "src/cli/work.cpp": "#include <CLI/App.hpp>\n",
        }
        found = tree_findings(tree_rules.single_includers, **files)
        self.assertEqual(found, ["src/cli/work.cpp"])

    def test_every_source_is_listed(self):
        files = {
            "src/backends/CMakeLists.txt": "sekali_room(sqlite sqlite/store.cpp)\n",
            "src/backends/sqlite/store.cpp": "",
            "src/backends/sqlite/old_store.cpp": "",
            "src/backends/sqlite/ore.cpp": "",
        }
        self.assertEqual(
            tree_findings(tree_rules.unlisted_sources, **files),
            ["src/backends/sqlite/old_store.cpp", "src/backends/sqlite/ore.cpp"],
        )

    def test_every_header_is_included(self):
        files = {
            "src/base/used.hpp": "",
            "src/base/unused.hpp": "",
            "src/base/a.cpp": '#include "base/used.hpp"\n',
            "tests/unit/beside.hpp": "",
            "tests/unit/a.cpp": '#include "beside.hpp"\n',
        }
        self.assertEqual(tree_findings(tree_rules.unused_headers, **files), ["src/base/unused.hpp"])


if __name__ == "__main__":
    unittest.main()
