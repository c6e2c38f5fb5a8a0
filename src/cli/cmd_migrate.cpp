#include "base/json_writer.hpp"
#include "base/text.hpp"
#include "cli/address.hpp"
#include "cli/command_table.hpp"
#include "cli/connect.hpp"

namespace sekali::cli {
namespace {

int run(CommandContext& context) {
    static_cast<void>(open_store(context, OpenMode::kMigrate));
    const std::string url = store_address(context.args, context.environment).url();
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
    .examples =
        "  sekali migrate --url sqlite:/var/lib/app/jobs.db\n"
        "  sekali migrate --url 'postgres://app@db/shop?schema=sekali'",
    .run = run,
};

}  // namespace sekali::cli
