#pragma once

#include "backends/sqlite/connection.hpp"
#include "backends/sqlite/gate.hpp"
#include "backends/sqlite/options.hpp"
#include "backends/sqlite/store_time.hpp"

namespace sekali::sqlite {

/// Brings a database to the present schema and the present boot, once among many processes that
/// start together; takes the gate only where something has to be written. Throws `Failure`.
void set_up(Connection& connection, Gate& gate, const SqliteOptions& options, StoreTimer& timer);

/// The same for a connection that may only read: refuses what `set_up` would have to change.
void set_up_read_only(Connection& connection, StoreTimer& timer);

}  // namespace sekali::sqlite
