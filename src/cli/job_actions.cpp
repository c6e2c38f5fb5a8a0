#include "cli/job_actions.hpp"

#include <fmt/format.h>

#include <chrono>
#include <thread>
#include <vector>

#include "base/errors.hpp"
#include "base/json_writer.hpp"
#include "base/text.hpp"
#include "cli/connect.hpp"
#include "cli/listing.hpp"
#include "cli/people.hpp"
#include "observe/job_view.hpp"

namespace sekali::cli {

using engine::AdminReply;
using engine::JobState;
using observe::JobView;

engine::JobFilter job_filter(const CommandContext& context, std::optional<JobState> state) {
    const Arguments& args = context.args;
    engine::JobFilter filter;
    filter.ns = context.ns();
    filter.state = args.text("state");
    filter.kind = args.text("kind");
    filter.queue = args.text("queue");
    filter.key = args.text("key");
    filter.after = args.text_or("after", "");
    filter.limit = args.integer("limit").value_or(filter.limit);
    if (state && !filter.state) filter.state = engine::to_string(*state);
    return filter;
}

namespace {

std::vector<std::string> table_row(const JobView& view) {
    const engine::JobRow& row = view.row;
    const bool final = engine::is_final(row.state);
    std::string note = view.waiting_for;
    if (note.empty()) note = row.reason;
    if (note.empty()) note = row.error.substr(0, row.error.find('\n'));
    return {row.job.id,
            row.job.kind,
            row.job.queue,
            std::string(engine::to_string(view.state)),
            row.job.key == row.job.id ? "" : row.job.key,
            std::to_string(row.attempts),
            observe::shown_time(final && row.finished_at ? *row.finished_at : row.run_at),
            std::move(note)};
}

/// Whether the filter can match at all, where only jobs of one state are asked for.
bool is_of(const engine::JobFilter& filter, std::optional<JobState> state) {
    return !state || filter.state == engine::to_string(*state);
}

engine::Page<JobView> read_page(CommandContext& context, const engine::JobFilter& filter) {
    std::optional<Store> store = open_if_exists(context);
    if (!store) return {};
    return store->read([&](engine::Tables& tables) { return observe::list_jobs(tables, filter); });
}

}  // namespace

int list_command(CommandContext& context, std::optional<JobState> state) {
    const engine::JobFilter filter = job_filter(context, state);
    engine::Page<JobView> page;
    if (is_of(filter, state)) page = read_page(context, filter);
    return print_page(context.out, page,
                      {"ID", "KIND", "QUEUE", "STATE", "KEY", "ATTEMPTS", "RUNS OR ENDED", "WHY"},
                      observe::write_item, table_row);
}

namespace {

constexpr std::string_view kRequested = "requested";

/// Waits so that no more than so many jobs a second are begun.
class Pace {
 public:
    explicit Pace(std::uint64_t per_second)
        : step_(std::chrono::nanoseconds(std::chrono::seconds(1)) / per_second) {}

    void step() {
        std::this_thread::sleep_until(next_);
        next_ = std::max(next_, Clock::now() - kCatchUp) + step_;
    }

