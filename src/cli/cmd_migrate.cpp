#include "base/json_writer.hpp"
#include "base/text.hpp"
#include "cli/command_table.hpp"
#include "cli/connect.hpp"

namespace sekali::cli {
namespace {

int run(CommandContext& context) {
    Store store = open_store(context, OpenMode::kCreate);
    const std::string& url = store.url();
    if (context.out.json()) {
        std::string document;
        base::JsonWriter json(document);
        json.begin_object().field("url", url).field("status", "current").end_object();
        context.out.line(document);
    } else {
        context.out.note("the schema at " + base::printable(url) + " is current");
    }
    return kExitDone;
}

}  // namespace

constinit const CommandSpec kMigrateCommand = {
    .name = "migrate",
    .summary = "create or upgrade the schema",
    .about =
        "Safe to run by many at once. work, enqueue, once and lock do it by themselves for\n"
        "sqlite.",
    .examples = "  sekali migrate --url sqlite:/var/lib/app/jobs.db",
    .run = run,
};

}  // namespace sekali::cli
