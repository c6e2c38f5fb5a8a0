#pragma once

#include "backends/sqlite/options.hpp"
#include "backends/sqlite/query.hpp"
#include "engine/model.hpp"

namespace sekali::sqlite {

/// The store's clock: the host's boot clock plus an offset that the first process of a boot has
/// fixed in the database, so that all processes agree and no step of the wall clock moves a lease.
class StoreTimer {
 public:
    explicit StoreTimer(ClockHooks hooks) : hooks_(std::move(hooks)) {}

    [[nodiscard]] engine::StoreTime now() const;

    /// Takes over the offset; false when it belongs to another boot (or nobody has fixed one) and
    /// `fix` must be called in a write transaction. Until then `now` is a good guess for readers.
    bool load(Statements& statements);
    /// Fixes the offset for this boot and lapses every lease of earlier boots.
    void fix(Statements& statements);
    /// Call at the beginning of every write transaction: keeps a bound above every time that was
    /// ever stored, below which no later boot starts. Throws `Failure`.
    void keep_bound(Statements& statements, engine::StoreTime now);
    /// The transaction that raised the bound may have been rolled back.
    void forget_bound() { bound_ = engine::StoreTime{}; }

 private:
    ClockHooks hooks_;
    engine::Millis offset_{};
    engine::StoreTime bound_{};
};

}  // namespace sekali::sqlite
