#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json_writer.hpp"
#include "engine/operations.hpp"
#include "sekali/result.hpp"

namespace sekali::cli {

/// `enqueued`, `duplicate` or `replaced`; empty for what was refused.
[[nodiscard]] std::string_view status_of(const engine::EnqueueReply& reply);

/// The id to work with: the new job's, or the winner's of a duplicate.
[[nodiscard]] const std::string& useful_id(const engine::EnqueueReply& reply);

/// Why the job was refused, if it was: its key or its id belongs to other work.
[[nodiscard]] std::optional<Error> enqueue_refusal(const engine::EnqueueReply& reply,
                                                   const engine::Envelope& job);

/// Writes `id`, `status` and `winner` into an object that is open.
void write_enqueue_reply(base::JsonWriter& json, const engine::EnqueueReply& reply);

}  // namespace sekali::cli
