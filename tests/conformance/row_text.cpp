#include "conformance/row_text.hpp"

#include <set>
#include <sstream>
#include <type_traits>
#include <utility>
#include <vector>

namespace sekali::conformance {
namespace {

using engine::JobRow;
using engine::RecordKey;
using engine::StoreTime;
using engine::Tables;

/// One line of `name=value` fields.
class Line {
 public:
    Line(const char* what, StoreTime now) : now_(now) { out_ << what; }

    template <typename T>
    Line& add(const char* name, const T& value) {
        out_ << ' ' << name << '=';
        write(value);
        return *this;
    }
    [[nodiscard]] std::string text() const { return out_.str() + "\n"; }

 private:
    void write(StoreTime time) {
        if (time == StoreTime{}) {
            out_ << "never";
        } else {
            out_ << (time - now_).count() << "ms";
        }
    }
    void write(engine::Millis duration) { out_ << duration.count() << "ms"; }
    void write(const std::string& text) { out_ << '"' << text << '"'; }
    template <typename T>
    void write(const std::optional<T>& value) {
        if (value) {
            write(*value);
        } else {
            out_ << '-';
        }
    }
    template <typename T>
    std::enable_if_t<std::is_enum_v<T>> write(T value) {
        out_ << static_cast<int>(value);
    }
    template <typename T>
    std::enable_if_t<std::is_arithmetic_v<T>> write(T value) {
        out_ << value;
    }
    void write(const std::vector<std::string>& names) {
        for (const std::string& name : names)
            out_ << name << ',';
    }

