#include "observe/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/errors.hpp"
#include "base/ids.hpp"
#include "base/text.hpp"
#include "observe/explain_facts.hpp"

namespace sekali::observe {

using engine::RecordKey;

namespace {

std::string quoted_list(const std::vector<std::string>& names) {
    std::vector<std::string> quoted;
    for (const std::string& name : names)
        quoted.push_back(base::quoted(name));
    return fmt::format("{}", fmt::join(quoted, ", "));
}

[[noreturn]] void refuse_unknown(engine::Tables& tables, std::string_view ns,
                                 std::string_view key) {
    constexpr std::size_t kShown = 5;
    const std::vector<std::string> nearest = tables.nearest_keys(ns, key, kShown);
    Error error;
    error.code = ErrorCode::kNotFound;
    error.message = fmt::format("no job or record has the key or id {}", base::quoted(key));
    error.hint = nearest.empty() ? "keys are compared byte for byte, in one namespace"
                                 : "the nearest keys are " + quoted_list(nearest);
    throw Failure(error);
}

}  // namespace

RecordKey find_subject(engine::Tables& tables, std::string_view ns, std::string_view key_or_id,
                       const std::optional<std::string>& kind) {
    const RecordKey as_key{std::string(ns), kind.value_or(""), std::string(key_or_id)};
    std::vector<std::string> kinds = tables.kinds_of_key(ns, key_or_id);
    if (kinds.empty() && base::is_uuid(key_or_id)) {
        const auto job = find_job(tables, ns, key_or_id);
        if (job) return {as_key.ns, job->row.job.kind, job->row.job.key};
    }
    if (kind) std::erase_if(kinds, [&](const std::string& known) { return known != *kind; });
    if (kinds.empty()) refuse_unknown(tables, ns, key_or_id);
    if (kinds.size() > 1) {
        throw Failure(base::usage_error(
            fmt::format("the key {} is known in {} kinds: {}", base::quoted(key_or_id),
                        kinds.size(), fmt::join(kinds, ", ")),
            fmt::format("choose one with --kind {}", kinds.front())));
    }
    return {as_key.ns, kinds.front(), as_key.key};
}

Explanation explain(engine::Tables& tables, const RecordKey& subject) {
    Surroundings surroundings(tables, subject.ns);
    const Facts facts = read_facts(tables, subject, surroundings);
    Explanation out;
    out.key = subject.key;
    out.kind = subject.kind;
    out.verdict = verdict_of(tables, facts, surroundings);
    out.timeline = timeline_of(facts);
    out.causes = causes_of(tables, facts);
    out.jobs = facts.jobs;
    return out;
}

void write_explanation(base::JsonWriter& json, const Explanation& explanation) {
    const auto text = [&](std::string_view name, const std::string& value) {
        json.field(name);
        value.empty() ? json.value(nullptr) : json.value(value);
    };
    json.begin_object().field("key", explanation.key).field("kind", explanation.kind);
    json.field("verdict", explanation.verdict).field("jobs").begin_array();
    for (const JobView& job : explanation.jobs)
        write_item(json, job);
    json.end_array().field("timeline").begin_array();
    for (const TimelineEntry& entry : explanation.timeline) {
        json.begin_object().field("at", shown_time(entry.at)).field("event", entry.event);
        text("job_id", entry.job_id);
        json.field("attempt", entry.attempt).field("epoch", entry.epoch);
        text("worker", entry.worker);
        text("detail", entry.detail);
        json.end_object();
    }
    json.end_array().field("causes").begin_array();
    for (const Cause& cause : explanation.causes) {
        json.begin_object().field("cause", cause.cause).field("evidence").begin_array();
        for (const std::string& evidence : cause.evidence)
            json.value(evidence);
        json.end_array().field("advice", cause.advice).end_object();
    }
    json.end_array().end_object();
}

namespace {

std::string timeline_line(const TimelineEntry& entry, bool name_jobs) {
    constexpr std::size_t kEventWidth = 14;
    constexpr std::size_t kShortWorker = 8;
    std::string line =
        fmt::format("{}  {:<{}}", shown_time(entry.at), base::printable(entry.event), kEventWidth);
    const auto number = [&](std::string_view name, const std::optional<std::uint64_t>& value) {
        line += fmt::format("  {:<11}", value ? fmt::format("{} {}", name, *value) : "");
    };
    number("attempt", entry.attempt);
    number("epoch", entry.epoch);
    if (!entry.worker.empty()) {
        line += "  worker " + base::printable(entry.worker.substr(0, kShortWorker));
    }
    if (name_jobs && !entry.job_id.empty()) line += "  job " + entry.job_id;
    if (!entry.detail.empty()) line += "  " + base::printable(entry.detail);
    line.erase(line.find_last_not_of(' ') + 1);
    return line;
}

}  // namespace

std::string render_explanation(const Explanation& explanation) {
    std::string out = explanation.verdict + '\n';
    for (const Cause& cause : explanation.causes) {
        out += fmt::format("why   {}: {}\n", cause.cause, base::printable(cause.evidence.front()));
        for (std::size_t i = 1; i < cause.evidence.size(); ++i)
            out += fmt::format("      {}\n", base::printable(cause.evidence[i]));
        out += fmt::format("do    {}\n", cause.advice);
    }
    for (const TimelineEntry& entry : explanation.timeline)
        out += timeline_line(entry, explanation.jobs.size() > 1) + '\n';
    return out;
}

}  // namespace sekali::observe
