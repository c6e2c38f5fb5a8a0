#pragma once

#include <vector>

#include "backends/postgres/diagnosis.hpp"
#include "cli/address.hpp"
#include "observe/doctor.hpp"

namespace sekali::cli {

/// What a PostgreSQL server and its settings come to.
void judge_postgres(std::vector<observe::Finding>& findings, const StoreAddress& address,
                    const postgres::Diagnosis& found);

}  // namespace sekali::cli
