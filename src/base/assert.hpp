#pragma once

namespace sekali::base {

/// Prints the failed condition with its place on stderr and aborts.
[[noreturn]] void assertion_failed(const char* condition, const char* message, const char* file,
                                   int line) noexcept;

}  // namespace sekali::base

/// States what only a bug can break. Stays on in release builds: a worker that goes on after a
/// broken invariant may take an effect twice.
#define SEKALI_ASSERT(condition, message) \
    (static_cast<bool>(condition)         \
         ? static_cast<void>(0)           \
         : ::sekali::base::assertion_failed(#condition, message, __FILE__, __LINE__))
