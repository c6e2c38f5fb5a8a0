#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/sqlite/store_time.hpp"
#include "backends/sqlite/tables.hpp"
#include "sekali/result.hpp"

namespace sekali::sqlite {

/// A few read-only connections, opened when they are first needed. Thread-safe.
class ReaderPool {
 public:
    ReaderPool(std::string path, engine::Millis busy_deadline, const LivenessFile& liveness,
               const StoreTimer& timer)
        : path_(std::move(path)),
          busy_deadline_(busy_deadline),
          liveness_(liveness),
          timer_(timer) {}

    /// Runs `work` on one snapshot. Waits for a free connection, at most for the busy deadline.
    [[nodiscard]] Result<void> read(const std::function<void(engine::Tables&)>& work);

 private:
    struct Reader {
        Reader(const std::string& path, engine::Millis busy_deadline, const LivenessFile& liveness)
            : connection(path, Connection::Mode::kReadOnly, busy_deadline),
              tables(connection, &liveness, SqliteTables::UserAccess::kGuarded) {}
        Connection connection;
        SqliteTables tables;
    };
    [[nodiscard]] std::unique_ptr<Reader> take();
    void give_back(std::unique_ptr<Reader> reader);

    const std::string path_;
    const engine::Millis busy_deadline_;
    const LivenessFile& liveness_;
    const StoreTimer& timer_;
    std::mutex mutex_;
    std::condition_variable returned_;
    std::vector<std::unique_ptr<Reader>> idle_;
    std::size_t in_use_ = 0;
};

}  // namespace sekali::sqlite
