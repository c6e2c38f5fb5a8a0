#pragma once

#include <memory>
#include <string>

#include "backends/postgres/options.hpp"
#include "bench/target.hpp"

namespace sekali::bench {

/// A schema in a database.
class PostgresSubject final : public Subject {
 public:
    /// Makes it.
    explicit PostgresSubject(postgres::PostgresOptions options);
    PostgresSubject(const PostgresSubject&) = delete;
    PostgresSubject& operator=(const PostgresSubject&) = delete;
    ~PostgresSubject() override;

    [[nodiscard]] std::string url() const override;
    [[nodiscard]] std::string effect_sql() const override;
    [[nodiscard]] std::unique_ptr<RawStore> raw(const Level& level) override;
    [[nodiscard]] std::function<bool()> running() override;

 private:
    const postgres::PostgresOptions options_;
};

/// A database that is there already, in which schemas are made and dropped.
class PostgresTarget final : public Target {
 public:
    explicit PostgresTarget(const std::string& url) : options_(postgres::parse_url(url)) {}

    [[nodiscard]] Environment look_around() override;
    [[nodiscard]] std::unique_ptr<Subject> new_subject() override;

 private:
    const postgres::PostgresOptions options_;
};

}  // namespace sekali::bench
