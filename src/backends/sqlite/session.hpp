#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "backends/sqlite/connection.hpp"
#include "backends/sqlite/user_sql.hpp"
#include "engine/tables.hpp"
#include "sekali/sql.hpp"

namespace sekali::sqlite {

/// Users' SQL in the transaction that is open on a connection. Everything given must outlive it.
class Session final : public internal::SqlSession {
 public:
    Session(Connection& connection, UserSql& user_sql, engine::Tables& tables)
        : connection_(connection), user_sql_(user_sql), tables_(tables) {}

    std::int64_t execute(std::string_view sql, std::span<const SqlValue> arguments) override;
    std::unique_ptr<internal::SqlCursor> query(std::string_view sql,
                                               std::span<const SqlValue> arguments) override;
    engine::Tables& tables() override { return tables_; }

 private:
    Connection& connection_;
    UserSql& user_sql_;
    engine::Tables& tables_;
};

}  // namespace sekali::sqlite
