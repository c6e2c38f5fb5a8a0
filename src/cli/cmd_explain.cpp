#include <fmt/format.h>

#include "base/json_writer.hpp"
#include "base/text.hpp"
#include "cli/command_table.hpp"
#include "cli/connect.hpp"
#include "observe/explain.hpp"

namespace sekali::cli {
namespace {

constexpr PositionalSpec kPositionals[] = {
    {.name = "KEY_OR_ID", .help = "an idempotency key, or the id of a job"}};
constexpr OptionSpec kOptions[] = {
    {.name = "kind",
     .value = "KIND",
     .help = "chooses where several kinds know the key",
     .kind = ValueKind::kName},
};

int run(CommandContext& context) {
    const std::string subject = *context.args.positional(0);
    std::optional<Store> store = open_if_exists(context);
    if (!store) {
        throw Failure(
            {.code = ErrorCode::kNotFound,
             .message = fmt::format("no job or record has the key or id {}", base::quoted(subject)),
             .hint = "there is no database yet where the jobs would be"});
    }
    const observe::Explanation explanation = store->read([&](engine::Tables& tables) {
        const engine::RecordKey key =
            observe::find_subject(tables, context.ns(), subject, context.args.text("kind"));
        return observe::explain(tables, key);
    });
    if (!context.out.json()) {
        context.out.bytes(observe::render_explanation(explanation));
        return kExitDone;
    }
    std::string document;
    base::JsonWriter json(document);
    observe::write_explanation(json, explanation);
    context.out.line(document);
    return kExitDone;
}

}  // namespace

constinit const CommandSpec kExplainCommand = {
    .name = "explain",
    .summary = "why something ran twice, or does not run",
    .about =
        "Prints the verdict, why, what to change, and the timeline of one key: who enqueued it,\n"
        "each start and how it ended, takeovers, refusals, lost locks. For a job that does not\n"
        "run: what it waits for, who holds that, and until when.",
    .positionals = kPositionals,
    .options = kOptions,
    .examples =
        "  sekali explain payment:1001\n"
        "  sekali explain payment:1001 --kind payment.charge --json",
    .run = run,
};

}  // namespace sekali::cli
