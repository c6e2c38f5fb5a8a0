#include "cli/doctor_redis.hpp"

#include <fmt/format.h>

#include <chrono>
#include <string>

#include "backends/redis/address.hpp"
#include "base/durations.hpp"
#include "base/text.hpp"

namespace sekali::cli {
namespace {

using observe::Finding;
using observe::Severity;
using redis::Diagnosis;

constexpr redis::Millis kClockTolerance{5000};

Finding judge_server(std::string_view url, const Diagnosis& found) {
    const std::string where = redis::parse_address(url).value().printable();
    Finding finding{"lock server",
                    fmt::format("Redis {} at {}", base::printable(found.server), where)};
    if (found.replica) {
        finding.detail += ", a replica";
        finding.object(
            Severity::kUnsafe,
            "name the primary, or let Sentinel find it: redis+sentinel://HOST,HOST/GROUP");
    }
    return finding;
}

Finding judge_eviction(const Diagnosis& found) {
    Finding finding{"lock eviction", "no memory limit, so that nothing is evicted"};
    if (found.memory_limit == 0) return finding;
    finding.detail = fmt::format("maxmemory-policy {}, {} keys evicted so far",
                                 base::printable(found.eviction_policy), found.evicted);
    if (found.eviction_policy != "noeviction") {
        finding.object(
            Severity::kUnsafe,
            "set maxmemory-policy noeviction: a lock that is evicted is free for others");
    }
    return finding;
}

Finding judge_persistence(const Diagnosis& found) {
    Finding finding{"lock persistence", {}};
    if (found.append_only) {
        finding.detail = found.append_fsync.empty()
                             ? "appendonly yes"
                             : fmt::format("appendonly yes, appendfsync {}", found.append_fsync);
        if (found.append_fsync == "no") {
            finding.object(Severity::kWarning,
                           "set appendfsync everysec: a crash of the host may free locks that were "
                           "taken up to half a minute before");
        }
        return finding;
    }
    finding.detail = !found.snapshots_known ? "appendonly no; snapshots are not known"
                     : found.snapshots      ? "appendonly no, snapshots"
                                            : "appendonly no, no snapshots";
    finding.object(Severity::kWarning,
                   "set appendonly yes: after a restart locks are free while their holders run on");
    return finding;
}

Finding judge_replicas(const Diagnosis& found) {
    Finding finding{"lock replicas", fmt::format("{}", found.replicas)};
    if (found.replicas > 0) {
        finding.detail +=
            "; a failover may free locks that the new primary had not heard of, and the store's "
            "fence is what then keeps one of two holders from committing";
    }
    return finding;
}

Finding judge_clock(const Diagnosis& found) {
    Finding finding{
        "lock clock",
        fmt::format("{} {} this host's", base::format_duration(std::chrono::abs(found.clock_ahead)),
                    found.clock_ahead.count() < 0 ? "behind" : "ahead of")};
    if (std::chrono::abs(found.clock_ahead) > kClockTolerance) {
        finding.object(Severity::kWarning,
                       "keep both in step: fences follow the server's clock, so that they would "
                       "fall when another server takes over");
    }
    return finding;
}

}  // namespace

void judge_lock_server(std::vector<Finding>& findings, std::string_view url,
                       const Diagnosis& found) {
    findings.push_back(judge_server(url, found));
    findings.push_back(judge_eviction(found));
    findings.push_back(judge_persistence(found));
    findings.push_back(judge_replicas(found));
    findings.push_back(judge_clock(found));
}

}  // namespace sekali::cli
