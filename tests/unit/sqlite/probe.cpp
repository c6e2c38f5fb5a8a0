#include <chrono>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

#include "backends/sqlite/sqlite_store.hpp"
#include "base/clock.hpp"
#include "base/ids.hpp"

// Another process that uses a database, for tests of what processes do to each other. Answers in
// lines on standard output.
namespace sekali::sqlite {
namespace {

using engine::JobRow;
using engine::Millis;
using engine::Tables;
using Arguments = std::vector<std::string>;

std::unique_ptr<SqliteStore> open_store(const std::string& path) {
    SqliteOptions options;
    options.path = path;
    return SqliteStore::open(options).value();
}

void say(const std::string& line) {
    std::cout << line << std::endl;
}

void wait_for_end_of_input() {
    std::string line;
    while (std::getline(std::cin, line)) {
    }
}

JobRow new_job() {
    JobRow row;
    row.job.id = row.job.key = base::new_uuid7();
    row.job.kind = "probe";
    row.job.payload = "{}";
    return row;
}

/// Opens the database and ends.
int open_only(const Arguments& arguments) {
    open_store(arguments.at(0));
    return 0;
}

/// Says what opening it for writing comes to.
int try_open(const Arguments& arguments) {
    SqliteOptions options;
    options.path = arguments.at(0);
    const auto store = SqliteStore::open(options);
    if (store.ok()) {
        say("opened");
    } else {
        const bool refused = store.error().code == ErrorCode::kRefused;
        say((refused ? "refused: " : "failed: ") + store.error().message + "; " +
            store.error().hint);
    }
    return 0;
}

/// Says how many jobs somebody sees who may only read.
int try_read(const Arguments& arguments) {
    SqliteOptions options;
    options.path = arguments.at(0);
    options.read_only = true;
    const auto store = SqliteStore::open(options).value();
    store
        ->read([](Tables& tables) {
            engine::JobFilter filter;
            filter.ns = "default";
            say(std::to_string(tables.list_jobs(filter).items.size()) + " jobs");
        })
        .value();
    return 0;
}

/// Is alive as a worker until its input ends, or for ever where it is killed.
int hold(const Arguments& arguments) {
    const auto store = open_store(arguments.at(0));
    const auto handle = store->hold_liveness(arguments.at(1)).value();
    say("held");
    wait_for_end_of_input();
    return 0;
}

/// The same, with a forked guard that outlives it until the guard's input ends.
int hold_with_guard(const Arguments& arguments) {
    const auto store = open_store(arguments.at(0));
    const auto handle = store->hold_liveness(arguments.at(1)).value();
    const pid_t guard = ::fork();
    if (guard == 0) {
        wait_for_end_of_input();
        ::_exit(0);
    }
    say(std::to_string(guard));
    ::pause();
    return 0;
}

/// Stores jobs one by one and says the id of each that was acknowledged.
int enqueue(const Arguments& arguments) {
    const auto store = open_store(arguments.at(0));
    const int count = std::stoi(arguments.at(1));
    for (int i = 0; i < count; ++i) {
        JobRow row = new_job();
        const auto stored = store->write_sync(
            [row](Tables& tables) {
                JobRow copy = row;
                tables.insert_job(copy);
            },
            std::chrono::seconds{60});
        stored.value();
        say(row.job.id);
    }
    return 0;
}

/// Stores a job for each line of input and says when by the steady clock it was committed, in ns.
int enqueue_on_demand(const Arguments& arguments) {
    const auto store = open_store(arguments.at(0));
    say("ready");
    std::string line;
    while (std::getline(std::cin, line)) {
        store
            ->write_sync(
                [](Tables& tables) {
                    JobRow row = new_job();
                    tables.insert_job(row);
                },
                std::chrono::seconds{60})
            .value();
        say(std::to_string(base::steady_now().time_since_epoch().count()));
    }
    return 0;
}

/// Always has something to write, until its input ends; then says how many commits it had.
int crowd(const Arguments& arguments) {
    const auto store = open_store(arguments.at(0));
    std::string line;
    say("ready");
    std::getline(std::cin, line);
    const auto until = base::steady_now() + Millis{std::stoi(arguments.at(1))};
    std::size_t commits = 0;
    std::size_t longest_ms = 0;
    while (base::steady_now() < until) {
        const auto since = base::steady_now();
        store
            ->write_sync(
                [](Tables& tables) {
                    JobRow row = new_job();
                    tables.insert_job(row);
                },
                std::chrono::seconds{60})
            .value();
        ++commits;
        const auto took = std::chrono::duration_cast<Millis>(base::steady_now() - since).count();
        longest_ms = std::max(longest_ms, static_cast<std::size_t>(took));
    }
    say(std::to_string(commits) + " " + std::to_string(longest_ms));
    return 0;
}

/// Waits for changes; for each that shows more jobs than before says when that was by the steady
/// clock, in ns.
int watch(const Arguments& arguments) {
    const auto store = open_store(arguments.at(0));
    std::size_t known = 0;
    const std::size_t wanted = std::stoul(arguments.at(1));
    const auto look = [&](Tables& tables) {
        engine::JobFilter filter;
        filter.ns = "default";
        filter.limit = 100'000;
        known = tables.list_jobs(filter).items.size();
    };
    store->wait_for_change(Millis{0});
    store->read(look).value();
    say("watching");
    while (known < wanted) {
        const std::size_t before = known;
        store->wait_for_change(std::chrono::seconds{10});
        store->read(look).value();
        const auto now = base::steady_now().time_since_epoch();
        if (known > before) say(std::to_string(now.count()));
    }
    return 0;
}

/// Waits in turns of a second, then says how many ms of processor time that took.
int idle(const Arguments& arguments) {
    const auto store = open_store(arguments.at(0));
    const auto used_ms = [] {
        rusage usage{};
        ::getrusage(RUSAGE_SELF, &usage);
        const auto ms = [](const timeval& t) { return t.tv_sec * 1000 + t.tv_usec / 1000; };
        return ms(usage.ru_utime) + ms(usage.ru_stime);
    };
    store->wait_for_change(Millis{0});
    const auto before = used_ms();
    const auto until = base::steady_now() + std::chrono::seconds{std::stoi(arguments.at(1))};
    while (base::steady_now() < until)
        store->wait_for_change(std::chrono::seconds{1});
    say(std::to_string(used_ms() - before));
    return 0;
}

int run(const std::string& command, const Arguments& arguments);

int as_nobody(const Arguments& arguments) {
    constexpr uid_t kNobody = 65534;
    if (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) return 3;
    return run(arguments.at(0), {arguments.begin() + 1, arguments.end()});
}

int run(const std::string& command, const Arguments& arguments) {
    if (command == "as-nobody") return as_nobody(arguments);
    if (command == "try-open") return try_open(arguments);
    if (command == "try-read") return try_read(arguments);
    if (command == "open") return open_only(arguments);
    if (command == "hold") return hold(arguments);
    if (command == "hold-with-guard") return hold_with_guard(arguments);
    if (command == "enqueue") return enqueue(arguments);
    if (command == "enqueue-on-demand") return enqueue_on_demand(arguments);
    if (command == "crowd") return crowd(arguments);
    if (command == "watch") return watch(arguments);
    if (command == "idle") return idle(arguments);
    std::cerr << "unknown command " << command << "\n";
    return 2;
}

}  // namespace
}  // namespace sekali::sqlite

int main(int argc, char** argv) {
    try {
        const std::vector<std::string> arguments(argv + 1, argv + argc);
        return sekali::sqlite::run(arguments.at(0), {arguments.begin() + 1, arguments.end()});
    } catch (const std::exception& thrown) {
        std::cerr << thrown.what() << "\n";
        return 1;
    }
}