    std::ostringstream out_;
    StoreTime now_;
};

std::string text_of_row(const JobRow& row, const std::string& payload, StoreTime now) {
    const engine::Envelope& job = row.job;
    Line line("job", now);
    line.add("id", job.id).add("kind", job.kind).add("queue", job.queue).add("key", job.key);
    line.add("lock", job.lock_key).add("unique", job.unique_key).add("until", job.unique_until);
    line.add("priority", job.priority).add("max", job.retry.max_attempts);
    line.add("print", job.fingerprint).add("named_end", job.named_end).add("payload", payload);
    line.add("state", row.state).add("for", row.waiting_for).add("name", row.waiting_name);
    line.add("enqueued", row.enqueued_at).add("run", row.run_at).add("end", row.finished_at);
    line.add("attempts", row.attempts).add("crashes", row.crashes);
    line.add("interruptions", row.interruptions).add("deliveries", row.deliveries);
    line.add("lost", row.lost_claims).add("owner", row.owner).add("lease", row.lease_until);
    line.add("begun", row.begun).add("suspect", row.suspect).add("slot", row.slot_held);
    line.add("cancel", row.cancel_requested).add("by", row.requested_by).add("epoch", row.epoch);
    line.add("result", row.result).add("error", row.error).add("reason", row.reason);
    return line.text();
}

std::string text_of_record(const engine::RecordRow& row, StoreTime now) {
    Line line("record", now);
    line.add("kind", row.id.kind).add("key", row.id.key).add("state", row.state);
    line.add("job", row.job_id).add("epoch", row.epoch).add("owner", row.owner);
    line.add("delivery", row.delivery).add("lease", row.lease_until).add("print", row.fingerprint);
    line.add("not_before", row.not_before).add("effects", row.effects);
    line.add("unknown", row.on_unknown).add("marked", row.marked).add("cause", row.mark_cause);
    line.add("probing", row.probing).add("proven", row.death_proven);
    line.add("probe_after", row.probe_after).add("ends", row.ends).add("lock", row.lock_key);
    line.add("fence", row.fence).add("attempt", row.attempt).add("started", row.started_at);
    line.add("end", row.finished_at).add("result", row.result).add("keep", row.keep);
    line.add("whole", row.whole_answer);
    return line.text();
}

std::string text_of_step(const engine::StepRow& row, StoreTime now) {
    Line line("step", now);
    line.add("key", row.record.key).add("name", row.name).add("epoch", row.epoch);
    line.add("call", row.call).add("order", row.order).add("done", row.done);
    return line.add("result", row.result).text();
}

std::string text_of_lock(const engine::LockRow& row, StoreTime now) {
    Line line("lock", now);
    line.add("name", row.name).add("owner", row.owner).add("token", row.token);
    line.add("job", row.job_id).add("fence", row.fence).add("lease", row.lease_until);
    line.add("reserved", row.reserved_for).add("until", row.reserved_until);
    return line.text();
}

std::string text_of_history(Tables& tables, const RecordKey& key) {
    std::string text;
    for (const engine::AttemptRow& row : tables.attempts_of_key(key)) {
        Line line("attempt", tables.now());
        line.add("job", row.job_id).add("key", row.key).add("attempt", row.attempt);
        line.add("epoch", row.epoch).add("worker", row.worker).add("started", row.started_at);
        line.add("end", row.finished_at).add("outcome", row.outcome).add("error", row.error);
        text += line.text();
    }
    for (const engine::EventRow& row : tables.events_of_key(key)) {
        Line line("event", tables.now());
        line.add("at", row.at).add("event", row.event).add("job", row.job_id).add("key", row.key);
        line.add("epoch", row.epoch).add("worker", row.worker).add("detail", row.detail);
        text += line.text();
    }
    return text;
}

}  // namespace

std::string text_of(Tables& tables, const std::string& ns) {
    const StoreTime now = tables.now();
    std::string text;
    std::set<RecordKey> keys;
    std::set<std::string> locks;
    engine::JobFilter filter;
    filter.ns = ns;
    filter.limit = 100'000;
    for (const JobRow& row : tables.list_jobs(filter).items) {
        text += text_of_row(row, tables.payload(row.job.id), now);
        keys.insert({ns, row.job.kind, row.job.key});
        if (!row.job.lock_key.empty()) locks.insert(row.job.lock_key);
    }
    for (const RecordKey& key : keys) {
        if (const auto record = tables.record(key)) text += text_of_record(*record, now);
        for (const engine::StepRow& step : tables.steps(key))
            text += text_of_step(step, now);
        text += text_of_history(tables, key);
    }
    for (const std::string& name : locks) {
        if (const auto lock = tables.lock(ns, name)) text += text_of_lock(*lock, now);
    }
    for (const engine::WorkerRow& row : tables.workers(ns)) {
        Line line("worker", now);
        line.add("id", row.id).add("lease", row.lease_until).add("company", row.death_company);
        text += line.add("queues", row.queues).text();
    }
    for (const engine::QueueCounts& row : tables.queue_counts(ns)) {
        Line line("queue", now);
        line.add("name", row.queue).add("paused", row.paused).add("workers", row.live_workers);
        for (const auto& [state, count] : row.by_state)
            line.add(state.c_str(), count);
        text += line.add("oldest", row.oldest_ready).text();
    }
    Line floors("floors", now);
    return text +
           floors.add("epoch", tables.epoch_floor()).add("fence", tables.fence_floor()).text();
}

std::string text_of(const engine::EnqueueReply& reply) {
    Line line("enqueue", {});
    line.add("kind", reply.kind).add("id", reply.id);
    if (reply.winner) line.add("winner", reply.winner->job.id);
    return line.text();
}

std::string text_of(const engine::Claimed& reply) {
    Line line("claimed", {});
    line.add("more", reply.more).add("due", reply.next_due).add("drained", reply.drained);
    for (const engine::Delivery& delivery : reply.deliveries) {
        line.add("id", delivery.row.job.id).add("token", delivery.row.deliveries);
        line.add("payload", delivery.row.job.payload);
    }
    return line.text();
}

std::string text_of(const engine::BeginReply& reply) {
    Line line("begin", {});
    line.add("answer", reply.index());
    if (const auto* started = std::get_if<engine::Started>(&reply)) {
        line.add("epoch", started->epoch).add("fence", started->fence);
        line.add("attempt", started->attempt).add("probe", started->probe_first);
        line.add("ask", started->ask_in_step).add("steps", started->steps.size());
    } else if (const auto* parked = std::get_if<engine::Parked>(&reply)) {
        line.add("for", parked->waiting_for).add("name", parked->name).add("delay", parked->delay);
    } else if (const auto* ended = std::get_if<engine::Ended>(&reply)) {
        line.add("state", ended->state).add("reason", ended->reason).add("result", ended->result);
    }
    return line.text();
}

std::string text_of(const engine::Settled& reply) {
    Line line("settled", {});
    line.add("kind", reply.kind).add("state", reply.state).add("retry", reply.retry_in);
    return line.add("error", reply.error).text();
}

std::string text_of(const engine::Renewed& reply) {
    Line line("renewed", {});
    return line.add("kept", reply.kept)
        .add("lock", reply.lock_kept)
        .add("cancel", reply.cancel)
        .text();
}

std::string text_of(const engine::StepIntentReply& reply) {
    return Line("step", {}).add("kind", reply.kind).add("result", reply.result).text();
}

std::string text_of(const engine::LockReply& reply) {
    Line line("lock", {});
    line.add("kind", reply.kind).add("fence", reply.fence).add("holder", reply.holder);
    return line.add("remaining", reply.remaining).text();
}

std::string text_of(const engine::AdminReply& reply) {
    Line line("admin", {});
    line.add("kind", reply.kind);
    if (reply.row) line.add("id", reply.row->job.id).add("state", reply.row->state);
    if (reply.winner) line.add("winner", reply.winner->job.id);
    return line.text();
}

}  // namespace sekali::conformance
