#include "client/outcomes.hpp"

#include <fmt/format.h>

#include "base/limits.hpp"
#include "base/utf8.hpp"

namespace sekali::client {
namespace {

/// What a cut result says about itself takes less than this.
constexpr std::size_t kCutMarkBytes = 64;

}  // namespace

std::string capped_result(std::string_view kept, std::uint64_t total) {
    if (total == kept.size()) return base::make_storable(std::string(kept), base::kMaxResultBytes);
    const std::size_t cut = base::utf8_cut(kept, base::kMaxResultBytes - kCutMarkBytes);
    return base::make_storable(fmt::format("{}… [cut, {} bytes]", kept.substr(0, cut), total),
                               base::kMaxResultBytes);
}

}  // namespace sekali::client
