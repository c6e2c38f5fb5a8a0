#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sekali::base {

/// A new UUIDv7 (RFC 9562) in its text form, larger than every one this process made before, also
/// when the wall clock steps back. Thread-safe; a forked child repeats none of its parent's.
[[nodiscard]] std::string new_uuid7();

/// Whether `text` is a UUID of any version in its canonical form. Upper case is refused, because
/// some backends fold it and others compare bytes.
[[nodiscard]] bool is_uuid(std::string_view text);

/// `bytes` random bytes of the kernel as twice as many lower-case hex digits. Thread-safe.
[[nodiscard]] std::string random_hex(std::size_t bytes);

}  // namespace sekali::base
