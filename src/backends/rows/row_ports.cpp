#include "backends/rows/row_ports.hpp"

#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "engine/operations.hpp"

namespace sekali::rows {
namespace {

using engine::Done;
using engine::LockReply;
using engine::QueueReply;
using engine::StoreReply;
using engine::Tables;
using engine::Task;

template <typename... Visitors>
struct Overloaded : Visitors... {
    using Visitors::operator()...;
};
template <typename... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

QueueReply run(Tables& tables, const engine::QueueCommand& command) {
    return std::visit(
        Overloaded{
            [&](const engine::Claim& claim) -> QueueReply { return engine::claim(tables, claim); },
            [&](const engine::Return& give_back) -> QueueReply {
                engine::give_back(tables, give_back);
                return Done{};
            },
            // Settling has moved the row already, because it is the store's.
            [](const engine::Acknowledge&) -> QueueReply { return Done{}; },
            [&](const engine::Extend& extend) -> QueueReply {
                engine::Renew renewal;
                renewal.run = extend.run;
                renewal.lease = extend.lease;
                engine::renew(tables, renewal);
                return Done{};
            },
        },
        command);
}

StoreReply run(Tables& tables, const engine::StoreCommand& command) {
    return std::visit(
        Overloaded{
            [&](const engine::Begin& begin) -> StoreReply { return engine::begin(tables, begin); },
            [&](const engine::Settle& settle) -> StoreReply {
                return engine::settle(tables, settle);
            },
            [&](const engine::Renew& renew) -> StoreReply { return engine::renew(tables, renew); },
            [&](const engine::StepIntent& intent) -> StoreReply {
                return engine::step_intent(tables, intent);
            },
            [&](const engine::StepResult& result) -> StoreReply {
                engine::step_result(tables, result);
                return Done{};
            },
            [&](const engine::Answer& answer) -> StoreReply {
                const std::optional<engine::Settled> ended = engine::answer(tables, answer);
                if (ended) return *ended;
                return Done{};
            },
            [&](const engine::Recover& recover) -> StoreReply {
                return engine::recover(tables, recover);
            },
            [&](const engine::Heartbeat& heartbeat) -> StoreReply {
                engine::heartbeat(tables, heartbeat);
                return Done{};
            },
        },
        command);
}

LockReply run(Tables& tables, const engine::LockCommand& command) {
    return std::visit(
        Overloaded{
            [&](const engine::LockAcquire& acquire) {
                return engine::acquire_lock(tables, acquire);
            },
            [&](const engine::LockRenew& renew) { return engine::renew_lock(tables, renew); },
            [&](const engine::LockRelease& release) {
                return engine::release_lock(tables, release);
            },
        },
        command);
}

/// Leases must not lapse behind other work.
bool is_urgent(const engine::QueueCommand& command) {
    return std::holds_alternative<engine::Extend>(command);
}
bool is_urgent(const engine::StoreCommand& command) {
    return std::holds_alternative<engine::Renew>(command) ||
           std::holds_alternative<engine::Heartbeat>(command);
}
bool is_urgent(const engine::LockCommand& command) {
    return std::holds_alternative<engine::LockRenew>(command);
}

template <typename Command>
void foresee(Tables& tables, const Command& command) {
    if (!tables.is_far()) return;
    engine::Footprint rows;
    engine::add_footprint(rows, command);
    tables.foresee(rows);
}

template <typename Reply, typename Call>
void submit_calls(engine::Executor& executor, std::vector<Call> calls) {
    std::vector<Task> tasks;
    tasks.reserve(calls.size());
    for (Call& call : calls) {
        // A group that fails is run again, so the reply is set afresh by each run.
        auto reply = std::make_shared<std::optional<Reply>>();
        const bool urgent = is_urgent(call.command);
        tasks.push_back({.work =
                             [command = std::move(call.command), reply](Tables& tables) {
                                 *reply = std::nullopt;
                                 foresee(tables, command);
                                 *reply = run(tables, command);
                             },
                         .done =
                             [done = std::move(call.done), reply](const Result<void>& committed) {
                                 if (committed.ok()) {
                                     done(*std::move(*reply));
                                 } else {
                                     done(committed.error());
                                 }
                             },
                         .urgent = urgent});
    }
    executor.submit(std::move(tasks));
}

}  // namespace

void RowPorts::submit(std::vector<engine::QueuePort::Call> calls) {
    submit_calls<QueueReply>(executor_, std::move(calls));
}

void RowPorts::submit(std::vector<engine::StorePort::Call> calls) {
    submit_calls<StoreReply>(executor_, std::move(calls));
}

void RowPorts::submit(std::vector<engine::LockPort::Call> calls) {
    submit_calls<LockReply>(executor_, std::move(calls));
}

}  // namespace sekali::rows
