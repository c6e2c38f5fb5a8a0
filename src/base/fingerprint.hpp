#pragma once

#include <string>
#include <string_view>

#include "sekali/result.hpp"

namespace sekali::base {

/// What tells two payloads under one key apart, by the kind's rule:
/// - `` (empty): SHA-256 of the payload's bytes, as 64 hex digits;
/// - `fields:/a,/b`: SHA-256 over the values at these JSON pointers, in this order. A missing value
///   differs from `null`. White space between tokens does not count; everything else does: the
///   order of fields inside a value, `1` against `1.0`, an escape against its character;
/// - `none`: the empty string, which equals every other.
[[nodiscard]] Result<std::string> fingerprint(std::string_view payload, std::string_view rule);

/// Refuses a rule that `fingerprint` does not know.
[[nodiscard]] Result<void> check_fingerprint_rule(std::string_view rule);

}  // namespace sekali::base
