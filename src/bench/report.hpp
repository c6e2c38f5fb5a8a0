#pragma once

#include <string>

#include "bench/result.hpp"

namespace sekali::bench {

/// One JSON document; its names are stable.
[[nodiscard]] std::string to_json(const BenchResult& result);
/// Tables for a person, with a newline behind each line.
[[nodiscard]] std::string to_text(const BenchResult& result);

}  // namespace sekali::bench
