#include "cli/job_draft.hpp"

#include <fmt/format.h>

#include <chrono>
#include <limits>
#include <utility>

#include "base/durations.hpp"
#include "base/errors.hpp"
#include "base/limits.hpp"
#include "client/prepare.hpp"

namespace sekali::cli {

namespace {

/// Writes a checked text into the option that it stands for.
void set_option(EnqueueOptions& options, JobField field, std::string_view name,
                const std::string& text) {
    using std::chrono::milliseconds;
    const auto duration = [&] {
        return base::parse_duration(name, text, base::DurationRule::kZeroAllowed).value();
    };
    const auto number = [&] {
        return base::parse_count(name, text, 0, std::numeric_limits<std::uint32_t>::max()).value();
    };
    switch (field) {
        case JobField::kQueue:
            options.queue = text;
            break;
        case JobField::kId:
            options.id = text;
            break;
        case JobField::kKey:
            options.key = text;
            break;
        case JobField::kLock:
            options.lock = text;
            break;
        case JobField::kUnique:
            options.unique = text;
            break;
        case JobField::kUniqueFor:
            options.unique_for = duration();
            break;
        case JobField::kUniqueUntil:
            options.unique_until = text == "start" ? UniqueUntil::kStart : UniqueUntil::kEnd;
            break;
        case JobField::kOnDuplicate:
            options.on_duplicate = text == "replace" ? OnDuplicate::kReplace : OnDuplicate::kKeep;
            break;
        case JobField::kDelay:
            options.delay = duration();
            break;
        case JobField::kAt:
            options.at = std::chrono::system_clock::time_point(
                milliseconds(base::parse_instant(name, text).value()));
            break;
        case JobField::kPriority:
            options.priority = static_cast<int>(number());
            break;
        case JobField::kMaxAttempts:
            options.retry.max_attempts = number();
            break;
    }
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

EnqueueOptions JobMaker::read_defaults(const std::string& kind) const {
    base::check_name(fields_are_flags_ ? "KIND" : "kind", kind).value();
    EnqueueOptions defaults;
    for (std::size_t i = 0; i < kJobFieldCount; ++i) {
        const OptionSpec& option = kJobFieldOptions[i];
        if (option.origin != Origin::kFile) continue;
        std::optional<std::string> value = args_.of_kind(kind, file_key(option.name));
        if (!value && !args_.from_call(option.name)) value = args_.text(option.name);
        if (value) set_option(defaults, static_cast<JobField>(i), option.name, *value);
    }
    defaults.fingerprint = args_.of_kind(kind, "fingerprint");
    return defaults;
}

const EnqueueOptions& JobMaker::defaults_of(const std::string& kind) {
    const auto known = defaults_.find(kind);
    if (known != defaults_.end()) return known->second;
    // A file of a million made-up kinds must not fill the memory.
    constexpr std::size_t kMostKept = 10'000;
    if (defaults_.size() >= kMostKept) defaults_.clear();
    return defaults_.emplace(kind, read_defaults(kind)).first->second;
}

engine::EnqueueRequest JobMaker::make(JobDraft draft) {
    const EnqueueOptions& defaults = defaults_of(draft.kind);
    EnqueueOptions options;
    for (std::size_t i = 0; i < kJobFieldCount; ++i) {
        const auto field = static_cast<JobField>(i);
        if (!draft.at(field)) continue;
        const std::string name = name_of(field);
        check_value(kJobFieldOptions[i], name, *draft.at(field));
        set_option(options, field, name, *draft.at(field));
    }
    if (options.on_duplicate == OnDuplicate::kReplace && !options.unique) {
        throw Failure(base::usage_error(fmt::format(
            "{} replace needs {}", name_of(JobField::kOnDuplicate), name_of(JobField::kUnique))));
    }
    if (options.key && args_.of_kind(draft.kind, "record") == "none") {
        throw Failure(base::usage_error(fmt::format("{} is given, and kind {} keeps no records",
                                                    name_of(JobField::kKey), draft.kind),
                                        R"(record = "none" in the configuration file says so)"));
    }
    if (draft.payload.empty()) {
        throw Failure(
            base::usage_error("the payload is empty, which is no JSON", "leave it out for null"));
    }
    return client::prepare_enqueue({.ns = ns_, .max_payload = max_payload_}, draft.kind,
                                   std::move(draft.payload), client::merged(options, defaults))
        .value();
}

}  // namespace sekali::cli
