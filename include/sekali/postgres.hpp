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

/// The connection (libpq's `PGconn*`) on which a transaction of sekali's is open, for those who
/// bring a layer of their own: inside `ctx.commit` and `client.transact` it is sekali's, in
/// `within` the caller's.
///
/// What is done on it becomes durable with the rest, or not at all. It belongs to the function that
/// was given the transaction and ends with it; it is not in pipeline mode, blocks, and speaks UTF8.
/// Not allowed: to commit, roll back or begin (savepoints are fine), to leave a query or COPY
/// unfinished or pipeline mode on, to close it, to change what is set for the session (`SET LOCAL`
/// is fine). Where the transaction was ended or something left unfinished, the commit fails with
/// `kRefused` and the run is open still; what a forbidden COMMIT has made durable stays so. The
/// handler's effects share no transaction with others' then. Throws `Failure` (`kUsage`) where the
/// store is not PostgreSQL.
[[nodiscard]] ::pg_conn* connection_of(Transaction& transaction);

}  // namespace sekali::postgres
