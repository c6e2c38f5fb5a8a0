// A worker for payments and refunds. Takes every flag of `sekali work`.
//
//     payments gateway  SOCKET LEDGER            the outside world, in a terminal of its own
//     payments enqueue  ORDER ACCOUNT CENTS      a payment, twice as harmless as once
//     PAYMENTS_GATEWAY=SOCKET payments --drain   a worker
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "gateway.hpp"
#include "payments.hpp"
#include "sekali/worker_main.hpp"

namespace {

int enqueue(char** words) {
    const char* url = std::getenv("SEKALI_URL");
    sekali::Client client = sekali::Client::open(url != nullptr ? url : "").value();
    payments::create_tables(client);
    client
        .transact([&](sekali::Transaction& tx) {
            tx.execute("insert into accounts values ($1, 0) on conflict do nothing",
                       std::string(words[1]));
        })
        .value();
    const auto done = client.enqueue(
        payments::ChargePayment{words[0], words[1], std::strtoll(words[2], nullptr, 10)});
    if (!done.ok()) {
        std::fprintf(stderr, "payments: %s\n", done.error().message.c_str());
        return 1;
    }
    std::printf("%s\n", done->id.c_str());
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view verb = argc > 1 ? argv[1] : "";
    if (verb == "gateway" && argc == 4) {
        payments::serve_gateway({.socket = argv[2], .ledger = argv[3]});
    }
    if (verb == "enqueue" && argc == 5) return enqueue(argv + 2);
    const char* socket = std::getenv("PAYMENTS_GATEWAY");
    if (socket == nullptr) {
        std::fputs("payments: set PAYMENTS_GATEWAY to the socket of `payments gateway`\n", stderr);
        return 2;
    }
    return sekali::worker_main(
        argc, argv, [&](sekali::Worker& worker) { payments::register_handlers(worker, socket); });
}
