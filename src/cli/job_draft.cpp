#include "cli/job_draft.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "base/durations.hpp"
#include "base/errors.hpp"
#include "base/fingerprint.hpp"
#include "base/ids.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"

namespace sekali::cli {

using engine::Millis;
using engine::UniqueUntil;

namespace {

UniqueUntil parse_until(std::string_view text) {
    return text == "start" ? UniqueUntil::kStart : UniqueUntil::kEnd;
}

std::int32_t parse_priority(const std::string& text) {
    return static_cast<std::int32_t>(base::parse_count("priority", text, 0, 9).value());
}

std::uint64_t parse_attempts(const std::string& text) {
    const OptionSpec& option = kJobFieldOptions[static_cast<std::size_t>(JobField::kMaxAttempts)];
    return base::parse_count(option.name, text, option.min, option.max).value();
}

}  // namespace

JobMaker::JobMaker(const Arguments& args, std::string ns, bool fields_are_flags)
    : args_(args),
      ns_(std::move(ns)),
      fields_are_flags_(fields_are_flags),
      max_payload_(args.integer("max-payload").value_or(base::kDefaultMaxPayloadBytes)) {}

std::string JobMaker::name_of(JobField field) const {
    const std::string_view name = kJobFieldOptions[static_cast<std::size_t>(field)].name;
    return fields_are_flags_ ? fmt::format("--{}", name) : file_key(name);
}

JobMaker::KindDefaults JobMaker::read_defaults(const std::string& kind) const {
    base::check_name(fields_are_flags_ ? "KIND" : "kind", kind).value();
    const auto setting = [&](std::string_view option) {
        std::optional<std::string> value = args_.of_kind(kind, file_key(option));
        if (!value && !args_.from_call(option)) value = args_.text(option);
        return value;
    };
    KindDefaults defaults;
    if (auto queue = setting("queue")) defaults.queue = *std::move(queue);
    if (const auto priority = setting("priority")) defaults.priority = parse_priority(*priority);
    if (const auto attempts = setting("max-attempts")) {
        defaults.max_attempts = parse_attempts(*attempts);
    }
    if (const auto until = setting("unique-until")) defaults.unique_until = parse_until(*until);
    defaults.fingerprint_rule = args_.of_kind(kind, "fingerprint").value_or("");
    base::check_fingerprint_rule(defaults.fingerprint_rule).value();
    defaults.keeps_record = args_.of_kind(kind, "record") != "none";
    return defaults;
}

const JobMaker::KindDefaults& JobMaker::defaults_of(const std::string& kind) {
    const auto known = defaults_.find(kind);
    if (known != defaults_.end()) return known->second;
    // A file of a million made-up kinds must not fill the memory.
    constexpr std::size_t kMostKept = 10'000;
    if (defaults_.size() >= kMostKept) defaults_.clear();
    return defaults_.emplace(kind, read_defaults(kind)).first->second;
}

void JobMaker::check(const JobDraft& draft, const KindDefaults& defaults) const {
    for (std::size_t i = 0; i < kJobFieldCount; ++i) {
        const auto field = static_cast<JobField>(i);
        if (draft.at(field)) check_value(kJobFieldOptions[i], name_of(field), *draft.at(field));
    }
    if (draft.payload.size() > max_payload_) {
        throw Failure(base::usage_error(
            fmt::format("the payload has {} bytes (allowed: {})", draft.payload.size(),
                        max_payload_),
            "store what is large elsewhere and send its address, or raise --max-payload"));
    }
    if (const auto& id = draft.at(JobField::kId); id && !base::is_uuid(*id)) {
        throw Failure(
            base::usage_error(fmt::format("{} {} is no UUID in lower case", name_of(JobField::kId),
                                          base::quoted(*id)),
                              "leave it out and one is made, or use --key for names of your own"));
    }
    if (draft.at(JobField::kDelay) && draft.at(JobField::kAt)) {
        throw Failure(base::usage_error(fmt::format(
            "{} and {} are both given", name_of(JobField::kDelay), name_of(JobField::kAt))));
    }
    const bool replaces = draft.at(JobField::kOnDuplicate) == "replace";
    if (replaces && !draft.at(JobField::kUnique)) {
        throw Failure(base::usage_error(fmt::format(
            "{} replace needs {}", name_of(JobField::kOnDuplicate), name_of(JobField::kUnique))));
    }
    if (replaces && draft.at(JobField::kKey)) {
        throw Failure(
            base::usage_error(fmt::format("{} replace and a fixed {} exclude each other",
                                          name_of(JobField::kOnDuplicate), name_of(JobField::kKey)),
                              "the job that replaces is other work than the one it replaces"));
    }
    if (!defaults.keeps_record && draft.at(JobField::kKey)) {
        throw Failure(base::usage_error(fmt::format("{} is given, and kind {} keeps no records",
                                                    name_of(JobField::kKey), draft.kind),
                                        R"(record = "none" in the configuration file says so)"));
    }
}

std::optional<Millis> JobMaker::delay_of(const JobDraft& draft) const {
    if (const auto& delay = draft.at(JobField::kDelay)) {
        return base::parse_duration(name_of(JobField::kDelay), *delay,
                                    base::DurationRule::kZeroAllowed)
            .value();
    }
    if (const auto& at = draft.at(JobField::kAt)) {
        const std::int64_t ms = base::parse_instant(name_of(JobField::kAt), *at).value();
        const Millis delay{std::max<std::int64_t>(0, ms - base::wall_ms())};
        if (delay > base::kMaxDuration) {
            throw Failure(base::usage_error(
                fmt::format("{} {} is further away than {}", name_of(JobField::kAt),
                            base::quoted(*at), base::format_duration(base::kMaxDuration))));
        }
        return delay;
    }
    return std::nullopt;
}

engine::EnqueueRequest JobMaker::make(JobDraft draft) {
    const KindDefaults& defaults = defaults_of(draft.kind);
    check(draft, defaults);
    const auto text = [&](JobField field, std::string fallback) {
        return draft.at(field).value_or(std::move(fallback));
    };
    engine::EnqueueRequest request;
    request.delay = delay_of(draft);
    if (draft.at(JobField::kOnDuplicate) == "replace") {
        request.on_duplicate = engine::OnDuplicate::kReplace;
    }
    engine::Envelope& job = request.job;
    job.id = draft.at(JobField::kId) ? *draft.at(JobField::kId) : base::new_uuid7();
    job.ns = ns_;
    job.queue = text(JobField::kQueue, defaults.queue);
    job.key = text(JobField::kKey, job.id);
    job.lock_key = text(JobField::kLock, "");
    job.unique_key = text(JobField::kUnique, "");
    const auto& until = draft.at(JobField::kUniqueUntil);
    job.unique_until = until ? parse_until(*until) : defaults.unique_until;
    const auto& priority = draft.at(JobField::kPriority);
    job.priority = priority ? parse_priority(*priority) : defaults.priority;
    const auto& attempts = draft.at(JobField::kMaxAttempts);
    job.retry.max_attempts = attempts ? parse_attempts(*attempts) : defaults.max_attempts;
    job.fingerprint = base::fingerprint(draft.payload, defaults.fingerprint_rule).value();
    job.fingerprint_rule = defaults.fingerprint_rule;
    job.kind = std::move(draft.kind);
    job.payload = std::move(draft.payload);
    return request;
}

}  // namespace sekali::cli
