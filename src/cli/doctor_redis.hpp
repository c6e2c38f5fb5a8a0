#pragma once

#include <string_view>
#include <vector>

#include "backends/redis/diagnosis.hpp"
#include "observe/doctor.hpp"

namespace sekali::cli {

/// What a Redis that keeps the locks, and its settings, come to.
void judge_lock_server(std::vector<observe::Finding>& findings, std::string_view url,
                       const redis::Diagnosis& found);

}  // namespace sekali::cli
