#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "backends/postgres/connection.hpp"
#include "backends/postgres/tables.hpp"
#include "sekali/sql.hpp"

namespace sekali::postgres {

/// A session whose connection may be handed to the user.
class ConnectionOwner {
 public:
    virtual ~ConnectionOwner() = default;
    [[nodiscard]] virtual PGconn* hand_over() = 0;
};

/// Users' SQL in the transaction that is open on a channel. Everything given must outlive it.
class Session final : public internal::SqlSession, public ConnectionOwner {
 public:
    Session(Channel& channel, PostgresTables& tables) : channel_(channel), tables_(tables) {}

    std::int64_t execute(std::string_view sql, std::span<const SqlValue> arguments) override;
    std::unique_ptr<internal::SqlCursor> query(std::string_view sql,
                                               std::span<const SqlValue> arguments) override;
    engine::Tables& tables() override { return tables_; }

    /// Leaves by `Apart` where others share the transaction, which the user might end.
    [[nodiscard]] PGconn* hand_over() override;
    [[nodiscard]] bool was_handed_over() const { return was_handed_over_; }
    /// Whether it left by `Apart`, whatever the user made of that.
    [[nodiscard]] bool is_to_be_apart() const { return is_to_be_apart_; }

    /// How another transaction was in the way, whatever the user made of the failure.
    [[nodiscard]] const std::optional<Error>& conflict() const { return conflict_; }

 private:
    ResultPtr run(std::string_view sql, std::span<const SqlValue> arguments);

    Channel& channel_;
    PostgresTables& tables_;
    std::optional<Error> conflict_;
    bool was_handed_over_ = false;
    bool is_to_be_apart_ = false;
};

}  // namespace sekali::postgres
