#include "cli/enqueue_reply.hpp"

#include <fmt/format.h>

#include "base/text.hpp"

namespace sekali::cli {

using Kind = engine::EnqueueReply::Kind;

std::string_view status_of(const engine::EnqueueReply& reply) {
    switch (reply.kind) {
        case Kind::kEnqueued:
            return "enqueued";
        case Kind::kDuplicate:
            return "duplicate";
        case Kind::kReplaced:
            return "replaced";
        case Kind::kKeyReused:
        case Kind::kIdTaken:
            break;
    }
    return "";
}

const std::string& useful_id(const engine::EnqueueReply& reply) {
    return reply.kind == Kind::kDuplicate ? reply.winner->job.id : reply.id;
}

std::optional<Error> enqueue_refusal(const engine::EnqueueReply& reply,
                                     const engine::Envelope& job) {
    Error error;
    error.code = ErrorCode::kConflict;
    if (reply.kind == Kind::kKeyReused) {
        error.message = fmt::format(
            "key_reused: the idempotency key {} of {} belongs to another "
            "payload already, so nothing was enqueued",
            base::quoted(job.key), job.kind);
        error.hint = fmt::format("sekali explain tells of which; other work needs another key");
        return error;
    }
    if (reply.kind == Kind::kIdTaken) {
        error.message = fmt::format("the id {} belongs to another job already", job.id);
        error.hint = "a repeated call must repeat kind, key and payload too";
        return error;
    }
    return std::nullopt;
}

void write_enqueue_reply(base::JsonWriter& json, const engine::EnqueueReply& reply) {
    std::optional<std::string> winner;
    if (reply.winner) winner = reply.winner->job.id;
    json.field("id", useful_id(reply)).field("status", status_of(reply)).field("winner", winner);
}

}  // namespace sekali::cli
