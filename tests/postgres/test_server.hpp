#pragma once

#include <fstream>
#include <stdexcept>
#include <string>

#include <unistd.h>

#include <atomic>

#include "backends/postgres/connection.hpp"

namespace sekali::postgres {

/// The URL of the server that ctest's fixture has started (tests/postgres/server.py).
[[nodiscard]] inline std::string test_server_url() {
    std::ifstream file(SEKALI_POSTGRES_SERVER "/url");
    std::string url;
    if (!std::getline(file, url)) {
        throw std::runtime_error(
            "no PostgreSQL server of the tests runs; ctest starts it, by hand it is "
            "tests/postgres/server.py start " SEKALI_POSTGRES_SERVER);
    }
    return url;
}

/// A schema of one test, dropped with it.
class TestSchema {
 public:
    TestSchema() {
        static std::atomic<int> count{0};
        name_ = "t" + std::to_string(::getpid()) + "_" + std::to_string(++count);
    }
    TestSchema(const TestSchema&) = delete;
    TestSchema& operator=(const TestSchema&) = delete;
    ~TestSchema() {
        try {
            execute("DROP SCHEMA IF EXISTS \"" + name_ + "\" CASCADE");
        } catch (const Failure&) {
            // The server is gone, and the schema with it.
        }
    }

    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] std::string url() const { return test_server_url() + "&schema=" + name_; }
    [[nodiscard]] PostgresOptions options() const {
        PostgresOptions options = parse_url(url());
        options.migrate = true;
        return options;
    }
    /// Runs a statement on a connection of its own.
    void execute(const std::string& sql) const {
        Connection::open(parse_url(url()))->run_script(sql, "run a statement of a test");
    }

 private:
    std::string name_;
};

}  // namespace sekali::postgres