 private:
    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::milliseconds kCatchUp{100};
    std::chrono::nanoseconds step_;
    Clock::time_point next_ = Clock::now();
};

/// What became of one job: why it was refused, or the answer.
struct Verdict {
    std::optional<Error> refusal;
    std::string_view status;
    std::optional<JobState> state;
};

Verdict judge(const AdminReply& reply, const JobAction& action, const std::string& id) {
    Verdict verdict;
    if (reply.kind == AdminReply::Kind::kDone) {
        verdict.status = action.done;
        if (action.tells_state) verdict.state = reply.row->state;
    } else if (reply.kind == AdminReply::Kind::kRequested) {
        verdict.status = kRequested;
    } else {
        verdict.refusal = refusal_of(reply, action.verb, id);
    }
    return verdict;
}

/// An action refuses before it writes, so that the transaction may go on with the next job.
Verdict apply(engine::Tables& tables, const std::string& ns, const JobAction& action,
              const std::string& id, const std::string& who) {
    AdminReply reply;
    reply.kind = AdminReply::Kind::kNotFound;
    if (!observe::find_job(tables, ns, id)) return judge(reply, action, id);
    try {
        reply = action.apply(tables, id, who);
    } catch (const Failure& failure) {
        if (failure.error().code != ErrorCode::kConflict) throw;
        return {failure.error(), {}, {}};
    }
    return judge(reply, action, id);
}

/// Runs one action over many jobs and reports each.
class BulkRun {
 public:
    BulkRun(CommandContext& context, const JobAction& action)
        : context_(context),
          action_(action),
          who_(acting_person(context.args)),
          dry_(context.args.flag("dry-run")),
          json_(buffer_) {
        if (const auto rate = parse_rate(context.args)) pace_.emplace(*rate);
        json_.begin_object().field("items").begin_array();
    }

    void run(Store& store, const std::vector<std::string>& ids) {
        if (dry_) {
            for (const std::string& id : ids)
                report(id, {{}, "matched", {}});
        } else if (!pace_) {
            run_group(store, ids);
        } else {
            for (const std::string& id : ids) {
                pace_->step();
                run_group(store, {id});
            }
        }
    }

    int finish() {
        json_.end_array().field("matched", matched_).field("done", matched_ - refused_);
        json_.field("refused", refused_).field("dry_run", dry_).end_object();
        if (context_.out.json()) {
            context_.out.line(buffer_);
            return status_;
        }
        context_.out.flush();
        const std::string word =
            dry_ ? fmt::format("would {}", action_.verb) : std::string(action_.done);
        std::string text = fmt::format("{} {} jobs", word, matched_ - refused_);
        if (requested_ > 0) text += fmt::format(", {} of them by asking their workers", requested_);
        if (refused_ > 0) text += fmt::format("; {} were refused", refused_);
        context_.out.note(text);
        return status_;
    }

 private:
    /// One transaction for all of them.
    void run_group(Store& store, const std::vector<std::string>& ids) {
        const auto verdicts = store.transact([&](engine::Tables& tables) {
            std::vector<Verdict> out;
            for (const std::string& id : ids)
                out.push_back(apply(tables, context_.ns(), action_, id, who_));
            return out;
        });
        for (std::size_t i = 0; i < ids.size(); ++i)
            report(ids[i], verdicts[i]);
    }

    void report(const std::string& id, const Verdict& verdict) {
        const auto& refusal = verdict.refusal;
        ++matched_;
        if (verdict.status == kRequested) ++requested_;
        if (refusal) {
            ++refused_;
            if (status_ == kExitDone) status_ = exit_status(refusal->code);
        }
        json_.begin_object().field("id", id);
        json_.field("status", refusal ? "refused" : verdict.status).field("error");
        refusal ? json_.value(refusal->message) : json_.value(nullptr);
        json_.end_object();
        if (context_.out.json()) {
            context_.out.bytes(buffer_);
            buffer_.clear();
            return;
        }
        buffer_.clear();
        refusal ? context_.out.note(refusal->message) : context_.out.line(id);
    }

