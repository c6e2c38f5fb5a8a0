#pragma once

#include "sekali/transaction.hpp"

struct sqlite3;

namespace sekali::sqlite {

/// The transaction that is open on a connection of the caller's own, for
/// `client.enqueue(within(db), job)`: the job exists once the caller has committed, and never if he
/// rolls back.
///
/// The connection must be open on the database of the client's store, which the client has created,
/// in a transaction begun by `begin immediate`, and come from the same SQLite library as sekali's:
/// two copies of it in one process break its file locks. Belongs to the connection's thread, and
/// must not outlive the transaction. Where no transaction is open, the enqueue is refused with
/// `kUsage`.
[[nodiscard]] Transaction within(::sqlite3* db);

}  // namespace sekali::sqlite
