#include "observe/doctor.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/durations.hpp"
#include "base/text.hpp"

namespace sekali::observe {

using std::chrono::milliseconds;

namespace {

/// Fewer say nothing about the slowest of a hundred.
constexpr std::uint64_t kEnoughRuns = 20;
/// Wall clocks of one host differ from its boot clock by what was stepped or slewed.
constexpr milliseconds kClockTolerance{1000};

std::string_view to_string(Severity severity) {
    switch (severity) {
        case Severity::kOk:
            return "ok";
        case Severity::kWarning:
            return "warning";
        case Severity::kUnsafe:
            return "unsafe";
    }
    return "unsafe";
}

std::string shown(milliseconds duration) {
    return base::format_duration(duration);
}

}  // namespace

Finding judge_timeout(const engine::RunTimes& measured, milliseconds timeout) {
    Finding finding{"timeout " + measured.kind,
                    fmt::format("{}; p99 of {} runs is {}, the longest took {}", shown(timeout),
                                measured.runs, shown(measured.p99), shown(measured.longest))};
    // A run that is cut off has done an unknown part of its work.
    if (measured.runs >= kEnoughRuns && measured.p99 * 2 > timeout) {
        finding.object(measured.p99 > timeout ? Severity::kUnsafe : Severity::kWarning,
                       fmt::format("raise --timeout to {} or more", shown(measured.p99 * 4)));
    }
    return finding;
}

Finding judge_leases(const engine::RunHistory& history, milliseconds lease, milliseconds lock_ttl) {
    Finding finding{
        "lease",
        fmt::format("lease {}, lock TTL {}; {} of {} recorded runs lost theirs while they lived",
                    shown(lease), shown(lock_ttl), history.lapses, history.runs)};
    if (history.lapses > 0) {
        finding.object(
            Severity::kUnsafe,
            fmt::format("workers stand still for longer than their lease: raise --lease above {}, "
                        "or look for what stops them (memory, disk, a paused machine); sekali "
                        "explain names the runs",
                        shown(lease)));
    }
    return finding;
}

Finding judge_clock(milliseconds ahead) {
    const milliseconds off = std::chrono::abs(ahead);
    Finding finding{"clock", fmt::format("the store's clock is {} {} the wall clock", shown(off),
                                         ahead.count() < 0 ? "behind" : "ahead of")};
    if (off > kClockTolerance) {
        finding.object(Severity::kWarning,
                       "leases and delays are right all the same; times that are shown are off by "
                       "that much until the host is started again");
    }
    return finding;
}

bool is_safe(const std::vector<Finding>& findings) {
    return std::none_of(findings.begin(), findings.end(), [](const Finding& finding) {
        return finding.severity == Severity::kUnsafe;
    });
}

void write_findings(base::JsonWriter& json, const std::vector<Finding>& findings) {
    json.begin_object().field("ok", is_safe(findings)).field("checks").begin_array();
    for (const Finding& finding : findings) {
        json.begin_object().field("check", finding.check);
        json.field("status", to_string(finding.severity)).field("detail", finding.detail);
        json.field("advice");
        finding.advice.empty() ? json.value(nullptr) : json.value(finding.advice);
        json.end_object();
    }
    json.end_array().end_object();
}

std::string render_findings(const std::vector<Finding>& findings) {
    std::string text;
    for (const Finding& finding : findings) {
        text += fmt::format("{:<8} {}: {}\n", to_string(finding.severity),
                            base::printable(finding.check), base::printable(finding.detail));
        if (!finding.advice.empty()) text += fmt::format("         do: {}\n", finding.advice);
    }
    return text;
}

}  // namespace sekali::observe