    CommandContext& context_;
    const JobAction& action_;
    std::string who_;
    bool dry_;
    std::optional<Pace> pace_;
    std::string buffer_;
    base::JsonWriter json_;
    std::uint64_t matched_ = 0;
    std::uint64_t requested_ = 0;
    std::uint64_t refused_ = 0;
    int status_ = kExitDone;
};

int act_on_one(CommandContext& context, const JobAction& action, const std::string& id) {
    Store store = open_store(context, OpenMode::kExisting);
    const std::string who = acting_person(context.args);
    const Verdict verdict = store.transact(
        [&](engine::Tables& tables) { return apply(tables, context.ns(), action, id, who); });
    if (verdict.refusal) throw Failure(*verdict.refusal);
    if (context.out.json()) {
        std::string document;
        base::JsonWriter json(document);
        json.begin_object().field("id", id).field("status", verdict.status);
        if (verdict.state) json.field("state", engine::to_string(*verdict.state));
        json.end_object();
        context.out.line(document);
        return kExitDone;
    }
    context.out.line(id);
    context.out.flush();
    if (verdict.status == kRequested) {
        context.out.note(fmt::format("job {} runs: its worker has been asked", id));
    } else {
        const std::string now =
            verdict.state ? fmt::format(": it is {} now", engine::to_string(*verdict.state)) : "";
        context.out.note(fmt::format("{} job {}{}", action.done, id, now));
    }
    return kExitDone;
}

/// Does it to every job of the filter, state by state where the filter names none.
int act_on_matching(CommandContext& context, const JobAction& action, engine::JobFilter filter,
                    std::vector<std::string> states) {
    constexpr std::size_t kPage = 500;
    if (filter.state) states = {*filter.state};
    Store store = open_store(context, OpenMode::kExisting);
    BulkRun bulk(context, action);
    filter.limit = kPage;
    for (const std::string& state : states) {
        filter.state = state;
        filter.after.clear();
        do {
            engine::Page<JobView> page = store.read(
                [&](engine::Tables& tables) { return observe::list_jobs(tables, filter); });
            std::vector<std::string> ids;
            for (JobView& view : page.items)
                ids.push_back(std::move(view.row.job.id));
            bulk.run(store, ids);
            filter.after = std::move(page.next);
        } while (!filter.after.empty());
    }
    return bulk.finish();
}

int act_on_filter(CommandContext& context, const JobAction& action) {
    if (action.destructive || action.bulk_destructive) {
        confirm(context, fmt::format("{} every job that matches the filters", action.verb));
    }
    const engine::JobFilter filter = job_filter(context, action.state);
    if (!is_of(filter, action.state)) {
        throw Failure(
            base::usage_error(fmt::format("--state {} does not go with a command about {} jobs",
                                          *filter.state, engine::to_string(*action.state)),
                              "sekali job list shows jobs of every state"));
    }
    return act_on_matching(context, action, filter, {"scheduled", "ready", "waiting", "running"});
}

}  // namespace

int purge_queue(CommandContext& context, const std::string& queue) {
    confirm(context, fmt::format("purge queue {}", base::quoted(queue)));
    const JobAction action{
        .verb = "purge",
        .done = "purged",
        .state = std::nullopt,
        .apply = [](engine::Tables& tables, std::string_view id, std::string_view who) {
            return engine::cancel_job(tables, id, who, "purged");
        }};
    engine::JobFilter filter = job_filter(context);
    filter.queue = queue;
    return act_on_matching(context, action, std::move(filter), {"scheduled", "ready", "waiting"});
}

int job_action_command(CommandContext& context, const JobAction& action) {
    const std::vector<std::string>& ids = context.args.positionals();
    const Arguments& args = context.args;
    const bool filtered =
        args.has("state") || args.has("kind") || args.has("queue") || args.has("key");
    if (ids.empty() && !filtered) {
        throw Failure(base::usage_error(
            fmt::format("{} needs job ids or a filter; it never means all jobs", action.verb),
            "filters are --state --kind --queue --key"));
    }
    if (!ids.empty() && filtered) {
        throw Failure(base::usage_error("job ids and filters are both given", "choose one"));
    }
    if (filtered) return act_on_filter(context, action);
    if (action.destructive) confirm(context, fmt::format("{} job {}", action.verb, ids.front()));
    if (ids.size() == 1 && !args.flag("dry-run")) return act_on_one(context, action, ids.front());
    Store store = open_store(context, OpenMode::kExisting);
    BulkRun bulk(context, action);
    bulk.run(store, ids);
    return bulk.finish();
}

}  // namespace sekali::cli
