#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "engine/operations.hpp"
#include "sekali/options.hpp"
#include "sekali/result.hpp"

namespace sekali::client {

/// Where a job is to go and how large it may be.
struct EnqueueScope {
    std::string ns = "default";
    std::size_t max_payload = 1024 * 1024;
};

/// `call` with everything that it leaves out as `type` says.
[[nodiscard]] EnqueueOptions merged(const EnqueueOptions& call, const EnqueueOptions& type);
[[nodiscard]] RetryOverrides merged(const RetryOverrides& over, const RetryOverrides& under);

/// Checks a job against every limit, before any store is asked, and makes its envelope: a new id
/// where none was given, the id as the key, the fingerprint. Errors: `kUsage`, naming field and
/// limit.
[[nodiscard]] Result<engine::EnqueueRequest> prepare_enqueue(const EnqueueScope& scope,
                                                             std::string_view kind,
                                                             std::string payload,
                                                             const EnqueueOptions& options);

/// Refuses what cannot be a retry policy. Errors: `kUsage`.
[[nodiscard]] Result<void> check_retry(const RetryOverrides& retry);

}  // namespace sekali::client
