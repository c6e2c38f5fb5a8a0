#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "backends/sqlite/connection.hpp"

namespace sekali::bench {

/// Fills a database with jobs that wait and with records of successes, half of the jobs in a queue
/// that nobody serves, half until next year.
class Preload {
 public:
    /// The keys are random or ascending.
    Preload(const std::string& path, bool random_keys);

    /// Adds jobs and records until there are so many of each.
    void grow_to(std::size_t rows);
    /// Removes what jobs that ran since have left behind.
    void forget_others();

 private:
    void add(std::int64_t begin, std::int64_t end);

    sqlite::Connection connection_;
    sqlite::StatementPtr insert_jobs_;
    sqlite::StatementPtr insert_records_;
    std::int64_t rows_ = 0;
};

/// A key that is none of the preload's, in the same order.
[[nodiscard]] std::string fresh_key(bool random_keys, std::uint64_t number);

}  // namespace sekali::bench
