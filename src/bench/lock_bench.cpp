#include "bench/lock_bench.hpp"

#include <fmt/format.h>
#include <hiredis/hiredis.h>

#include <atomic>
#include <chrono>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "backends/redis/address.hpp"
#include "backends/redis/lock_lines.hpp"
#include "backends/redis/lock_scripts.hpp"
#include "backends/redis/open.hpp"
#include "base/errors.hpp"
#include "base/ids.hpp"
#include "base/json_writer.hpp"
#include "bench/clock.hpp"
#include "bench/figures.hpp"
#include "sekali/lock.hpp"

namespace sekali::bench {
namespace {

using engine::LockReply;
using engine::Millis;
using std::chrono::steady_clock;

constexpr std::size_t kInFlight = 64;
constexpr std::size_t kCycles = 100'000;
constexpr std::size_t kHandoffs = 5'000;
constexpr std::size_t kWaiters = 10;
constexpr std::size_t kHeld = 100'000;
constexpr std::size_t kWaiting = 10'000;
constexpr Millis kLife{30'000};

double seconds_since(steady_clock::time_point begin) {
    return std::chrono::duration<double>(steady_clock::now() - begin).count();
}

/// The bare loop: requests of `kInFlight` locks, their replies, their releases, their replies.
class BareLoop {
 public:
    explicit BareLoop(const redis::Address& address)
        : context_(address.unix_path.empty() ? redisConnect(address.hosts.front().host.c_str(),
                                                            address.hosts.front().port)
                                             : redisConnectUnix(address.unix_path.c_str())) {
        if (!context_ || context_->err != 0) {
            throw Failure({.code = ErrorCode::kUnreachable, .message = "redis is out of reach"});
        }
    }

    double cycles_per_s(LockProfile profile, const std::string& prefix) {
        const redis::LockScripts& scripts = redis::lock_scripts(profile);
        load(scripts.acquire);
        load(scripts.release);
        const auto begin = steady_clock::now();
        for (std::size_t done = 0; done < kCycles; done += kInFlight) {
            for (std::size_t i = 0; i < kInFlight; ++i) {
                const auto names = redis::lock_names(profile, prefix + std::to_string(done + i));
                append({"EVALSHA", scripts.acquire.sha(), "2", names.key, names.fence, "owner:1",
                        "30000", "8640000000"});
            }
            read(kInFlight);
            for (std::size_t i = 0; i < kInFlight; ++i) {
                const auto names = redis::lock_names(profile, prefix + std::to_string(done + i));
                append({"EVALSHA", scripts.release.sha(), "1", names.key, "owner:1", names.channel,
                        "PUBLISH"});
            }
            read(kInFlight);
        }
        return static_cast<double>(kCycles) / seconds_since(begin);
    }

    std::string version() {
        append({"INFO", "server"});
        const std::unique_ptr<redisReply, Free> reply(next());
        const std::string text(reply->str, reply->len);
        const std::size_t at = text.find("redis_version:") + 14;
        return text.substr(at, text.find('\r', at) - at);
    }

    void take_away(const std::string& pattern) {
        append({"EVAL",
                "local cursor = '0' repeat "
                "local page = redis.call('scan', cursor, 'match', ARGV[1], 'count', 10000) "
                "cursor = page[1] "
                "for _, key in ipairs(page[2]) do redis.call('unlink', key) end "
                "until cursor == '0'",
                "0", pattern});
        read(1);
    }

 private:
    struct Free {
        void operator()(redisReply* reply) const { freeReplyObject(reply); }
        void operator()(redisContext* context) const { redisFree(context); }
    };

    void load(const redis::Script& script) {
        append({"SCRIPT", "LOAD", script.text()});
        read(1);
    }
    void append(const std::vector<std::string>& words) {
        std::vector<const char*> texts;
        std::vector<std::size_t> sizes;
        for (const std::string& word : words) {
            texts.push_back(word.data());
            sizes.push_back(word.size());
        }
        redisAppendCommandArgv(context_.get(), static_cast<int>(texts.size()), texts.data(),
                               sizes.data());
    }
    redisReply* next() {
        void* reply = nullptr;
        if (redisGetReply(context_.get(), &reply) != REDIS_OK) {
            throw Failure({.code = ErrorCode::kUnreachable, .message = context_->errstr});
        }
        return static_cast<redisReply*>(reply);
    }
    void read(std::size_t count) {
        for (std::size_t i = 0; i < count; ++i)
            freeReplyObject(next());
    }

    std::unique_ptr<redisContext, Free> context_;
};

/// The lock port with so many cycles in flight: each answer sends what comes next.
class PortLoop {
 public:
    PortLoop(redis::LockPort& port, std::string ns) : port_(port), ns_(std::move(ns)) {}

    double cycles_per_s() {
        const auto begin = steady_clock::now();
        for (std::size_t i = 0; i < kInFlight; ++i)
            acquire(next_++);
        finished_.get_future().wait();
        return static_cast<double>(kCycles) / seconds_since(begin);
    }

 private:
    void acquire(std::size_t number) {
        const engine::LockAcquire wanted{.ns = ns_,
                                         .name = std::to_string(number),
                                         .owner = {},
                                         .token = "owner:1",
                                         .ttl = kLife};
        send(wanted, [this, number](const Result<LockReply>&) { release(number); });
    }
    void release(std::size_t number) {
        send(engine::LockRelease{.ns = ns_, .name = std::to_string(number), .token = "owner:1"},
             [this](const Result<LockReply>&) {
                 if (next_ < kCycles) return acquire(next_++);
                 if (++ended_ == kInFlight) finished_.set_value();
             });
    }
    void send(engine::LockCommand command, std::function<void(Result<LockReply>)> done) {
        std::vector<engine::LockPort::Call> calls;
        calls.push_back({std::move(command), std::move(done)});
        port_.submit(std::move(calls));
    }

    redis::LockPort& port_;
    const std::string ns_;
    std::size_t next_ = 0;  // behind the first requests only the client's thread comes here
    std::size_t ended_ = 0;
    std::promise<void> finished_;
};

double threads_per_s(const std::string& url, const LockClientOptions& options) {
    LockClient locks = LockClient::open(url, options).value();
    std::atomic<std::size_t> next = 0;
    const auto begin = steady_clock::now();
    {
        std::vector<std::jthread> threads;
        for (std::size_t thread = 0; thread < kInFlight; ++thread) {
            threads.emplace_back([&] {
                for (std::size_t i = next++; i < kCycles / 4; i = next++)
                    locks.try_lock(std::to_string(i)).value().release().value();
            });
        }
    }
    return static_cast<double>(kCycles / 4) / seconds_since(begin);
}

void measure_cycles(const std::string& url, BareLoop& bare, LockProfile profile, LockCycles& out) {
    const std::string ns = "bench-" + base::random_hex(4);
    out.profile = profile == LockProfile::kRedisson ? "redisson" : "string";
    out.ceiling_per_s = bare.cycles_per_s(profile, "sekali:" + ns + ":lock:");
    {
        const redis::OpenServer opened = redis::open_server(url).value();
        redis::LockPort port(opened.server, {.profile = profile});
        const double cpu = cpu_seconds();
        out.sekali_per_s = PortLoop(port, ns).cycles_per_s();
        out.sekali_cpu_us = (cpu_seconds() - cpu) * 1e6 / static_cast<double>(kCycles);
    }
    LockClientOptions options;
    options.ns = ns;
    options.profile = profile;
    out.threads_per_s = threads_per_s(url, options);
}

/// Two clients that share nothing, half of the waiters each, on one lock.
void measure_handoff(const std::string& url, LockBenchResult& result) {
    const LockClientOptions options{.ns = "bench-" + base::random_hex(4)};
    LockClient clients[] = {LockClient::open(url, options).value(),
                            LockClient::open(url, options).value()};
    std::vector<double> times;  // guarded by the lock that is measured
    std::optional<steady_clock::time_point> freed;
    std::latch ready(kWaiters);
    {
        std::vector<std::jthread> threads;
        for (std::size_t thread = 0; thread < kWaiters; ++thread) {
            threads.emplace_back([&, thread] {
                ready.arrive_and_wait();
                while (true) {
                    LockHandle held = clients[thread % 2].lock("one").value();
                    if (freed) times.push_back(seconds_since(*freed) * 1e6);
                    if (times.size() >= kHandoffs) return;
                    freed = steady_clock::now();
                    held.release().value();
                }
            });
        }
    }
    result.handoff_waiters = kWaiters;
    result.handoff_p50_us = percentile(times, 0.5);
    result.handoff_p99_us = percentile(times, 0.99);
}

double all_answered_ms(redis::LockPort& port, std::vector<engine::LockCommand> commands) {
    std::latch answered(static_cast<std::ptrdiff_t>(commands.size()));
    std::vector<engine::LockPort::Call> calls;
    calls.reserve(commands.size());
    for (engine::LockCommand& command : commands) {
        calls.push_back(
            {std::move(command), [&](const Result<LockReply>&) { answered.count_down(); }});
    }
    const auto begin = steady_clock::now();
    port.submit(std::move(calls));
    answered.wait();
    return seconds_since(begin) * 1e3;
}

void measure_held(const std::string& url, LockBenchResult& result) {
    const std::string ns = "bench-" + base::random_hex(4);
    const redis::OpenServer opened = redis::open_server(url + "?timeout=30s").value();
    redis::LockPort port(opened.server, {});
    std::vector<engine::LockCommand> acquire;
    std::vector<engine::LockCommand> renew;
    for (std::size_t i = 0; i < kHeld; ++i) {
        const std::string name = std::to_string(i);
        acquire.emplace_back(engine::LockAcquire{ns, name, {}, "owner:1", 4 * kLife});
        renew.emplace_back(engine::LockRenew{ns, name, "owner:1", 4 * kLife});
    }
    all_answered_ms(port, std::move(acquire));
    result.held = kHeld;
    result.renewal_pass_ms = all_answered_ms(port, std::move(renew));
}

void measure_waiting(const std::string& url, LockBenchResult& result) {
    const std::string ns = "bench-" + base::random_hex(4);
    LockClient other = LockClient::open(url, ns).value();
    LockHandle held = other.try_lock("one").value();
    const redis::OpenServer opened = redis::open_server(url).value();
    const auto port = std::make_shared<redis::LockPort>(opened.server, redis::LockSettings{});
    redis::LockLines lines(port);
    std::latch ended(static_cast<std::ptrdiff_t>(kWaiting));
    for (std::size_t i = 0; i < kWaiting; ++i) {
        redis::LockWish wish;
        wish.request = {ns, "one", {}, "owner:" + std::to_string(i), kLife};
        wish.done = [&, i](const Result<redis::LockWish::Grant>& grant) {
            if (grant.ok()) {
                std::vector<engine::LockPort::Call> calls;
                calls.push_back({engine::LockRelease{ns, "one", "owner:" + std::to_string(i)},
                                 [](const Result<LockReply>&) {}});
                port->submit(std::move(calls));
            }
            ended.count_down();
        };
        lines.wait(std::move(wish));
    }
    const auto begin = steady_clock::now();
    held.release().value();
    ended.wait();
    result.waiting = kWaiting;
    result.waiting_end_ms = seconds_since(begin) * 1e3;
}

}  // namespace

LockBenchResult run_lock_bench(const std::string& url,
                               const std::function<void(std::string_view)>& progress) {
    const auto next = [&](std::string_view what) {
        if (progress) progress(what);
    };
    const redis::Address address = redis::parse_address(url).value();
    if (address.tls || address.topology != redis::Topology::kSingle || !address.password.empty()) {
        throw Failure(base::usage_error("the bench wants one server without TLS and password"));
    }
    BareLoop bare(address);
    LockBenchResult result;
    result.server = bare.version();
    result.in_flight = kInFlight;
    next("locks nobody else wants");
    measure_cycles(url, bare, LockProfile::kRedisson, result.cycles[0]);
    measure_cycles(url, bare, LockProfile::kString, result.cycles[1]);
    next("a lock that is handed on");
    measure_handoff(url, result);
    next("many locks that are held");
    measure_held(url, result);
    next("many that wait for one lock");
    measure_waiting(url, result);
    bare.take_away("*sekali:bench-*");
    return result;
}

std::string to_json(const LockBenchResult& result) {
    std::string document;
    base::JsonWriter json(document);
    const auto number = [&json](std::string_view name, double value, int digits = 0) {
        json.field(name).raw(fmt::format("{:.{}f}", value, digits));
    };
    json.begin_object().field("redis", result.server).field("in_flight", result.in_flight);
    json.field("cycles").begin_array();
    for (const LockCycles& each : result.cycles) {
        json.begin_object().field("profile", each.profile);
        number("ceiling_per_s", each.ceiling_per_s);
        number("sekali_per_s", each.sekali_per_s);
        number("ratio", each.ratio(), 3);
        number("sekali_cpu_us", each.sekali_cpu_us, 2);
        number("threads_per_s", each.threads_per_s);
        json.end_object();
    }
    json.end_array().field("handoff").begin_object().field("waiters", result.handoff_waiters);
    number("p50_us", result.handoff_p50_us);
    number("p99_us", result.handoff_p99_us);
    json.end_object().field("renewal").begin_object().field("held", result.held);
    number("pass_ms", result.renewal_pass_ms, 1);
    json.end_object().field("waiting").begin_object().field("wishes", result.waiting);
    number("end_ms", result.waiting_end_ms, 1);
    json.end_object().end_object();
    return document;
}

std::string to_text(const LockBenchResult& result) {
    std::string text = fmt::format("redis {}, {} in flight\n", result.server, result.in_flight);
    for (const LockCycles& each : result.cycles) {
        text += fmt::format(
            "{:9} {:9.0f} cycles/s of {:9.0f} bare ({:.2f}), {:.1f} us cpu; {} threads {:9.0f}/s\n",
            each.profile, each.sekali_per_s, each.ceiling_per_s, each.ratio(), each.sekali_cpu_us,
            result.in_flight, each.threads_per_s);
    }
    text += fmt::format("handoff among {}: p50 {:.0f} us, p99 {:.0f} us\n", result.handoff_waiters,
                        result.handoff_p50_us, result.handoff_p99_us);
    text += fmt::format("{} held: renewed in {:.0f} ms\n", result.held, result.renewal_pass_ms);
    text += fmt::format("{} wait for one: all had it after {:.0f} ms\n", result.waiting,
                        result.waiting_end_ms);
    return text;
}

}  // namespace sekali::bench
