#pragma once

namespace sekali::sqlite {

/// Stops SQLite from counting the bytes of its allocations, which takes one lock of the process for
/// each of them and a fifth of the time of a short statement. For programs that are sekali's own:
/// with it go `sqlite3_memory_used` and SQLite's heap limits. To be called before anything uses
/// SQLite; later it does nothing.
void forgo_memory_statistics();

}  // namespace sekali::sqlite
