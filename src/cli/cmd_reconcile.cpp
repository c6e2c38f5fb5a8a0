#include <fmt/format.h>

#include <map>
#include <optional>
#include <utility>

#include "base/clock.hpp"
#include "base/durations.hpp"
#include "base/errors.hpp"
#include "base/json_writer.hpp"
#include "base/limits.hpp"
#include "base/shell_words.hpp"
#include "base/text.hpp"
#include "cli/command_table.hpp"
#include "cli/connect.hpp"
#include "cli/foreground.hpp"
#include "cli/once_run.hpp"
#include "cli/people.hpp"
#include "cli/shared_options.hpp"
#include "client/child_env.hpp"
#include "engine/operations.hpp"
#include "observe/job_view.hpp"

namespace sekali::cli {
namespace {

using enum ValueKind;
using engine::RecordRow;
using engine::RecordState;

constexpr std::size_t kMostFound = 10'000;
/// A probe's exit status for "it did not happen"; 0 is "it happened".
constexpr int kExitDidNotHappen = 4;

constexpr std::array<OptionSpec, 3> kOwnOptions{{
    {.name = "kind", .value = "KIND", .help = "only this kind", .kind = kName},
    {.name = "probe",
     .value = "KIND=CMD",
     .help =
         "asks CMD about held jobs of the kind: exits 0 and prints the result when it happened, "
         "4 when it did not; else they stay held",
     .repeated = true},
    {.name = "dry-run", .help = "tells what it would do", .kind = kFlag},
}};
constexpr auto kOptions = join_options(kOwnOptions, kWhoOptions);

using Probes = std::map<std::string, std::vector<std::string>>;

Probes read_probes(const Arguments& args) {
    Probes probes;
    for (const std::string& text : args.all("probe")) {
        const std::size_t equals = text.find('=');
        if (equals == std::string::npos) {
            throw Failure(
                base::usage_error(fmt::format("--probe {} names no kind", base::quoted(text)),
                                  "write --probe KIND=CMD"));
        }
        const std::string kind = text.substr(0, equals);
        base::check_name("--probe", kind).value();
        const auto command = base::split_command(text.substr(equals + 1)).value();
        if (command.empty() || !probes.emplace(kind, command).second) {
            throw Failure(base::usage_error(fmt::format(
                "--probe for kind {} is {}", kind, command.empty() ? "empty" : "given twice")));
        }
    }
    return probes;
}

/// A job that has no living run and no answer, and what was done about it.
struct Finding {
    std::string kind;
    std::string key;
    std::string id;
    engine::JobState state = engine::JobState::kRunning;
    std::string cause;
    std::string action;  ///< `recovered`, `succeeded`, `rerun`, `held`, `left`.
    std::string why;
    std::optional<RecordRow> record;  ///< Of a held one.
};

class Reconciler {
 public:
    explicit Reconciler(CommandContext& context)
        : context_(context),
          probes_(read_probes(context.args)),
          who_(acting_person(context.args)),
          dry_(context.args.flag("dry-run")),
          store_(open_store(context, OpenMode::kExisting)) {}

    std::vector<Finding> run() {
        std::vector<Finding> findings =
            store_.read([&](engine::Tables& tables) { return find_lost(tables); });
        recover_dead(findings);
        std::vector<Finding> held =
            store_.read([&](engine::Tables& tables) { return find_held(tables); });
        for (Finding& finding : held) {
            settle_held(finding);
            findings.push_back(std::move(finding));
        }
        return findings;
    }

 private:
    [[nodiscard]] bool is_meant(const std::string& kind) const {
        return context_.args.text_or("kind", kind) == kind;
    }

    /// Running jobs whose worker is gone.
    std::vector<Finding> find_lost(engine::Tables& tables) const {
        std::vector<Finding> findings;
        engine::JobFilter filter;
        filter.ns = context_.ns();
        filter.state = engine::to_string(engine::JobState::kRunning);
        filter.limit = kMostFound;
        for (const engine::JobRow& row : tables.list_jobs(filter).items) {
            const bool dead = tables.owner_fate(row.owner) == engine::OwnerFate::kDead;
            if (!is_meant(row.job.kind) || (!dead && row.lease_until > tables.now())) continue;
            Finding finding;
            finding.kind = row.job.kind;
            finding.key = row.job.key;
            finding.id = row.job.id;
            finding.cause = dead ? "worker_crash" : "lease_lapsed";
            finding.action = dead && !dry_ ? "recovered" : "left";
            finding.why = "its worker is dead";
            if (!dead)
                finding.why = "the death of its worker is not proven: a worker takes it over";
            findings.push_back(std::move(finding));
        }
        return findings;
    }

    void recover_dead(const std::vector<Finding>& findings) {
        engine::Recover request;
        request.ns = context_.ns();
        request.limit = kMostFound;
        request.unclaimed_kinds = {std::string(kOnceKind)};
        for (const Finding& finding : findings) {
            if (finding.action != "recovered") continue;
            const bool is_new = request.policies.try_emplace(finding.kind).second;
            if (!is_new) continue;
            request.kinds.push_back(finding.kind);
            if (const auto crashes = context_.args.of_kind(finding.kind, "max_crashes")) {
                request.policies[finding.kind].max_crashes =
                    base::parse_count("max_crashes", *crashes, 1, 1000).value();
            }
        }
        if (request.kinds.empty()) return;
        store_.transact([&](engine::Tables& tables) { engine::recover(tables, request); });
    }

