#pragma once

#include <string>
#include <string_view>

#include "engine/model.hpp"

namespace sekali::client {

/// What the keys of all steps of one record begin with: the same in every attempt, different for
/// every (namespace, kind, key). Printable ASCII without spaces, so that it fits an HTTP header,
/// and of bounded length.
[[nodiscard]] std::string step_key_prefix(const engine::RecordKey& record);

/// The key of one step, to be sent to the outside system.
[[nodiscard]] std::string step_key(const engine::RecordKey& record, std::string_view step);

/// `bytes` as printable ASCII without spaces; what is not becomes `%XX`.
[[nodiscard]] std::string header_safe(std::string_view bytes);

}  // namespace sekali::client
