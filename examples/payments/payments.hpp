#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "sekali/key.hpp"
#include "sekali/worker.hpp"

// Payments and refunds: two kinds of jobs that share accounts, move money at a gateway that may not
// answer, and write their own rows in the commit that says `succeeded`.
namespace payments {

struct ChargePayment {
    std::string order_id;
    std::string account;
    std::int64_t cents = 0;
    static constexpr std::string_view kKind = "payment.charge";
    static constexpr auto kFields =
        sekali::fields(sekali::field("order_id", &ChargePayment::order_id),
                       sekali::field("account", &ChargePayment::account),
                       sekali::field("cents", &ChargePayment::cents));
    [[nodiscard]] sekali::EnqueueOptions options() const {
        return {.key = sekali::key("payment", order_id), .lock = sekali::key("account", account)};
    }
};

struct RefundPayment {
    std::string order_id;
    std::string account;
    std::int64_t cents = 0;
    static constexpr std::string_view kKind = "payment.refund";
    static constexpr auto kFields =
        sekali::fields(sekali::field("order_id", &RefundPayment::order_id),
                       sekali::field("account", &RefundPayment::account),
                       sekali::field("cents", &RefundPayment::cents));
    [[nodiscard]] sekali::EnqueueOptions options() const {
        return {.key = sekali::key("refund", order_id), .lock = sekali::key("account", account)};
    }
};

/// The tables of this example: what was booked, and what each account holds.
void create_tables(sekali::Client& client);

struct Hooks {
    std::function<void()> entered;  ///< The handler has begun.
    std::function<void()> left;     ///< It is over, however it ended.
};

void register_handlers(sekali::Worker& worker, const std::string& gateway_socket,
                       const Hooks& hooks = {});

}  // namespace payments
