// What the fault tests of PostgreSQL run: `work`, whose end is noted with its time, and `transfer`,
// which moves cents between shared rows in an order that invites deadlocks. Both write by
// ctx.commit alone. Notes go to $FAULT_NOTES, a file of lines "what\tkey\tnanoseconds".

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <string>

#include "sekali/worker_main.hpp"

namespace {

using namespace std::chrono_literals;
using sekali::Context;
using sekali::Outcome;
using sekali::Transaction;

/// Long enough that some are always under way.
constexpr auto kWork = 50ms;

class Notes {
 public:
    explicit Notes(const char* path)
        : file_(::open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600)) {
        if (file_ < 0) throw std::runtime_error("FAULT_NOTES cannot be opened");
    }

    /// One line, in one write, by the clock that Python calls monotonic.
    void add(const std::string& what, const std::string& key) const {
        timespec now{};
        ::clock_gettime(CLOCK_MONOTONIC, &now);
        const std::int64_t at = now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
        const std::string line = what + '\t' + key + '\t' + std::to_string(at) + '\n';
        if (::write(file_, line.data(), line.size()) < 0) ::abort();
    }

 private:
    int file_;
};

void wait(const std::stop_token& stop, std::chrono::milliseconds time) {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock guard(mutex);
    never.wait_for(guard, stop, time, [] { return false; });
}

struct Transfer {
    std::int64_t from = 0;
    std::int64_t to = 0;
    std::int64_t cents = 0;
    static constexpr std::string_view kKind = "transfer";
    static constexpr auto kFields =
        sekali::fields(sekali::field("from", &Transfer::from), sekali::field("to", &Transfer::to),
                       sekali::field("cents", &Transfer::cents));
};

Outcome work(const Notes& notes, Context& ctx) {
    notes.add("enter", ctx.job().key);
    wait(ctx.stop_token(), kWork);
    Outcome outcome = ctx.commit([&](Transaction& tx) {
        tx.execute("insert into effects(kind, key) values ($1, $2)", ctx.job().kind, ctx.job().key);
    });
    notes.add("done", ctx.job().key);
    return outcome;
}

Outcome transfer(Context& ctx, const Transfer& job) {
    return ctx.commit([&](Transaction& tx) {
        // Whoever comes first to one row may come second to the other.
        tx.execute("update accounts set balance = balance - $2 where id = $1", job.from, job.cents);
        tx.execute("update accounts set balance = balance + $2 where id = $1", job.to, job.cents);
        tx.execute("insert into effects(kind, key) values ($1, $2)", ctx.job().kind, ctx.job().key);
    });
}

void register_handlers(sekali::Worker& worker) {
    const char* path = std::getenv("FAULT_NOTES");
    if (path == nullptr) throw std::runtime_error("FAULT_NOTES is not set");
    static const Notes notes(path);
    const sekali::HandlerOptions by_commit{.effects = sekali::Effects::kCommit};
    worker.handle_raw(
        "work", [](Context& ctx) { return work(notes, ctx); }, by_commit);
    worker.handle_raw(
        "nothing", [](Context&) { return sekali::success(); }, by_commit);
    worker.handle<Transfer>(transfer, by_commit);
}

}  // namespace

int main(int argc, char** argv) {
    return sekali::worker_main(argc, argv, register_handlers);
}
