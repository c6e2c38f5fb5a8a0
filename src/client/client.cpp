#include "sekali/client.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <exception>
#include <future>
#include <optional>
#include <utility>

#include "base/errors.hpp"
#include "base/faults.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "client/client_core.hpp"
#include "client/outcomes.hpp"
#include "client/user.hpp"
#include "engine/operations.hpp"
#include "observe/job_view.hpp"

namespace sekali {
namespace {

using engine::AdminReply;
using engine::EnqueueReply;

/// How many jobs of `enqueue_many` share one task, so that a large call does not hold the store for
/// long at a time.
constexpr std::size_t kItemsPerTask = 500;
/// How many such tasks wait for the store while the next one is made ready.
constexpr std::size_t kPartsAhead = 3;

Error conflict(std::string message, std::string hint) {
    Error error;
    error.code = ErrorCode::kConflict;
    error.message = std::move(message);
    error.hint = std::move(hint);
    return error;
}

Error not_found(std::string_view id) {
    Error error;
    error.code = ErrorCode::kNotFound;
    error.message = fmt::format("there is no job {}", base::quoted(id));
    return error;
}

Result<Enqueued> answer_of(const EnqueueReply& reply, const engine::Envelope& job) {
    Enqueued answer{.id = reply.id};
    if (reply.winner) answer.winner = reply.winner->job.id;
    switch (reply.kind) {
        case EnqueueReply::Kind::kEnqueued:
            return answer;
        case EnqueueReply::Kind::kDuplicate:
            answer.status = Enqueued::Status::kDuplicate;
            return answer;
        case EnqueueReply::Kind::kReplaced:
            answer.status = Enqueued::Status::kReplaced;
            return answer;
        case EnqueueReply::Kind::kKeyReused:
            return conflict(
                fmt::format("key {} of kind {} is in use with another payload",
                            base::quoted(job.key), job.kind),
                "one idempotency key stands for one piece of work: use another key, or choose by "
                "`fingerprint` which fields tell payloads apart");
        case EnqueueReply::Kind::kIdTaken:
            break;
    }
    return conflict(fmt::format("id {} belongs to another job", job.id),
                    "a repeated enqueue must repeat kind, key and payload");
}

std::chrono::system_clock::time_point shown(engine::StoreTime time) {
    return std::chrono::system_clock::time_point(time.time_since_epoch());
}

JobInfo info_of(const observe::JobView& view, std::string payload) {
    const engine::JobRow& row = view.row;
    JobInfo info;
    info.id = row.job.id;
    info.kind = row.job.kind;
    info.queue = row.job.queue;
    info.state = engine::to_string(view.state);
    info.waiting_for = view.waiting_for;
    info.key = row.job.key;
    info.lock_key = row.job.lock_key;
    info.unique_key = row.job.unique_key;
    info.payload = std::move(payload);
    info.priority = row.job.priority;
    info.attempts = row.attempts;
    info.crashes = row.crashes;
    info.deliveries = row.deliveries;
    info.epoch = row.epoch;
    info.enqueued_at = shown(row.enqueued_at);
    info.run_at = shown(row.run_at);
    if (row.finished_at) info.finished_at = shown(*row.finished_at);
    info.worker = row.owner;
    info.result = row.result;
    info.error = row.error;
    info.reason = row.reason;
    return info;
}

Result<void> answer_of(const AdminReply& reply, std::string_view id) {
    switch (reply.kind) {
        case AdminReply::Kind::kDone:
        case AdminReply::Kind::kRequested:
            return {};
        case AdminReply::Kind::kNotFound:
            return not_found(id);
        case AdminReply::Kind::kSlotTaken:
            return conflict(fmt::format("job {} has the slot of its unique key now",
                                        reply.winner ? reply.winner->job.id : "another"),
                            "");
        case AdminReply::Kind::kWrongState:
            break;
    }
    return conflict(
        fmt::format("job {} is {}", id, reply.row ? engine::to_string(reply.row->state) : "gone"),
        "");
}

/// Some jobs of `enqueue_many`, on their way into the store. Waits for its answer before it goes.
class EnqueuePart {
 public:
    EnqueuePart() = default;
    EnqueuePart(const EnqueuePart&) = delete;
    EnqueuePart& operator=(const EnqueuePart&) = delete;
    ~EnqueuePart() {
        if (stored_.valid()) stored_.wait();
    }

    void add(Result<engine::EnqueueRequest> request) {
        if (request.ok()) {
            checked_.emplace_back();
            requests_.push_back(*std::move(request));
        } else {
            checked_.emplace_back(std::move(request).error());
        }
    }
    void start(client::Backend& backend) {
        stored_ = backend.start([this](engine::Tables& tables) {
            replies_.clear();
            engine::foresee(tables, requests_);
            for (const engine::EnqueueRequest& request : requests_)
                replies_.push_back(engine::enqueue(tables, request));
        });
    }
    /// Blocks until the jobs are durable.
    void answer_into(std::vector<Result<Enqueued>>& answers) {
        const Result<void> stored = stored_.get();
        std::size_t next = 0;
        for (const Result<void>& checked : checked_) {
            if (!checked.ok()) {
                answers.emplace_back(checked.error());
                continue;
            }
            const std::size_t place = next++;
            if (stored.ok()) {
                answers.push_back(answer_of(replies_[place], requests_[place].job));
            } else {
                answers.emplace_back(stored.error());
            }
        }
    }

