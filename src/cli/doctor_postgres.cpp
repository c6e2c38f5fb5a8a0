#include "cli/doctor_postgres.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/durations.hpp"
#include "base/text.hpp"

namespace sekali::cli {
namespace {

using observe::Finding;
using observe::Severity;
using postgres::Diagnosis;

constexpr engine::Millis kOldSnapshot{std::chrono::minutes{5}};
constexpr engine::Millis kLongLag{std::chrono::seconds{30}};
constexpr engine::Millis kClockTolerance{std::chrono::seconds{1}};
constexpr std::int64_t kFewConnections = 10;
constexpr std::uint64_t kManyDeadRows = 100'000;

Finding judge_durability(const Diagnosis& found) {
    Finding finding{"durability",
                    fmt::format("fsync {}, full_page_writes {}, synchronous_commit {}", found.fsync,
                                found.full_page_writes, found.synchronous_commit)};
    if (found.fsync != "on" || found.full_page_writes != "on") {
        finding.object(
            Severity::kUnsafe,
            "set fsync and full_page_writes on: a crash of the host may damage the database");
    } else if (found.synchronous_commit == "off") {
        finding.object(
            Severity::kUnsafe,
            "set synchronous_commit on for sekali's role: a crash of the server may take back "
            "the last jobs and successes that were answered");
    }
    return finding;
}

Finding judge_server(const Diagnosis& found) {
    Finding finding{"server", fmt::format("PostgreSQL {}", found.server)};
    if (found.read_only) {
        finding.detail += ", read-only";
        finding.object(
            Severity::kUnsafe,
            "connect to the primary: target_session_attrs=read-write in the URL finds it");
    }
    return finding;
}

bool has_many_dead_rows(const Diagnosis& found) {
    return found.dead_rows > kManyDeadRows && found.dead_rows > 10 * found.live_rows;
}

Finding judge_isolation(const Diagnosis& found) {
    Finding finding{"isolation", found.isolation + " by default"};
    if (found.isolation != "read committed") {
        finding.object(Severity::kWarning,
                       "know that sekali's transactions, handlers' effects in them, are read "
                       "committed all the same: lock the rows that they rely on");
    }
    return finding;
}

/// Leases go by the server's clock, so its distance to this host's harms none; what steps it does.
Finding judge_clock(const Diagnosis& found) {
    const auto off = std::chrono::abs(found.clock_ahead);
    Finding finding{"clock", fmt::format("the server's clock is {} {} this host's",
                                         off.count() == 0 ? "0s" : base::format_duration(off),
                                         found.clock_ahead.count() < 0 ? "behind" : "ahead of")};
    if (off > kClockTolerance) {
        finding.object(Severity::kWarning,
                       "let both hosts follow one time service, and none step its clock: leases "
                       "and delays go by the server's");
    }
    return finding;
}

Finding judge_snapshot(const Diagnosis& found) {
    Finding finding{"oldest snapshot", "nobody holds one"};
    if (found.oldest_snapshot_of.empty()) return finding;
    finding.detail = fmt::format("{} by {}", base::format_duration(found.oldest_snapshot),
                                 base::printable(found.oldest_snapshot_of));
    if (found.oldest_snapshot > kOldSnapshot || has_many_dead_rows(found)) {
        finding.object(
            Severity::kWarning,
            "end that transaction: while it lasts no dead row goes and claims become slower");
    }
    return finding;
}

Finding judge_rows(const Diagnosis& found) {
    Finding finding{"dead rows", fmt::format("{} dead, {} live in the table of live jobs",
                                             found.dead_rows, found.live_rows)};
    if (!found.autovacuum) {
        finding.detail += "; autovacuum is off";
        finding.object(Severity::kUnsafe, "set autovacuum on: claims read every dead row");
    } else if (has_many_dead_rows(found)) {
        finding.object(Severity::kWarning,
                       "look for what holds an old snapshot, or give autovacuum more workers");
    }
    return finding;
}

Finding judge_connections(const Diagnosis& found) {
    Finding finding{"connections",
                    fmt::format("{} of {}", found.connections, found.connection_limit)};
    if (found.connection_limit - found.connections < kFewConnections) {
        finding.object(Severity::kWarning,
                       "raise max_connections: a worker process needs three and more");
    }
    return finding;
}

Finding judge_collation(const Diagnosis& found) {
    Finding finding{"collation", "its version is the one the database was made with"};
    if (!found.collation_mismatch.empty()) {
        finding.detail = found.collation_mismatch + "; sekali's keys do not depend on it";
        finding.object(
            Severity::kWarning,
            "rebuild your own indexes on text, then ALTER DATABASE … REFRESH COLLATION VERSION");
    }
    return finding;
}

Finding judge_replication(const Diagnosis& found) {
    Finding finding{"replication", "no standby, or none that lags"};
    if (!found.replication_lag) return finding;
    finding.detail = "the slowest standby lags by " + base::format_duration(*found.replication_lag);
    if (*found.replication_lag > kLongLag) {
        finding.object(Severity::kWarning,
                       "a promotion now would lose what the standby does not have yet");
    }
    return finding;
}

}  // namespace

void judge_postgres(std::vector<Finding>& findings, const StoreAddress& address,
                    const Diagnosis& found) {
    findings.push_back(
        {"database", fmt::format("{}, schema {}", base::printable(address.url()), found.schema)});
    findings.push_back(judge_server(found));
    findings.push_back(judge_isolation(found));
    findings.push_back(judge_durability(found));
    findings.push_back(judge_snapshot(found));
    findings.push_back(judge_rows(found));
    findings.push_back(judge_connections(found));
    findings.push_back(judge_collation(found));
    findings.push_back(judge_replication(found));
    findings.push_back(judge_clock(found));
}

}  // namespace sekali::cli
