#pragma once

#include <memory>

#include "backends/redis/lock_names.hpp"
#include "conformance/lock_backend.hpp"

namespace sekali::conformance {

/// Locks on a private server that the suite shares; each call begins with an empty one.
[[nodiscard]] std::unique_ptr<LockBackend> make_redis_locks(redis::LockProfile profile);

}  // namespace sekali::conformance
