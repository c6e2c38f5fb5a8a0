#include "cli/demo_stage.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <map>
#include <new>
#include <span>
#include <vector>

#include "base/clock.hpp"
#include "client/worker_process.hpp"
#include "gateway.hpp"
#include "payments.hpp"
#include "sekali/client.hpp"

namespace sekali::cli {
namespace {

using namespace std::chrono_literals;

constexpr int kMostWorkers = 64;
constexpr auto kLongest = 4min;
constexpr std::int64_t kOpeningBalance = 1'000'000;

/// What the worker processes tell the stage, in memory that all of them share: it outlives a kill.
struct Board {
    std::array<std::atomic<int>, kMostWorkers> inside{};  ///< Begun handlers of each worker.
    std::atomic<std::uint64_t> finished{0};
};

[[noreturn]] void throw_errno(const std::string& what) {
    throw Failure(Error{.code = ErrorCode::kRefused, .message = what + " failed"});
}

struct Order {
    bool refund = false;
    std::string id;
    std::string account;
    std::int64_t cents = 0;
};

/// The same orders in every process, from their number alone.
Order order_number(const DemoPlan& plan, std::uint64_t number) {
    Order order;
    order.refund = number % 6 == 5;
    order.id = "o-" + std::to_string(number);
    order.account = "a-" + std::to_string(number % plan.accounts);
    order.cents = static_cast<std::int64_t>(100 + number * 7 % 900);
    return order;
}

/// Three of ten orders are enqueued twice.
bool is_repeated(std::uint64_t number) {
    return number % 10 < 3;
}

class Stage {
 public:
    Stage(const DemoPlan& plan, const DemoProgress& progress)
        : plan_(plan),
          progress_(progress),
          url_("sqlite:" + plan.folder + "/demo.db"),
          workers_(static_cast<std::size_t>(plan.workers), -1) {
        void* shared = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (shared == MAP_FAILED) throw_errno("mmap");
        board_ = ::new (shared) Board;
    }
    ~Stage() {
        for (pid_t& worker : workers_)
            end(worker);
        end(gateway_);
        ::munmap(board_, sizeof(Board));
    }
    Stage(const Stage&) = delete;
    Stage& operator=(const Stage&) = delete;

    DemoReport play() {
        const auto started = base::steady_now();
        start_gateway();
        report_.enqueued = run_producer();
        for (std::size_t i = 0; i < workers_.size(); ++i)
            start_worker(i);
        direct();
        prove();
        report_.seconds = std::chrono::duration<double>(base::steady_now() - started).count();
        return report_;
    }

 private:
    /// A process of the cast; `play` is its whole life.
    pid_t cast(const std::function<int()>& play) {
        const pid_t parent = ::getpid();
        const pid_t pid = ::fork();
        if (pid < 0) throw_errno("fork");
        if (pid > 0) return pid;
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) ::_exit(1);
        int status = 1;
        try {
            status = play();
        } catch (const std::exception& error) {
            ::dprintf(2, "sekali demo: %s\n", error.what());
        }
        ::_exit(status);
    }

    static void end(pid_t& process) {
        if (process <= 0) return;
        ::kill(process, SIGKILL);
        ::waitpid(process, nullptr, 0);
        process = -1;
    }

    void start_gateway() {
        std::array<int, 2> ready{};
        if (::pipe2(ready.data(), O_CLOEXEC) != 0) throw_errno("pipe");
        gateway_ = cast([&]() -> int {
            payments::serve_gateway({.socket = plan_.folder + "/gateway.sock",
                                     .ledger = plan_.folder + "/gateway.ledger"},
                                    ready[1]);
        });
        ::close(ready[1]);
        char byte = 0;
        const ssize_t got = ::read(ready[0], &byte, 1);
        ::close(ready[0]);
        if (got != 1) throw_errno("the gateway");
    }

