#include "backends/redis/queue_rows.hpp"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <utility>

namespace sekali::redis {
namespace {

using engine::Millis;
using engine::StoreTime;

template <typename Number>
Number number_of(std::string_view text) {
    Number value{};
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

/// One field, because all of it is rare: `-` is what the job leaves open.
std::string write_overrides(const RetryOverrides& retry) {
    const auto text = [](const auto& value) {
        return value ? fmt::format("{}", *value) : std::string("-");
    };
    const auto millis = [&](const std::optional<Millis>& value) {
        return value ? std::to_string(value->count()) : std::string("-");
    };
    const std::string all =
        fmt::format("{} {} {} {} {} {}", millis(retry.base), text(retry.factor), millis(retry.cap),
                    text(retry.jitter), text(retry.max_attempts), millis(retry.max_age));
    return all == "- - - - - -" ? std::string{} : all;
}

template <typename Number>
std::optional<Number> next_number(std::string_view& text) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (word.empty() || word == "-") return std::nullopt;
    return number_of<Number>(word);
}

std::optional<Millis> next_millis(std::string_view& text) {
    const auto count = next_number<std::int64_t>(text);
    return count ? std::optional(Millis{*count}) : std::nullopt;
}

RetryOverrides read_overrides(std::string_view text) {
    RetryOverrides retry;
    retry.base = next_millis(text);
    retry.factor = next_number<double>(text);
    retry.cap = next_millis(text);
    retry.jitter = next_number<double>(text);
    retry.max_attempts = next_number<std::uint64_t>(text);
    retry.max_age = next_millis(text);
    return retry;
}

/// The fields of a reply, by name.
class Fields {
 public:
    explicit Fields(const Reply& reply) {
        for (std::size_t i = 0; i + 1 < reply.items.size(); i += 2)
            values_.emplace(reply.items[i].text, reply.items[i + 1].text);
    }
    [[nodiscard]] std::string text(std::string_view name) const {
        const auto found = values_.find(name);
        return found == values_.end() ? std::string{} : std::string(found->second);
    }
    template <typename Number = std::uint64_t>
    [[nodiscard]] Number number(std::string_view name) const {
        const auto found = values_.find(name);
        return found == values_.end() ? Number{} : number_of<Number>(found->second);
    }
    [[nodiscard]] StoreTime time(std::string_view name) const {
        return StoreTime{Millis{number<std::int64_t>(name)}};
    }
    [[nodiscard]] bool has(std::string_view name) const { return values_.contains(name); }

 private:
    std::map<std::string_view, std::string_view> values_;
};

engine::Envelope read_envelope(const JobAddress& address, const Fields& fields) {
    engine::Envelope job;
    job.id = address.id;
    job.ns = address.ns;
    job.queue = address.queue;
    job.kind = fields.text("kind");
    job.payload = fields.text("payload");
    job.key = fields.text("key");
    job.lock_key = fields.text("lock_key");
    job.unique_key = fields.text("unique_key");
    if (fields.has("unique_until")) job.unique_until = UniqueUntil::kStart;
    job.priority = fields.number<std::int32_t>("priority");
    job.retry = read_overrides(fields.text("retry"));
    job.fingerprint = fields.text("fingerprint");
    job.fingerprint_rule = fields.text("fingerprint_rule");
    job.named_end = fields.number("named_end");
    return job;
}

}  // namespace

std::string queue_key(std::string_view ns, std::string_view queue) {
    return fmt::format("sekali:{{{}:{}}}", ns, queue);
}
std::string queue_channel(std::string_view ns, std::string_view queue) {
    return queue_key(ns, queue) + ":ready";
}
std::string queues_key(std::string_view ns) {
    return fmt::format("sekali:{}:queues", ns);
}
std::string slot_key(std::string_view ns, std::string_view kind, std::string_view unique_key) {
    return fmt::format("sekali:{}:unique:{}:{}", ns, kind, unique_key);
}

JobAddress parse_job_key(std::string_view key) {
    constexpr std::string_view kStart = "sekali:{";
    constexpr std::string_view kMiddle = "}:job:";
    const std::size_t middle = key.find(kMiddle);
    const std::size_t colon = key.find(':', kStart.size());
    if (!key.starts_with(kStart) || middle == std::string_view::npos || colon > middle) return {};
    return {std::string(key.substr(kStart.size(), colon - kStart.size())),
            std::string(key.substr(colon + 1, middle - colon - 1)),
            std::string(key.substr(middle + kMiddle.size()))};
}

std::vector<std::string> frozen_fields(const engine::Envelope& job) {
    std::vector<std::string> words;
    const auto add = [&](std::string_view name, std::string value) {
        if (value.empty()) return;
        words.emplace_back(name);
        words.push_back(std::move(value));
    };
    add("payload", job.payload);
    add("key", job.key);
    add("lock_key", job.lock_key);
    add("unique_key", job.unique_key);
    add("unique_until", job.unique_until == UniqueUntil::kStart ? "start" : "");
    add("priority", job.priority == 0 ? std::string{} : std::to_string(job.priority));
    add("retry", write_overrides(job.retry));
    add("fingerprint", job.fingerprint);
    add("fingerprint_rule", job.fingerprint_rule);
    add("named_end", job.named_end == 0 ? std::string{} : std::to_string(job.named_end));
    return words;
}

engine::JobRow read_job(const JobAddress& address, const Reply& reply) {
    const Fields fields(reply);
    engine::JobRow row;
    row.job = read_envelope(address, fields);
    row.seq = fields.number<std::int64_t>("seq");
    row.state = engine::parse_job_state(fields.text("state")).value_or(engine::JobState::kReady);
    if (row.state == engine::JobState::kWaiting) {
        row.waiting_for = engine::WaitFor::kKey;
        row.waiting_name = fields.text("waiting_name");
    }
    row.enqueued_at = fields.time("enqueued_at");
    row.run_at = fields.time("run_at");
    if (fields.has("finished_at")) row.finished_at = fields.time("finished_at");
    row.attempts = fields.number("attempts");
    row.crashes = fields.number("crashes");
    row.interruptions = fields.number("interruptions");
    row.deliveries = fields.number("deliveries");
    row.lost_claims = fields.number("lapses");
    row.owner = fields.text("owner");
    row.lease_until = fields.time("lease_until");
    row.slot_held = fields.has("slot_held");
    row.cancel_requested = fields.has("cancel");
    row.requested_by = fields.text("requested_by");
    row.result = fields.text("result");
    row.error = fields.text("error");
    row.reason = fields.text("reason");
    return row;
}

}  // namespace sekali::redis
