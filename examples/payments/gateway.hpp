#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// A payment gateway to practise with: a process of its own that keeps a ledger in a file and is the
// outside world of this example. It honours idempotency keys, and now and then it moves the money
// and never answers, as real ones do.
namespace payments {

struct GatewayOptions {
    std::string socket;  ///< Path of the Unix socket that it listens on.
    std::string ledger;  ///< File that gets one line for each call and one for each movement.
    int latency_ms = 20;
    int silent_every = 25;  ///< Each so-manieth movement is done and not answered; 0: none.
};

/// Serves until it is killed; to be called in a process of its own. `ready` is a descriptor that
/// gets one byte when the socket listens; -1: none.
[[noreturn]] void serve_gateway(const GatewayOptions& options, int ready = -1);

/// A caller of the gateway; each call makes its own connection. Thread-safe. Blocks up to the
/// time-out.
class Gateway {
 public:
    explicit Gateway(std::string socket) : socket_(std::move(socket)) {}

    /// Moves `cents` once for each `key`, however often it is called. Returns the receipt. Throws
    /// `std::runtime_error` when no answer came, which says nothing about what happened.
    [[nodiscard]] std::string move(std::string_view key, std::string_view account,
                                   std::int64_t cents) const;
    /// The receipt of an earlier movement, or nothing when there was none.
    [[nodiscard]] std::optional<std::string> find(std::string_view key) const;

 private:
    [[nodiscard]] std::string ask(const std::string& request) const;
    std::string socket_;
};

/// What the ledger says. A plain value.
struct LedgerSummary {
    std::uint64_t calls = 0;      ///< Requests to move money, repeated ones included.
    std::uint64_t movements = 0;  ///< Money that really moved.
    std::uint64_t doubled = 0;    ///< Keys that moved money more than once.
};
[[nodiscard]] LedgerSummary read_ledger(const std::string& path);

}  // namespace payments
