#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "backends/sqlite/options.hpp"
#include "bench/scratch.hpp"
#include "bench/target.hpp"

namespace sekali::bench {

/// A database in a file.
class SqliteSubject final : public Subject {
 public:
    /// Makes it. `scratch` must outlive this.
    SqliteSubject(Scratch& scratch, sqlite::Synchronous synchronous);
    SqliteSubject(const SqliteSubject&) = delete;
    SqliteSubject& operator=(const SqliteSubject&) = delete;
    ~SqliteSubject() override;

    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] std::string url() const override;
    [[nodiscard]] std::string effect_sql() const override;
    [[nodiscard]] std::unique_ptr<RawStore> raw(const Level& level) override;
    [[nodiscard]] std::function<bool()> running() override;

 private:
    Scratch& scratch_;
    const sqlite::Synchronous synchronous_;
    const std::string path_;
};

class SqliteTarget final : public Target {
 public:
    /// Makes a folder for the databases in `parent`, which is removed with this object.
    SqliteTarget(const std::filesystem::path& parent, sqlite::Synchronous synchronous)
        : scratch_(parent), synchronous_(synchronous) {}

    [[nodiscard]] Environment look_around() override;
    [[nodiscard]] std::unique_ptr<Subject> new_subject() override;
    [[nodiscard]] Scratch& scratch() { return scratch_; }

 private:
    Scratch scratch_;
    const sqlite::Synchronous synchronous_;
};

}  // namespace sekali::bench
