#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "backends/sqlite/sqlite_store.hpp"
#include "base/ids.hpp"

namespace sekali::sqlite {

/// A folder of its own for one database, removed at the end.
class TempDatabase {
 public:
    TempDatabase()
        : folder_(std::filesystem::temp_directory_path() / ("sekali-" + base::new_uuid7())) {
        std::filesystem::create_directory(folder_);
    }
    TempDatabase(const TempDatabase&) = delete;
    TempDatabase& operator=(const TempDatabase&) = delete;
    ~TempDatabase() {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }

    [[nodiscard]] std::filesystem::path folder() const { return folder_; }
    [[nodiscard]] std::string path() const { return (folder_ / "jobs.db").string(); }
    [[nodiscard]] SqliteOptions options() const {
        SqliteOptions options;
        options.path = path();
        return options;
    }
    [[nodiscard]] std::unique_ptr<SqliteStore> open() const {
        return SqliteStore::open(options()).value();
    }

 private:
    std::filesystem::path folder_;
};

/// Runs `work` in a write transaction of the store; fails the test when it fails.
inline void write(SqliteStore& store, const std::function<void(engine::Tables&)>& work) {
    const auto result = store.write_sync(work, std::chrono::seconds{20});
    ASSERT_TRUE(result.ok()) << result.error().message;
}

inline void read(SqliteStore& store, const std::function<void(engine::Tables&)>& work) {
    const auto result = store.read(work);
    ASSERT_TRUE(result.ok()) << result.error().message;
}

}  // namespace sekali::sqlite
