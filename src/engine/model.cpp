#include "engine/model.hpp"

#include <array>

namespace sekali::engine {
namespace {

constexpr std::array<std::string_view, 9> kJobStates{"scheduled", "ready", "waiting",
                                                     "running",   "held",  "succeeded",
                                                     "duplicate", "dead",  "cancelled"};
constexpr std::array<std::string_view, 6> kRecordStates{"processing", "succeeded", "retryable",
                                                        "held",       "dead",      "cancelled"};
constexpr std::array<std::string_view, 3> kEffects{"outside", "steps", "commit"};
constexpr std::array<std::string_view, 3> kOnUnknown{"rerun", "probe", "hold"};
constexpr std::array<std::string_view, 3> kOnBusy{"wait", "skip", "fail"};
constexpr std::array<std::string_view, 3> kOnLockUnavailable{"wait", "fail", "proceed"};
constexpr std::array<std::string_view, 19> kEvents{
    "duplicate",  "superseded",       "takeover",       "lock_lost",
    "lease_lost", "lock_unavailable", "lock_fenced",    "worker_crash",
    "timeout",    "interrupted",      "held",           "resolved",
    "replay",     "key_reused",       "unique_refused", "replaced",
    "cancelled",  "late_result",      "ack_lost"};

template <typename Enum, std::size_t N>
std::string_view name_of(const std::array<std::string_view, N>& names, Enum value) {
    return names.at(static_cast<std::size_t>(value));
}

template <typename Enum, std::size_t N>
std::optional<Enum> value_of(const std::array<std::string_view, N>& names, std::string_view text) {
    for (std::size_t i = 0; i < N; ++i) {
        if (names[i] == text) return static_cast<Enum>(i);
    }
    return std::nullopt;
}

}  // namespace

std::string_view to_string(JobState state) {
    return name_of(kJobStates, state);
}
std::string_view to_string(RecordState state) {
    return name_of(kRecordStates, state);
}
std::string_view to_string(EventKind kind) {
    return name_of(kEvents, kind);
}

std::optional<JobState> parse_job_state(std::string_view text) {
    return value_of<JobState>(kJobStates, text);
}
std::optional<RecordState> parse_record_state(std::string_view text) {
    return value_of<RecordState>(kRecordStates, text);
}
std::optional<EventKind> parse_event_kind(std::string_view text) {
    return value_of<EventKind>(kEvents, text);
}
std::optional<Effects> parse_effects(std::string_view text) {
    return value_of<Effects>(kEffects, text);
}
std::optional<OnUnknown> parse_on_unknown(std::string_view text) {
    return value_of<OnUnknown>(kOnUnknown, text);
}
std::optional<OnBusy> parse_on_busy(std::string_view text) {
    return value_of<OnBusy>(kOnBusy, text);
}
std::optional<OnLockUnavailable> parse_on_lock_unavailable(std::string_view text) {
    return value_of<OnLockUnavailable>(kOnLockUnavailable, text);
}

}  // namespace sekali::engine
