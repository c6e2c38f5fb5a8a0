#include "cli/listing.hpp"

#include <fmt/format.h>

#include "base/text.hpp"

namespace sekali::cli {

void tell_more(Output& out, const std::string& next) {
    if (next.empty()) return;
    out.flush();
    out.note(fmt::format("there are more: --after {}", base::quoted(next)));
}

}  // namespace sekali::cli
