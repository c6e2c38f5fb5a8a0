#include "payments.hpp"

#include <chrono>

#include "gateway.hpp"

namespace payments {
namespace {

using namespace std::chrono_literals;

/// Calls `left` on every way out of a handler.
class Presence {
 public:
    explicit Presence(const Hooks& hooks) : hooks_(hooks) {
        if (hooks_.entered) hooks_.entered();
    }
    ~Presence() {
        if (hooks_.left) hooks_.left();
    }
    Presence(const Presence&) = delete;
    Presence& operator=(const Presence&) = delete;

 private:
    const Hooks& hooks_;
};

/// Moves `cents` (negative: back to the customer) outside, then books it inside.
template <typename Job>
sekali::Outcome move_money(sekali::Context& ctx, const Gateway& gateway, const Job& job,
                           std::int64_t cents) {
    const std::string receipt = ctx.step(
        "gateway",
        [&](const sekali::Step& step) { return gateway.move(step.key(), job.account, cents); },
        [&](const sekali::Step& step) { return gateway.find(step.key()); });
    return ctx.commit([&](sekali::Transaction& tx) {
        tx.execute(
            "insert into payments(kind, order_id, account, cents, receipt) "
            "values ($1, $2, $3, $4, $5)",
            std::string(Job::kKind), job.order_id, job.account, cents, receipt);
        // Read, add, write back, on purpose: without the lock two jobs of one account would lose
        // one.
        std::int64_t balance = 0;
        for (auto [held] :
             tx.query<std::int64_t>("select balance from accounts where id = $1", job.account)) {
            balance = held;
        }
        tx.execute("update accounts set balance = $2 where id = $1", job.account, balance - cents);
    });
}

}  // namespace

void create_tables(sekali::Client& client) {
    client
        .transact([](sekali::Transaction& tx) {
            tx.execute(
                "create table if not exists payments(kind text not null, order_id text not "
                "null, account text not null, cents integer not null, receipt text not null)");
            tx.execute(
                "create table if not exists accounts(id text primary key, balance integer "
                "not null)");
        })
        .value();
}

void register_handlers(sekali::Worker& worker, const std::string& gateway_socket,
                       const Hooks& hooks) {
    const Gateway gateway(gateway_socket);
    const sekali::HandlerOptions options{
        .timeout = 30s,
        .effects = sekali::Effects::kSteps,
        .on_unknown = sekali::OnUnknown::kProbe,
        .retry = {.base = 100ms, .cap = 2s, .max_attempts = 50},
        // Whoever runs this kills workers on purpose; that is not the job's fault.
        .max_crashes = 100,
    };
    worker.handle<ChargePayment>(
        [gateway, hooks](sekali::Context& ctx, const ChargePayment& job) {
            const Presence presence(hooks);
            return move_money(ctx, gateway, job, job.cents);
        },
        options);
    worker.handle<RefundPayment>(
        [gateway, hooks](sekali::Context& ctx, const RefundPayment& job) {
            const Presence presence(hooks);
            return move_money(ctx, gateway, job, -job.cents);
        },
        options);
}

}  // namespace payments
