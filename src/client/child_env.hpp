#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/ports.hpp"

namespace sekali::client {

/// Which store the children of a worker write their steps to.
struct StoreAddress {
    std::string url;
    std::string ns;
};

/// What the child of one run is told about it.
struct ChildRun {
    engine::RunRef ref;
    std::string queue;
    std::uint64_t attempt = 0;
    std::int64_t deadline_ms = 0;  ///< Milliseconds since 1970 by this host's wall clock.
};

/// The whole environment of a handler's child: this process's own without any `SEKALI_` variable of
/// it, then what the contract names, and what `sekali step` needs.
[[nodiscard]] std::vector<std::string> child_environment(const ChildRun& run,
                                                         const StoreAddress& store);

/// The run that this process is a child of, read from its environment; nothing when it is none.
/// Errors: `kUsage` for a damaged one.
[[nodiscard]] Result<std::optional<engine::RunRef>> run_of_environment();

/// The queue's, store's and locks' address and namespace that this process was told; for `sekali
/// step`.
[[nodiscard]] StoreAddress store_of_environment();

}  // namespace sekali::client
