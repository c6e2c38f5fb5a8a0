#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "engine/tables.hpp"

namespace sekali::conformance {

/// A store under test, whose clock and view of other processes belong to the test.
class Backend {
 public:
    virtual ~Backend() = default;
    [[nodiscard]] virtual engine::Executor& executor() = 0;
    /// Lets the executor run what was submitted, where it has no thread of its own.
    virtual void pump() = 0;
    virtual void advance(engine::Millis by) = 0;
    virtual void set_fate(const std::string& worker, engine::OwnerFate fate) = 0;
};

struct BackendKind {
    std::string name;
    std::function<std::unique_ptr<Backend>()> make;
};
inline void PrintTo(const BackendKind& kind, std::ostream* out) {
    *out << kind.name;
}

/// Every store with rows that is built here. A new one is added in backend.cpp and gets every
/// suite.
[[nodiscard]] const std::vector<BackendKind>& backends();

[[nodiscard]] std::unique_ptr<Backend> make_memory_backend();
[[nodiscard]] std::unique_ptr<Backend> make_sqlite_backend();
[[nodiscard]] std::unique_ptr<Backend> make_postgres_backend();

}  // namespace sekali::conformance
