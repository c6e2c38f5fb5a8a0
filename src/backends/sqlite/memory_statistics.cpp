#include "backends/sqlite/memory_statistics.hpp"

#include <sqlite3.h>

namespace sekali::sqlite {

void forgo_memory_statistics() {
    static_cast<void>(sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0));
}

}  // namespace sekali::sqlite
