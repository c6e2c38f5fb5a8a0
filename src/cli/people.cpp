#include "cli/people.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdio>

#include "base/errors.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "client/user.hpp"

namespace sekali::cli {

using engine::AdminReply;
using engine::JobState;

std::string acting_person(const Arguments& args) {
    return args.text_or("as", client::user_name());
}

void confirm(CommandContext& context, std::string_view question) {
    if (context.args.flag("yes") || context.args.flag("dry-run")) return;
    if (!Output::is_terminal(STDIN_FILENO) || !Output::is_terminal(STDERR_FILENO)) {
        throw Failure(base::usage_error(fmt::format("{}? It cannot be undone", question),
                                        "say --yes where nobody can be asked"));
    }
    std::fputs(fmt::format("sekali: {}? It cannot be undone [y/N] ", question).c_str(), stderr);
    std::array<char, 16> answer{};
    const bool read = std::fgets(answer.data(), answer.size(), stdin) != nullptr;
    if (read && (answer[0] == 'y' || answer[0] == 'Y')) return;
    throw Failure({.code = ErrorCode::kCancelled, .message = "nothing was done", .hint = ""});
}

std::optional<std::uint64_t> parse_rate(const Arguments& args) {
    std::optional<std::string> text = args.text("rate");
    if (!text) return std::nullopt;
    constexpr std::string_view kUnit = "/s";
    if (text->ends_with(kUnit)) text->resize(text->size() - kUnit.size());
    constexpr std::uint64_t kMost = 1'000'000;
    return base::parse_count("--rate", *text, 1, kMost).value();
}

namespace {

/// The command that fits a job in this state.
std::string fitting_command(JobState state, std::string_view id) {
    switch (state) {
        case JobState::kDead:
            return fmt::format("sekali dead retry {}", id);
        case JobState::kHeld:
            return fmt::format("sekali held resolve {} --succeeded RESULT | --rerun | --dead", id);
        case JobState::kScheduled:
            return fmt::format("sekali job retry {} runs it now", id);
        default:
            return fmt::format("sekali explain {} tells more", id);
    }
}

}  // namespace

Error refusal_of(const AdminReply& reply, std::string_view doing, std::string_view id) {
    Error error;
    error.code = ErrorCode::kConflict;
    switch (reply.kind) {
        case AdminReply::Kind::kNotFound:
            error.code = ErrorCode::kNotFound;
            error.message = fmt::format("there is no job {}", base::quoted(id));
            error.hint = "job ids are listed by sekali job list; keys by sekali explain KEY";
            break;
        case AdminReply::Kind::kSlotTaken:
            error.message =
                fmt::format("cannot {} job {}: its unique key {} belongs to job {} now", doing, id,
                            base::quoted(reply.row->job.unique_key), reply.winner->job.id);
            error.hint = "try again when that one has ended";
            break;
        case AdminReply::Kind::kWrongState:
            error.message = fmt::format("cannot {} job {}: it is {}", doing, id,
                                        engine::to_string(reply.row->state));
            error.hint = fitting_command(reply.row->state, id);
            break;
        case AdminReply::Kind::kDone:
        case AdminReply::Kind::kRequested:
            break;
    }
    return error;
}

}  // namespace sekali::cli
