#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace sekali::base {

/// Milliseconds since this host booted, time asleep included; no step of the wall clock moves it.
[[nodiscard]] std::int64_t boot_ms();

/// The steady clock, for deadlines inside this process.
[[nodiscard]] std::chrono::steady_clock::time_point steady_now();

/// Milliseconds since 1970 by the wall clock, which may step. For people and records, not for
/// leases.
[[nodiscard]] std::int64_t wall_ms();

/// The kernel's id of the present boot, without which `boot_ms` values must not be compared.
/// Read once in a process. Throws `Failure` when the kernel does not tell.
[[nodiscard]] std::string boot_id();

}  // namespace sekali::base
