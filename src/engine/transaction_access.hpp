#pragma once

#include "sekali/transaction.hpp"

namespace sekali::internal {

/// The way from the rooms below to what is behind a `Transaction`.
class TransactionAccess {
 public:
    [[nodiscard]] static SqlSession& session(Transaction& tx) { return *tx.session_; }
};

}  // namespace sekali::internal
