#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/errors.hpp"
#include "base/json_writer.hpp"
#include "cli/command_table.hpp"
#include "cli/context.hpp"
#include "cli/demo_stage.hpp"

namespace sekali::cli {
namespace {

using enum ValueKind;

constexpr OptionSpec kOptions[] = {
    {.name = "orders",
     .value = "N",
     .help = "payments and refunds; default 1200",
     .kind = kInteger,
     .min = 1,
     .max = 1'000'000},
    {.name = "kills",
     .value = "N",
     .help = "workers to kill in the middle of a handler; default 20",
     .kind = kInteger,
     .max = 1000},
    {.name = "workers",
     .value = "N",
     .help = "worker processes; default 4",
     .kind = kInteger,
     .min = 1,
     .max = 32},
    {.name = "keep", .help = "keep the folder with store, ledgers and logs", .kind = kFlag},
};

std::string make_folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sekali-demo-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) {
        throw Failure(Error{.code = ErrorCode::kRefused,
                            .message = fmt::format("no folder can be made in {}",
                                                   std::filesystem::temp_directory_path().string()),
                            .hint = "set TMPDIR to a folder that can be written"});
    }
    return pattern;
}

void report_json(const DemoReport& report, Output& out) {
    std::string document;
    base::JsonWriter json(document);
    json.begin_object();
    json.field("orders", report.orders).field("enqueued", report.enqueued);
    json.field("kills", report.kills).field("effects", report.effects);
    json.field("gateway_calls", report.gateway_calls);
    json.field("gateway_charges", report.gateway_charges);
    json.field("balance_errors", report.balance_errors).field("lost", report.lost);
    json.field("double_effects", report.double_effects);
    json.field("seconds").raw(fmt::format("{:.2f}", report.seconds)).end_object();
    out.line(document);
}

void report_text(const DemoReport& report, Output& out) {
    TextTable table({"WHAT", "", ""});
    const auto row = [&](std::string what, std::uint64_t count, std::string meaning) {
        table.add({std::move(what), std::to_string(count), std::move(meaning)});
    };
    row("orders", report.orders, "payments and refunds on shared accounts");
    row("enqueued", report.enqueued, "jobs: three of ten orders came twice");
    row("kills", report.kills, "kill -9 of a worker in the middle of a handler");
    row("effects", report.effects, "rows committed together with \"succeeded\"");
    row("gateway calls", report.gateway_calls, "some repeated, some never answered");
    row("gateway charges", report.gateway_charges, "money that moved, by the gateway's own ledger");
    row("lost", report.lost, "orders without their row or their charge");
    row("double effects", report.double_effects, "orders booked or charged more than once");
    row("balance errors", report.balance_errors, "accounts whose sum is wrong");
    out.bytes(table.render());
    out.line(report.proven()
                 ? fmt::format("Every order took effect once ({:.1f} s).", report.seconds)
                 : std::string("The proof FAILED: sekali broke its word here; please report it."));
}

int run(CommandContext& context) {
    DemoPlan plan;
    plan.orders = context.args.integer("orders").value_or(plan.orders);
    plan.kills = context.args.integer("kills").value_or(plan.kills);
    plan.workers = static_cast<int>(
        context.args.integer("workers").value_or(static_cast<std::uint64_t>(plan.workers)));
    plan.folder = make_folder();
    context.out.note(
        fmt::format("{} orders, {} worker processes, {} of them will be killed; store in {}",
                    plan.orders, plan.workers, plan.kills, plan.folder));
    const bool shown = Output::is_terminal(STDERR_FILENO);
    const DemoReport report =
        play_demo(plan, [&](std::uint64_t done, std::uint64_t all, std::uint64_t kills) {
            if (!shown) return;
            Output::complaint(fmt::format("\r{:>6} of {} handlers ended, {:>3} workers killed ",
                                          done, all, kills));
        });
    if (shown) Output::complaint("\n");
    context.out.json() ? report_json(report, context.out) : report_text(report, context.out);
    if (context.args.flag("keep") || !report.proven()) {
        context.out.note(fmt::format(
            "look at it: sekali --url sqlite:{}/demo.db explain payment:o-1", plan.folder));
    } else {
        std::filesystem::remove_all(plan.folder);
    }
    return report.proven() ? kExitDone : kExitCheckFailed;
}

}  // namespace

constinit const CommandSpec kDemoCommand = {
    .name = "demo",
    .summary = "show the main job: duplicates and kill -9, then the proof",
    .about =
        "Enqueues payments and refunds on shared accounts, three of ten twice, works them in\n"
        "several processes that are killed with kill -9 in the middle of their handlers, against\n"
        "a gateway process that sometimes moves the money and never answers. Then it compares two\n"
        "ledgers: the rows that were committed together with \"succeeded\", and the gateway's own.",
    .options = kOptions,
    .examples =
        "  sekali demo\n"
        "  sekali demo --orders 5000 --kills 100 --json",
    .run = run,
};

}  // namespace sekali::cli
