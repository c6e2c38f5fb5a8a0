#include <fmt/format.h>

#include <unistd.h>
#include <set>

#include "backends/sqlite/diagnosis.hpp"
#include "base/durations.hpp"
#include "base/json_writer.hpp"
#include "base/text.hpp"
#include "cli/address.hpp"
#include "cli/command_table.hpp"
#include "cli/connect.hpp"
#include "cli/doctor_postgres.hpp"
#include "cli/doctor_redis.hpp"
#include "cli/outside_locks.hpp"
#include "cli/work_settings.hpp"
#include "client/worker_plan.hpp"
#include "observe/doctor.hpp"

namespace sekali::cli {
namespace {

using observe::Finding;
using observe::Severity;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
/// A larger database takes too long to be read as a whole.
constexpr std::uint64_t kCheckedWhole = 512 * kMiB;
constexpr std::uint64_t kLittleSpace = 1024 * kMiB;
constexpr std::uint64_t kNoSpace = 64 * kMiB;
/// Four times what a checkpoint leaves behind it.
constexpr std::uint64_t kLongLog = 64 * kMiB;

Finding judge_durability(const StoreAddress& address) {
    Finding finding{"synchronous", "full: what was answered is on the disk"};
    if (!address.synchronous_full) {
        finding.detail =
            "normal: a power cut may take back the last jobs and successes that were answered";
        finding.object(Severity::kUnsafe, "leave ?synchronous=normal out of the URL");
    }
    return finding;
}

Finding judge_place(const sqlite::Diagnosis& found) {
    Finding finding{"file system", "local"};
    if (!found.file_system.empty()) {
        finding.detail = found.file_system;
        finding.object(
            Severity::kUnsafe,
            "put the database on a local disk: SQLite's locks cannot be relied on there");
    } else if (found.in_memory) {
        finding.detail = "in memory";
        finding.object(Severity::kUnsafe,
                       "put the database on a disk: this file system does not outlive a restart");
    }
    return finding;
}

Finding judge_space(const sqlite::Diagnosis& found) {
    Finding finding{"space", fmt::format("{} MiB are free; the database has {} MiB, its log {} MiB",
                                         found.free_bytes / kMiB, found.database_bytes / kMiB,
                                         found.log_bytes / kMiB)};
    if (found.free_bytes < kLittleSpace) {
        finding.object(found.free_bytes < kNoSpace ? Severity::kUnsafe : Severity::kWarning,
                       "make room: on a full disk nothing is enqueued and nothing starts");
    } else if (found.log_bytes > kLongLog) {
        finding.object(
            Severity::kWarning,
            "look for a program that keeps a read transaction open: the log cannot shrink");
    }
    return finding;
}

Finding judge_pages(const sqlite::Diagnosis& found) {
    Finding finding{"pages", "sound"};
    if (!found.damage.empty()) {
        finding.detail = found.damage;
        finding.object(Severity::kUnsafe,
                       "stop the workers, keep a copy with its -wal file, restore a backup");
    } else if (found.database_bytes > kCheckedWhole) {
        finding.detail = "not read: the database is large (PRAGMA quick_check reads it)";
    }
    return finding;
}

Finding judge_access(const sqlite::Diagnosis& found) {
    Finding finding{"access", "only its owner reads the database"};
    if (found.readable_by_others) {
        finding.detail = "other users may read the database, and with it every payload";
        finding.object(Severity::kWarning, "chmod 600, unless that is meant");
    }
    return finding;
}

void judge_database(std::vector<Finding>& findings, const StoreAddress& address,
                    const sqlite::Diagnosis& found) {
    findings.push_back(
        {"database", fmt::format("{}, schema {}", base::printable(address.url()), found.schema)});
    findings.push_back(judge_durability(address));
    findings.push_back(judge_place(found));
    findings.push_back(judge_space(found));
    findings.push_back(judge_pages(found));
    findings.push_back(judge_access(found));
    findings.push_back(observe::judge_clock(found.clock_ahead));
}

/// Whether a program of this name can be run, as the worker will look for it.
bool is_runnable(const CommandContext& context, const std::string& program) {
    if (program.find('/') != std::string::npos) return ::access(program.c_str(), X_OK) == 0;
    const std::string path = context.environment("PATH").value_or("/bin:/usr/bin");
    for (std::size_t at = 0; at <= path.size();) {
        const std::size_t colon = std::min(path.find(':', at), path.size());
        const std::string file = path.substr(at, colon - at) + "/" + program;
        if (::access(file.c_str(), X_OK) == 0) return true;
        at = colon + 1;
    }
    return false;
}

Finding judge_kind(const CommandContext& context, const std::string& kind,
                   const client::KindSettings& settings, const HandlerOptions& options) {
    Finding finding{"kind " + kind, "can be worked"};
    client::check_handler_options(kind, options).value();
    const bool asks = options.on_unknown == OnUnknown::kProbe;
    const bool can_be_asked = !settings.probe.empty() || options.effects == Effects::kSteps;
    if (!settings.exec.empty() && !is_runnable(context, settings.exec.front())) {
        finding.detail = fmt::format("its program {} cannot be run from here",
                                     base::quoted(settings.exec.front()));
        finding.object(Severity::kUnsafe, "every job of it would fail: mend exec, or PATH");
    } else if (asks && !can_be_asked) {
        finding.detail = "it says `probe` and has none: every unknown run of it is held";
        finding.object(Severity::kWarning, "give it on_unknown = \"probe:CMD\"");
    }
    return finding;
}

void judge_settings(std::vector<Finding>& findings, const CommandContext& context,
                    const client::WorkerProcessPlan& plan, const engine::RunHistory& history) {
    client::check_worker_options(plan.options).value();
    const engine::KindPolicy usual;
    const auto options_of = [&](const std::string& kind) {
        const auto own = plan.settings.find(kind);
        return own == plan.settings.end() ? plan.overrides
                                          : client::merged(own->second.options, plan.overrides);
    };
    for (const auto& [kind, settings] : plan.settings)
        findings.push_back(judge_kind(context, kind, settings, options_of(kind)));
    for (const engine::RunTimes& times : history.times) {
        findings.push_back(
            observe::judge_timeout(times, options_of(times.kind).timeout.value_or(usual.timeout)));
    }
    findings.push_back(observe::judge_leases(history, plan.options.lease,
                                             plan.overrides.lock_ttl.value_or(usual.lock_ttl)));
}

int run(CommandContext& context) {
    const client::WorkerProcessPlan plan = work_plan(context);
    const StoreAddress address = store_address(context.args, context.environment);
    std::vector<Finding> findings;
    const std::string& file = context.args.config().path;
    findings.push_back(
        {"configuration", file.empty() ? "no file is given" : base::printable(file) + " is sound"});
    engine::RunHistory history;
    if (!address.postgres.empty()) {
        const auto found =
            postgres::diagnose(postgres::parse_url(address.postgres), context.ns()).value();
        judge_postgres(findings, address, found);
        history = found.history;
    } else if (exists(address)) {
        sqlite::SqliteOptions options;
        options.path = address.path;
        const auto found = sqlite::diagnose(options, context.ns(), kCheckedWhole).value();
        judge_database(findings, address, found);
        history = found.history;
    } else {
        findings.push_back(
            {"database", fmt::format("there is none at {} yet", base::quoted(address.path))});
        findings.push_back(judge_durability(address));
    }
    if (const auto locks = outside_locks(context)) {
        judge_lock_server(findings, locks->url, redis::diagnose(locks->url).value());
    }
    judge_settings(findings, context, plan, history);
    if (context.out.json()) {
        std::string document;
        base::JsonWriter json(document);
        observe::write_findings(json, findings);
        context.out.line(document);
    } else {
        context.out.bytes(observe::render_findings(findings));
    }
    return observe::is_safe(findings) ? kExitDone : kExitCheckFailed;
}

}  // namespace

const CommandSpec kDoctorCommand = {
    .name = "doctor",
    .summary = "check the configuration and the database against what was measured",
    .about =
        "Reads the configuration as `work` would, with the same flags, and the newest 10,000 "
        "runs:\n"
        "timeouts against the p99 of each kind, leases against those that lapsed, what a power\n"
        "cut may take back, the file system, free space, damage, the clock; what a Redis that\n"
        "keeps the locks may lose. Exits with 1 when a promise does not hold.",
    .options = work_options(),
    .examples =
        "  sekali doctor\n"
        "  sekali --config sekali.toml doctor --json | jq '.checks[] | select(.status != \"ok\")'",
    .run = run,
};

}  // namespace sekali::cli