 private:
    std::vector<Result<void>> checked_;             ///< One for each job that was asked for.
    std::vector<engine::EnqueueRequest> requests_;  ///< Of those that passed.
    std::vector<EnqueueReply> replies_;
    std::future<Result<void>> stored_;
};

/// Does something to a job of the client's own namespace.
Result<void> administer(
    internal::ClientCore& core, std::string_view id,
    const std::function<AdminReply(engine::Tables&, const engine::JobRow&)>& act) {
    AdminReply reply;
    const auto stored = core.backend().run([&](engine::Tables& tables) {
        auto row = tables.job(id);
        if (!row) row = tables.finished_job(id);
        const bool known = row && row->job.ns == core.scope().ns;
        reply = AdminReply{};
        reply.kind = AdminReply::Kind::kNotFound;
        if (known) reply = act(tables, *row);
    });
    return stored.ok() ? answer_of(reply, id) : stored;
}

}  // namespace

Result<Client> Client::open(std::string_view url, const ClientOptions& options) {
    if (auto fine = base::check_name("namespace", options.ns); !fine) return fine.error();
    auto backend = client::open_backend(url);
    if (!backend.ok()) return backend.error();
    return Client(std::make_shared<internal::ClientCore>(
        *std::move(backend),
        client::EnqueueScope{.ns = options.ns, .max_payload = options.max_payload}));
}

Result<Enqueued> Client::enqueue_raw(std::string_view kind, const Result<std::string>& payload,
                                     const EnqueueOptions& of_type, const EnqueueOptions& of_call) {
    if (!payload.ok()) return payload.error();
    const auto request =
        client::prepare_enqueue(core_->scope(), kind, *payload, client::merged(of_call, of_type));
    if (!request.ok()) return request.error();
    if (SEKALI_FAULT("enqueue.before")) return client::failed_by_test(Applied::kNo);
    EnqueueReply reply;
    const auto stored = core_->backend().run([&](engine::Tables& tables) {
        engine::foresee(tables, std::span(&*request, 1));
        reply = engine::enqueue(tables, *request);
    });
    if (!stored.ok()) return stored.error();
    if (SEKALI_FAULT("enqueue.after")) return client::failed_by_test();
    return answer_of(reply, request->job);
}

Result<Enqueued> Client::enqueue_in(Transaction& tx, std::string_view kind,
                                    const Result<std::string>& payload,
                                    const EnqueueOptions& of_type, const EnqueueOptions& of_call) {
    if (!payload.ok()) return payload.error();
    const auto request =
        client::prepare_enqueue(core_->scope(), kind, *payload, client::merged(of_call, of_type));
    if (!request.ok()) return request.error();
    try {
        engine::Tables& tables = internal::TransactionAccess::session(tx).tables();
        return answer_of(engine::enqueue(tables, *request), request->job);
    } catch (const Failure& failure) {
        return failure.error();
    }
}

std::vector<Result<Enqueued>> Client::enqueue_many(std::span<const RawJob> jobs,
                                                   const EnqueueOptions& options) {
    std::vector<Item> items;
    items.reserve(jobs.size());
    for (const RawJob& job : jobs)
        items.push_back({job.kind, job.payload, {}});
    return enqueue_items(std::move(items), options);
}

std::vector<Result<Enqueued>> Client::enqueue_items(std::vector<Item> items,
                                                    const EnqueueOptions& of_call) {
    std::vector<Result<Enqueued>> answers;
    answers.reserve(items.size());
    std::deque<EnqueuePart> parts;
    const auto finish_first = [&] {
        parts.front().answer_into(answers);
        parts.pop_front();
    };
    for (std::size_t begin = 0; begin < items.size(); begin += kItemsPerTask) {
        if (parts.size() == kPartsAhead) finish_first();
        EnqueuePart& part = parts.emplace_back();
        const std::size_t end = std::min(begin + kItemsPerTask, items.size());
        for (std::size_t i = begin; i < end; ++i) {
            Item& item = items[i];
            if (!item.payload.ok()) {
                part.add(item.payload.error());
                continue;
            }
            part.add(client::prepare_enqueue(core_->scope(), item.kind, *std::move(item.payload),
                                             client::merged(of_call, item.options)));
        }
        part.start(core_->backend());
    }
    while (!parts.empty())
        finish_first();
    return answers;
}

Result<JobInfo> Client::show(std::string_view id) {
    std::optional<JobInfo> found;
    const auto read = core_->backend().executor().read([&](engine::Tables& tables) {
        auto view = observe::find_job(tables, core_->scope().ns, id);
        if (view) found = info_of(*view, tables.payload(id));
    });
    if (!read.ok()) return read.error();
    if (!found) return not_found(id);
    return *std::move(found);
}

Result<void> Client::cancel(std::string_view id, std::string_view reason) {
    return administer(*core_, id, [&](engine::Tables& tables, const engine::JobRow&) {
        return engine::cancel_job(tables, id, client::user_name(), reason);
    });
}

Result<void> Client::retry(std::string_view id) {
    return administer(*core_, id, [&](engine::Tables& tables, const engine::JobRow& row) {
        return row.state == engine::JobState::kDead
                   ? engine::retry_dead(tables, id, client::user_name())
                   : engine::retry_now(tables, id, client::user_name());
    });
}

Result<void> Client::transact(const std::function<void(Transaction&)>& work) {
    std::exception_ptr thrown;
    const auto stored = core_->backend().run([&](engine::Tables& tables) {
        thrown = nullptr;
        const auto written = tables.run_effects([&](Transaction& tx) -> Result<void> {
            try {
                work(tx);
                return {};
            } catch (...) {
                thrown = std::current_exception();
                throw;
            }
        });
        written.value();
    });
    if (thrown) std::rethrow_exception(thrown);
    return stored;
}

const std::string& Client::ns() const {
    return core_->scope().ns;
}

}  // namespace sekali
