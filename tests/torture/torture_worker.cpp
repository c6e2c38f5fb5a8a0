// The library worker of the torture runs, and their client of the outside world for shell handlers:
//     torture_worker outside WORD…     says one line to the effect server, prints its answer
//     torture_worker [FLAG…]           a worker, with every flag of `sekali work`
// Every run tells the effect server when it begins and ends, on the clock that all processes of
// this host share; what it writes through ctx.commit goes to the tables `effects` and `accounts`.

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "sekali/worker_main.hpp"

namespace {

using namespace std::chrono_literals;
using sekali::Context;
using sekali::Outcome;

/// The exit status by which a probe says that it did not happen.
constexpr int kDidNotHappen = 4;

std::string now_ns() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::to_string(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

/// Closes its descriptor on every way out.
class Socket {
 public:
    Socket() : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
    ~Socket() { ::close(fd_); }
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;
    [[nodiscard]] int fd() const { return fd_; }

 private:
    int fd_;
};

/// The effect server, which nobody kills: an answer says that the line is in its ledger.
class Outside {
 public:
    explicit Outside(std::string path) : path_(std::move(path)) {}

    std::string tell(const std::vector<std::string>& words) const {
        std::string line;
        for (const std::string& word : words)
            line += word + '\t';
        line.back() = '\n';
        const Socket socket;
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        path_.copy(address.sun_path, sizeof address.sun_path - 1);
        if (::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
                0 ||
            ::send(socket.fd(), line.data(), line.size(), MSG_NOSIGNAL) !=
                static_cast<ssize_t>(line.size())) {
            throw std::runtime_error("the effect server is away");
        }
        std::string answer;
        char bytes[512];
        for (ssize_t got = 0; (got = ::read(socket.fd(), bytes, sizeof bytes)) > 0;)
            answer.append(bytes, static_cast<std::size_t>(got));
        if (answer.empty() || answer.back() != '\n') {
            throw std::runtime_error("the effect server has not answered");
        }
        answer.pop_back();
        return answer;
    }

 private:
    std::string path_;
};

const Outside& outside() {
    const char* path = std::getenv("TORTURE_OUTSIDE");
    static const Outside server(path != nullptr ? path : "");
    return server;
}

struct Order {
    std::string account;
    std::int64_t cents = 0;
    std::int64_t busy_ms = 0;  ///< How long the handler works.
    bool fails_first = false;  ///< The first attempt asks for another.

    static constexpr auto kFields = sekali::fields(
        sekali::field("account", &Order::account), sekali::field("cents", &Order::cents),
        sekali::field("busy_ms", &Order::busy_ms),
        sekali::field("fails_first", &Order::fails_first));
};
struct Pay : Order {
    static constexpr std::string_view kKind = "pay";
};
struct Book : Order {
    static constexpr std::string_view kKind = "book";
};
struct Doomed : Order {
    static constexpr std::string_view kKind = "doomed";
};
struct Receipt {
    std::string order;

    static constexpr std::string_view kKind = "receipt";
    static constexpr auto kFields = sekali::fields(sekali::field("order", &Receipt::order));
    [[nodiscard]] sekali::EnqueueOptions options() const { return {.key = "of:" + order}; }
};

/// Says that a run is there, and, unless it is left by an exception, that it is about to end.
class Presence {
 public:
    explicit Presence(Context& ctx) : ctx_(ctx) { note("begin", ctx_.job().lock_key, "0"); }
    void ends() const { note("end", ctx_.job().lock_key, "0"); }
    void has_lock(const sekali::RunLock& lock) const {
        note("lock", lock.name, std::to_string(lock.fence));
    }

 private:
    void note(const char* what, const std::string& lock, const std::string& fence) const {
        outside().tell({what, ctx_.job().kind, ctx_.job().key, ctx_.job().id,
                        std::to_string(ctx_.epoch()), lock, fence, now_ns()});
    }
    Context& ctx_;
};

void work(Context& ctx, std::chrono::milliseconds time) {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock guard(mutex);
    never.wait_for(guard, ctx.stop_token(), time, [] { return false; });
    if (ctx.stop_token().stop_requested()) throw std::runtime_error("asked to stop");
}

/// The effect of a run, and what else the lock of its account guards.
void write_effect(Context& ctx, sekali::Transaction& tx, const Order& order,
                  const sekali::RunLock& lock) {
    tx.execute(
        "insert into effects(kind, key, job, epoch, account, cents, lock_name, fence, at) "
        "values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        ctx.job().kind, ctx.job().key, ctx.job().id, static_cast<std::int64_t>(ctx.epoch()),
        order.account, order.cents, lock.name, static_cast<std::int64_t>(lock.fence),
        static_cast<std::int64_t>(std::stoll(now_ns())));
    // Read, add, write back, on purpose: two runs inside one lock would lose a payment.
    std::int64_t balance = 0;
    for (auto [held] :
         tx.query<std::int64_t>("select balance from accounts where id = $1", order.account)) {
        balance = held;
    }
    tx.execute("update accounts set balance = $2 where id = $1", order.account,
               balance + order.cents);
}

std::vector<std::string> call_of(const char* verb, const Context& ctx, const sekali::Step& step) {
    return {verb, step.key(), ctx.job().kind, ctx.job().key, std::to_string(ctx.epoch())};
}

/// Charges outside by a step, books inside, and asks for a receipt in the same transaction.
Outcome pay(sekali::Worker& worker, Context& ctx, const Pay& order) {
    const Presence presence(ctx);
    ctx.step(
        "charge",
        [&](const sekali::Step& step) { return outside().tell(call_of("charge", ctx, step)); },
        [&](const sekali::Step& step) -> std::optional<std::string> {
            const std::string answer = outside().tell(call_of("probe", ctx, step));
            if (answer == "no") return std::nullopt;
            return answer;
        });
    work(ctx, std::chrono::milliseconds(order.busy_ms));
    presence.ends();
    return ctx.commit([&](sekali::Transaction& tx) {
        write_effect(ctx, tx, order, {});
        worker.client().enqueue(tx, Receipt{ctx.job().key}).value();
    });
}

/// Effects in the commit alone, under a lock that the handler takes by itself besides the job's.
Outcome book(Context& ctx, const Book& order) {
    const Presence presence(ctx);
    if (order.fails_first && ctx.attempt() == 1) return sekali::retry("the first one fails", 20ms);
    const sekali::RunLock lock =
        ctx.lock("ledger:" + ctx.job().key.substr(ctx.job().key.size() - 1), 500ms);
    presence.has_lock(lock);
    work(ctx, std::chrono::milliseconds(order.busy_ms));
    presence.ends();
    return ctx.commit([&](sekali::Transaction& tx) { write_effect(ctx, tx, order, lock); });
}

Outcome receipt(Context& ctx, const Receipt&) {
    const Presence presence(ctx);
    presence.ends();
    return ctx.commit([&](sekali::Transaction& tx) { write_effect(ctx, tx, {}, {}); });
}

void register_handlers(sekali::Worker& worker) {
    const sekali::HandlerOptions by_steps{.effects = sekali::Effects::kSteps,
                                          .on_unknown = sekali::OnUnknown::kProbe};
    const sekali::HandlerOptions by_commit{.effects = sekali::Effects::kCommit};
    worker.handle<Pay>(
        [&worker](Context& ctx, const Pay& order) { return pay(worker, ctx, order); }, by_steps);
    worker.handle<Book>(book, by_commit);
    worker.handle<Receipt>(receipt, by_commit);
    worker.handle<Doomed>(
        [](Context&, const Doomed&) -> Outcome { return sekali::fail("it cannot be"); }, by_commit);
}

int tell_outside(int argc, char** argv) {
    const std::string answer = outside().tell({argv, argv + argc});
    if (answer == "no") return kDidNotHappen;
    std::puts(answer.c_str());
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc > 2 && std::string_view(argv[1]) == "outside") return tell_outside(argc - 2, argv + 2);
    return sekali::worker_main(argc, argv, register_handlers);
}
