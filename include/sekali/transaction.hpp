#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "sekali/sql.hpp"

namespace sekali {

namespace internal {
class TransactionAccess;
}

/// The rows of a query as tuples, read once from front to back by a range-based `for`.
///
/// Throws `Failure` (`kUsage`) where a column does not fit its type or a null meets a type that is
/// no `std::optional`. Must not outlive its transaction. Not thread-safe. Blocks on the store at
/// most.
template <typename... Columns>
class Rows {
 public:
    using value_type = std::tuple<Columns...>;

    explicit Rows(std::unique_ptr<internal::SqlCursor> cursor) : cursor_(std::move(cursor)) {}

    class iterator {
     public:
        using iterator_concept = std::input_iterator_tag;
        using difference_type = std::ptrdiff_t;
        using value_type = std::tuple<Columns...>;

        iterator() = default;
        explicit iterator(internal::SqlCursor* cursor) : cursor_(cursor) { ++*this; }
        [[nodiscard]] value_type operator*() const {
            return read(cursor_->row(), std::index_sequence_for<Columns...>{});
        }
        iterator& operator++() {
            if (!cursor_->next()) cursor_ = nullptr;
            return *this;
        }
        void operator++(int) { ++*this; }
        friend bool operator==(const iterator& it, std::default_sentinel_t) {
            return it.cursor_ == nullptr;
        }

     private:
        template <std::size_t... I>
        static value_type read(std::span<const SqlValue> row, std::index_sequence<I...>) {
            if (row.size() != sizeof...(Columns)) {
                internal::throw_sql_usage("a query gives " + std::to_string(row.size()) +
                                          " columns where " + std::to_string(sizeof...(Columns)) +
                                          " were asked for");
            }
            return value_type{internal::from_sql<Columns>(row[I], I + 1)...};
        }
        internal::SqlCursor* cursor_ = nullptr;
    };

    [[nodiscard]] iterator begin() { return iterator(cursor_.get()); }
    [[nodiscard]] std::default_sentinel_t end() const { return {}; }

 private:
    std::unique_ptr<internal::SqlCursor> cursor_;
};

/// One open transaction of the store: SQL and enqueues become durable together or not at all.
///
/// Inside `ctx.commit` it also carries the result and `succeeded`; the function that gets it may
/// run again after a rollback, so it should do nothing but SQL and enqueues. Placeholders are `$1`,
/// `$2`, … on every backend. Calls throw `Failure` when the store refuses. Not thread-safe; valid
/// only while the function that was given it runs. Blocks on the store at most.
class Transaction {
 public:
    /// For backends: a transaction over a session that somebody else owns.
    explicit Transaction(internal::SqlSession& session) : session_(&session) {}
    /// For backends: a transaction that owns its session, e.g. one joined by a raw handle.
    explicit Transaction(std::unique_ptr<internal::SqlSession> session)
        : owned_(std::move(session)), session_(owned_.get()) {}

    Transaction(Transaction&&) noexcept = default;
    Transaction& operator=(Transaction&&) noexcept = default;

    /// Runs one statement; returns how many rows it changed.
    ///
    /// Arguments are integers, floating point numbers, text, `Blob`, or `std::optional` of these;
    /// `nullptr` is null.
    template <typename... Arguments>
    std::int64_t execute(std::string_view sql, const Arguments&... arguments) {
        const std::array<SqlValue, sizeof...(Arguments)> values{internal::to_sql(arguments)...};
        return session_->execute(sql, values);
    }

    /// Runs a query; `for (auto [id, sum] : tx.query<std::string, std::int64_t>("select …", …))`.
    template <typename... Columns, typename... Arguments>
    [[nodiscard]] Rows<Columns...> query(std::string_view sql, const Arguments&... arguments) {
        const std::array<SqlValue, sizeof...(Arguments)> values{internal::to_sql(arguments)...};
        return Rows<Columns...>(session_->query(sql, values));
    }

 private:
    friend class internal::TransactionAccess;

    std::unique_ptr<internal::SqlSession> owned_;
    internal::SqlSession* session_;
};

}  // namespace sekali
