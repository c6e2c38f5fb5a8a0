#pragma once

#include <string>

#include "engine/operations.hpp"

namespace sekali::conformance {

/// Everything in the tables that a namespace has, as text that is the same for the same history in
/// every store: times are counted from now, arrival by its order.
[[nodiscard]] std::string text_of(engine::Tables& tables, const std::string& ns);

[[nodiscard]] std::string text_of(const engine::EnqueueReply& reply);
[[nodiscard]] std::string text_of(const engine::Claimed& reply);
[[nodiscard]] std::string text_of(const engine::BeginReply& reply);
[[nodiscard]] std::string text_of(const engine::Settled& reply);
[[nodiscard]] std::string text_of(const engine::Renewed& reply);
[[nodiscard]] std::string text_of(const engine::StepIntentReply& reply);
[[nodiscard]] std::string text_of(const engine::LockReply& reply);
[[nodiscard]] std::string text_of(const engine::AdminReply& reply);

}  // namespace sekali::conformance
