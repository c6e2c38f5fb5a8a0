#pragma once

#include <string_view>

#include "sekali/transaction.hpp"

struct pg_conn;

namespace sekali::postgres {

/// The transaction that is open on a connection of the caller's own (libpq's `PGconn*`), for
/// `client.enqueue(within(connection), job)`: the job exists once the caller has committed, and
/// never if he rolls back.
///
/// The connection must be open on the database of the client's store, not in pipeline mode, with a
/// transaction begun; `schema` is the store's. Workers are not told of the job but find it by
/// themselves, within a second at most. Belongs to the connection's thread, blocks on the server,
/// and must not outlive the transaction. Where no transaction is open, the enqueue is refused with
/// `kUsage`; where a job that it would replace changes meanwhile, with a retryable `kConflict`, and
/// the caller rolls back and begins again.
[[nodiscard]] Transaction within(::pg_conn* connection, std::string_view schema = "sekali");

}  // namespace sekali::postgres
