// A worker whose handlers are killed by the crash tests. Everything that it does outside of sekali
// goes to the ledger in $CRASH_FOLDER; what it writes through ctx.commit goes to the table
// `effects`.

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <string>

#include "ledger.hpp"
#include "sekali/worker_main.hpp"

namespace {

using namespace std::chrono_literals;
using sekali::Context;
using sekali::Outcome;

/// Waits; false when the run was asked to stop.
bool wait(Context& ctx, std::chrono::milliseconds time) {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock guard(mutex);
    never.wait_for(guard, ctx.stop_token(), time, [] { return false; });
    return !ctx.stop_token().stop_requested();
}

Outcome commit_effect(Context& ctx) {
    return ctx.commit([&](sekali::Transaction& tx) {
        tx.execute("insert into effects(kind, key, job) values ($1, $2, $3)", ctx.job().kind,
                   ctx.job().key, ctx.job().id);
    });
}

/// Charges outside by a step, then writes its row.
Outcome pay(const crash::Ledger& ledger, Context& ctx) {
    {
        // Ends before the commit, which gives the lock back before it returns.
        const crash::Ledger::Inside inside(ledger, ctx.job().lock_key, ctx.job().id);
        ctx.step(
            "charge", [&](const sekali::Step& s) { return ledger.charge(s.key(), ctx.job().id); },
            [&](const sekali::Step& s) -> std::optional<std::string> {
                if (!ledger.is_charged(s.key())) return std::nullopt;
                return "receipt-" + s.key();
            });
    }
    return commit_effect(ctx);
}

Outcome flaky(Context& ctx) {
    if (ctx.attempt() == 1) return sekali::retry("the first attempt fails", 20ms);
    return commit_effect(ctx);
}

Outcome snooze(Context& ctx) {
    if (ctx.epoch() == 1) return sekali::snooze(20ms);
    return commit_effect(ctx);
}

/// Long enough for its leases to be renewed.
Outcome slow(Context& ctx) {
    if (!wait(ctx, 900ms)) throw std::runtime_error("asked to stop");
    return commit_effect(ctx);
}

/// Runs until the file `open` is there.
Outcome gate(const crash::Ledger& ledger, Context& ctx) {
    ledger.note("enter", ctx.job().key, ctx.job().id);
    while (!ledger.exists("open")) {
        if (!wait(ctx, 10ms)) throw std::runtime_error("asked to stop");
    }
    return commit_effect(ctx);
}

void register_handlers(sekali::Worker& worker) {
    const char* folder = std::getenv("CRASH_FOLDER");
    if (folder == nullptr) throw std::runtime_error("CRASH_FOLDER is not set");
    static const crash::Ledger ledger(folder);
    const sekali::HandlerOptions by_steps{.effects = sekali::Effects::kSteps,
                                          .on_unknown = sekali::OnUnknown::kProbe};
    const sekali::HandlerOptions by_commit{.effects = sekali::Effects::kCommit};
    worker.handle_raw(
        "pay", [](Context& ctx) { return pay(ledger, ctx); }, by_steps);
    worker.handle_raw(
        "refund", [](Context& ctx) { return pay(ledger, ctx); }, by_steps);
    worker.handle_raw("flaky", flaky, by_commit);
    worker.handle_raw("snooze", snooze, by_commit);
    worker.handle_raw("slow", slow, by_commit);
    worker.handle_raw(
        "gate", [](Context& ctx) { return gate(ledger, ctx); }, by_commit);
    worker.handle_raw(
        "poison", [](Context&) { return sekali::fail("it is poison"); }, by_commit);
    worker.handle_raw(
        "unwanted", [](Context&) { return sekali::cancel("unwanted"); }, by_commit);
}

}  // namespace

int main(int argc, char** argv) {
    return sekali::worker_main(argc, argv, register_handlers);
}