    /// Enqueues every order, three of ten twice; returns how many jobs that made.
    std::uint64_t run_producer() {
        const pid_t producer = cast([this] {
            Client client = Client::open(url_).value();
            payments::create_tables(client);
            open_accounts(client);
            std::vector<payments::ChargePayment> charges;
            std::vector<payments::RefundPayment> refunds;
            for (const bool again : {false, true}) {
                for (std::uint64_t n = 0; n < plan_.orders; ++n) {
                    if (again && !is_repeated(n)) continue;
                    const Order order = order_number(plan_, n);
                    if (order.refund) {
                        refunds.push_back({order.id, order.account, order.cents});
                    } else {
                        charges.push_back({order.id, order.account, order.cents});
                    }
                }
            }
            for (auto& done :
                 client.enqueue_many(std::span<const payments::ChargePayment>(charges)))
                (void)done.value();
            for (auto& done :
                 client.enqueue_many(std::span<const payments::RefundPayment>(refunds)))
                (void)done.value();
            return 0;
        });
        int status = 0;
        ::waitpid(producer, &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw_errno("the producer");
        std::uint64_t jobs = plan_.orders;
        for (std::uint64_t n = 0; n < plan_.orders; ++n)
            jobs += is_repeated(n) ? 1 : 0;
        return jobs;
    }

    void open_accounts(Client& client) const {
        client
            .transact([&](Transaction& tx) {
                for (std::uint64_t n = 0; n < plan_.accounts; ++n) {
                    tx.execute("insert into accounts values ($1, $2) on conflict do nothing",
                               "a-" + std::to_string(n), kOpeningBalance);
                }
            })
            .value();
    }

    void start_worker(std::size_t slot) {
        board_->inside[slot] = 0;
        workers_[slot] = cast([this, slot] { return work(slot); });
    }

    int work(std::size_t slot) {
        const std::string log = plan_.folder + "/workers.log";
        const int fd = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        client::WorkerProcessPlan plan;
        plan.url = url_;
        plan.options.concurrency = static_cast<std::size_t>(plan_.concurrency);
        plan.options.drain = true;
        plan.log.fd = fd >= 0 ? fd : 2;
        const payments::Hooks hooks{
            .entered = [this, slot] { ++board_->inside[slot]; },
            .left =
                [this, slot] {
                    --board_->inside[slot];
                    ++board_->finished;
                },
        };
        plan.register_handlers = [&](Worker& worker) {
            payments::register_handlers(worker, plan_.folder + "/gateway.sock", hooks);
        };
        return client::run_worker_processes(plan);
    }

    /// Lets the workers work, kills one at every so-manieth finished handler, replaces what died.
    void direct() {
        const std::uint64_t all = plan_.orders;
        const auto deadline = base::steady_now() + kLongest;
        while (!all_drained()) {
            if (base::steady_now() > deadline) {
                throw Failure(Error{.code = ErrorCode::kInternal,
                                    .message = "the demo did not end in time",
                                    .hint = "its store and logs are in " + plan_.folder});
            }
            const std::uint64_t done = board_->finished;
            const bool due = done >= (report_.kills + 1) * all / (plan_.kills + 3);
            if (due && report_.kills < plan_.kills) kill_one();
            progress_(done, all, report_.kills);
            // Nothing tells when a handler begins in another process, so the stage looks.
            ::poll(nullptr, 0, 2);
            replace_dead();
        }
    }

    void kill_one() {
        for (std::size_t tries = 0; tries < workers_.size(); ++tries) {
            next_victim_ = (next_victim_ + 1) % workers_.size();
            pid_t& worker = workers_[next_victim_];
            if (worker <= 0 || board_->inside[next_victim_] <= 0) continue;
            end(worker);
            // Its handlers stand still now: whoever was inside when the signal came still is.
            if (board_->inside[next_victim_] > 0) ++report_.kills;
            start_worker(next_victim_);
            return;
        }
    }

    void replace_dead() {
        for (std::size_t i = 0; i < workers_.size(); ++i) {
            int status = 0;
            if (workers_[i] <= 0 || ::waitpid(workers_[i], &status, WNOHANG) != workers_[i]) {
                continue;
            }
            workers_[i] = -1;
            if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) start_worker(i);
        }
    }

    [[nodiscard]] bool all_drained() const {
        return std::all_of(workers_.begin(), workers_.end(), [](pid_t pid) { return pid <= 0; });
    }

    /// Compares the rows of the commits with the ledger of the gateway, order by order.
    void prove() {
        const payments::LedgerSummary ledger =
            payments::read_ledger(plan_.folder + "/gateway.ledger");
        report_.orders = plan_.orders;
        report_.gateway_calls = ledger.calls;
        report_.gateway_charges = ledger.movements;
        report_.double_effects = ledger.doubled;
        Client client = Client::open(url_).value();
        std::map<std::string, std::uint64_t> booked;
        std::map<std::string, std::int64_t> balances;
        client
            .transact([&](Transaction& tx) {
                booked.clear();
                balances.clear();
                for (auto [order] : tx.query<std::string>("select order_id from payments"))
                    ++booked[order];
                for (auto [id, balance] :
                     tx.query<std::string, std::int64_t>("select id, balance from accounts")) {
                    balances[id] = balance;
                }
            })
            .value();
        std::map<std::string, std::int64_t> expected;
        for (std::uint64_t n = 0; n < plan_.accounts; ++n)
            expected["a-" + std::to_string(n)] = kOpeningBalance;
        for (std::uint64_t n = 0; n < plan_.orders; ++n) {
            const Order order = order_number(plan_, n);
            expected[order.account] += order.refund ? order.cents : -order.cents;
            const std::uint64_t times = booked[order.id];
            report_.effects += times;
            if (times == 0) ++report_.lost;
            if (times > 1) ++report_.double_effects;
        }
        for (const auto& [account, balance] : expected) {
            if (balances[account] != balance) ++report_.balance_errors;
        }
        if (ledger.movements < plan_.orders) report_.lost += plan_.orders - ledger.movements;
    }

    const DemoPlan& plan_;
    const DemoProgress& progress_;
    std::string url_;
    Board* board_ = nullptr;
    pid_t gateway_ = -1;
    std::vector<pid_t> workers_;
    std::size_t next_victim_ = 0;
    DemoReport report_;
};

}  // namespace

DemoReport play_demo(const DemoPlan& plan, const DemoProgress& progress) {
    return Stage(plan, progress).play();
}

}  // namespace sekali::cli
