// Payments and refunds, as a complete program. Where the jobs and the tables are is said by
// SEKALI_URL (or --url for the worker), e.g. sqlite:payments.db.
//
//     payments gateway SOCKET LEDGER             the outside world, in a terminal of its own
//     payments charge  ORDER ACCOUNT CENTS       enqueues a payment; twice is as harmless as once
//     payments refund  ORDER ACCOUNT CENTS
//     payments balance ACCOUNT
//     PAYMENTS_GATEWAY=SOCKET payments [FLAG…]   a worker, with every flag of `sekali work`
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "gateway.hpp"
#include "payments.hpp"
#include "sekali/worker_main.hpp"

namespace {

using Words = std::span<char*>;

sekali::Client open_store() {
    const char* url = std::getenv("SEKALI_URL");
    sekali::Client client = sekali::Client::open(url != nullptr ? url : "").value();
    payments::create_tables(client);
    return client;
}

std::int64_t read_cents(std::string_view text) {
    std::int64_t cents = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), cents);
    if (problem != std::errc{} || end != text.data() + text.size() || cents <= 0) {
        throw std::invalid_argument("CENTS must be a whole number above 0");
    }
    return cents;
}

/// The account and the job become durable together, or neither does.
template <typename Job>
int enqueue(Words words) {
    const Job job{words[0], words[1], read_cents(words[2])};
    sekali::Client client = open_store();
    std::string id;
    client
        .transact([&](sekali::Transaction& tx) {
            tx.execute("insert into accounts values ($1, 0) on conflict do nothing", job.account);
            id = client.enqueue(tx, job).value().id;
        })
        .value();
    std::printf("%s\n", id.c_str());
    return 0;
}

int print_balance(std::string_view account) {
    std::int64_t cents = 0;
    open_store()
        .transact([&](sekali::Transaction& tx) {
            for (auto [held] :
                 tx.query<std::int64_t>("select balance from accounts where id = $1", account)) {
                cents = held;
            }
        })
        .value();
    std::printf("%lld\n", static_cast<long long>(cents));
    return 0;
}

int run(int argc, char** argv) {
    const std::string_view verb = argc > 1 ? argv[1] : "";
    const Words words(argv + (argc > 1 ? 2 : 1), argv + argc);
    if (verb == "gateway" && words.size() == 2) {
        payments::serve_gateway({.socket = words[0], .ledger = words[1]});
    }
    if (verb == "charge" && words.size() == 3) return enqueue<payments::ChargePayment>(words);
    if (verb == "refund" && words.size() == 3) return enqueue<payments::RefundPayment>(words);
    if (verb == "balance" && words.size() == 1) return print_balance(words[0]);
    const char* socket = std::getenv("PAYMENTS_GATEWAY");
    if (socket == nullptr) {
        throw std::invalid_argument("PAYMENTS_GATEWAY must be the socket of `payments gateway`");
    }
    return sekali::worker_main(
        argc, argv, [&](sekali::Worker& worker) { payments::register_handlers(worker, socket); });
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "payments: %s\n", error.what());
        return 2;
    }
}