    std::vector<Finding> find_held(engine::Tables& tables) const {
        std::vector<Finding> findings;
        for (RecordRow& record : tables.stale_records(context_.ns(), kMostFound)) {
            if (record.state != RecordState::kHeld || !is_meant(record.id.kind)) continue;
            const bool proven =
                record.death_proven || tables.owner_fate(record.owner) == engine::OwnerFate::kDead;
            Finding finding;
            finding.kind = record.id.kind;
            finding.key = record.id.key;
            finding.id = record.job_id;
            finding.state = engine::JobState::kHeld;
            finding.cause = record.mark_cause;
            if (!proven && tables.now() < record.probe_after) {
                finding.why = fmt::format("its process may still act until {}",
                                          observe::shown_time(record.probe_after));
            }
            finding.record = std::move(record);
            findings.push_back(std::move(finding));
        }
        return findings;
    }

    void settle_held(Finding& finding) {
        finding.action = "held";
        const auto probe = probes_.find(finding.kind);
        if (probe == probes_.end()) {
            finding.why = "it needs an answer: a person's, or --probe";
            return;
        }
        if (!finding.why.empty() || dry_) return;
        const process::CommandResult answer = ask(probe->second, *finding.record);
        engine::Resolution resolution;
        if (answer.started && answer.exit_status == 0) {
            resolution.kind = engine::Resolution::Kind::kSucceeded;
            resolution.result = base::make_storable(answer.stdout_bytes, base::kMaxResultBytes);
        } else if (!answer.started || answer.exit_status != kExitDidNotHappen) {
            finding.why = answer.started
                              ? fmt::format("the probe exited with {}", answer.exit_status)
                              : answer.error;
            return;
        }
        try {
            const engine::AdminReply reply = store_.transact([&](engine::Tables& tables) {
                return engine::resolve_held(tables, finding.id, resolution, "probe of " + who_);
            });
            const bool done = reply.kind == engine::AdminReply::Kind::kDone;
            if (!done) finding.why = "somebody else has answered meanwhile";
            const bool happened = resolution.kind == engine::Resolution::Kind::kSucceeded;
            if (done) finding.action = happened ? "succeeded" : "rerun";
        } catch (const Failure& failure) {
            if (failure.error().code != ErrorCode::kConflict) throw;
            finding.why = failure.error().message;
        }
    }

    process::CommandResult ask(const std::vector<std::string>& probe, const RecordRow& record) {
        engine::RunRef run;
        run.job_id = record.job_id;
        run.record = record.id;
        run.worker = record.owner.empty() ? "reconcile" : record.owner;
        run.epoch = record.epoch;
        run.lock_key = record.lock_key;
        process::CommandOptions command;
        command.argv = probe;
        command.env =
            client::child_environment({.ref = run,
                                       .queue = "",
                                       .attempt = record.attempt,
                                       .deadline_ms = base::wall_ms() + base::kMaxDuration.count()},
                                      {.url = store_.url(), .ns = context_.ns()});
        command.capture_stdout = true;
        command.stdout_cap = base::kMaxResultBytes + 1;
        Foreground foreground(true);
        return foreground.run(std::move(command), {});
    }

    CommandContext& context_;
    Probes probes_;
    std::string who_;
    bool dry_;
    Store store_;
};

int run(CommandContext& context) {
    const std::vector<Finding> findings = Reconciler(context).run();
    if (context.out.json()) {
        std::string document;
        base::JsonWriter json(document);
        json.begin_object().field("items").begin_array();
        for (const Finding& finding : findings) {
            json.begin_object().field("kind", finding.kind).field("key", finding.key);
            json.field("id", finding.id).field("state", engine::to_string(finding.state));
            json.field("cause");
            finding.cause.empty() ? json.value(nullptr) : json.value(finding.cause);
            json.field("action", finding.action).field("why");
            finding.why.empty() ? json.value(nullptr) : json.value(finding.why);
            json.end_object();
        }
        json.end_array().field("dry_run", context.args.flag("dry-run")).end_object();
        context.out.line(document);
        return kExitDone;
    }
    TextTable table({"KIND", "KEY", "JOB", "STATE", "ACTION", "WHY"});
    for (const Finding& finding : findings) {
        table.add({finding.kind, finding.key, finding.id,
                   std::string(engine::to_string(finding.state)), finding.action, finding.why});
    }
    if (!findings.empty()) context.out.bytes(table.render());
    return kExitDone;
}

}  // namespace

constinit const CommandSpec kReconcileCommand = {
    .name = "reconcile",
    .summary = "settle held and stale records",
    .about =
        "Lists the records whose run is over without an answer, and does what is safe: a run "
        "whose\n"
        "worker is proven dead is recovered, a held one is asked about by --probe, which finds\n"
        "the job's SEKALI_ variables in its environment. What is left needs a worker or a person.",
    .options = kOptions,
    .examples =
        "  sekali reconcile --dry-run\n"
        "  sekali reconcile --probe 'payment.charge=./was-it-charged.sh'",
    .run = run,
};

}  // namespace sekali::cli
