#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "conformance/backend.hpp"
#include "conformance/ports_of.hpp"
#include "conformance/row_text.hpp"
#include "engine/operations.hpp"

// Random histories on every store in lock step: the same answers, and the same rows afterwards.
namespace sekali::conformance {
namespace {

using namespace std::chrono_literals;
using engine::Tables;

/// What happens next. The numbers choose among few names, so that histories meet themselves.
struct Op {
    enum class What : std::uint8_t {
        kEnqueue,
        kClaim,
        kBegin,
        kSettle,
        kRenew,
        kStep,
        kStepDone,
        kAnswer,
        kGiveBack,
        kRecover,
        kHeartbeat,
        kKill,
        kAdvance,
        kLock,
        kPeople,
        kPrune,
    } what{};
    int a = 0;
    int b = 0;
    int c = 0;
};

void showValue(const Op& op, std::ostream& out) {
    out << "Op{" << static_cast<int>(op.what) << ", " << op.a << ", " << op.b << ", " << op.c
        << "}";
}

rc::Gen<Op> any_op() {
    using What = Op::What;
    const auto what = rc::gen::weightedElement<What>({{8, What::kEnqueue},
                                                      {10, What::kClaim},
                                                      {16, What::kBegin},
                                                      {14, What::kSettle},
                                                      {3, What::kRenew},
                                                      {5, What::kStep},
                                                      {4, What::kStepDone},
                                                      {3, What::kAnswer},
                                                      {2, What::kGiveBack},
                                                      {5, What::kRecover},
                                                      {2, What::kHeartbeat},
                                                      {2, What::kKill},
                                                      {6, What::kAdvance},
                                                      {4, What::kLock},
                                                      {8, What::kPeople},
                                                      {1, What::kPrune}});
    return rc::gen::build<Op>(rc::gen::set(&Op::what, what),
                              rc::gen::set(&Op::a, rc::gen::inRange(0, 60)),
                              rc::gen::set(&Op::b, rc::gen::inRange(0, 60)),
                              rc::gen::set(&Op::c, rc::gen::inRange(0, 60)));
}

std::string pick(const char* prefix, int number, int of) {
    return prefix + std::to_string(number % of);
}

/// The first line of each that the other has not.
std::string difference(const std::string& first, const std::string& second) {
    const auto ends = std::mismatch(first.begin(), first.end(), second.begin(), second.end());
    const auto line_at = [](const std::string& text, std::size_t at) {
        const std::size_t from = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
        return text.substr(from, text.find('\n', at) - from);
    };
    const auto at = static_cast<std::size_t>(ends.first - first.begin());
    return line_at(first, at) + "\n    differs from\n" + line_at(second, at);
}

/// A claim, and where it has got to by the answers so far.
struct Claimed {
    engine::Begin request;
    engine::RunRef ref;
};

class History {
 public:
    History(std::vector<std::unique_ptr<Backend>>& stores, int number)
        : stores_(stores),
          ns_("case-" + std::to_string(number)),
          prefix_(std::to_string(number) + "/") {}

    void play(const Op& op);
    void compare_rows() {
        both([ns = ns_](Tables& tables) { return text_of(tables, ns); });
    }

 private:
    /// Runs `work` on every store and returns the answer, which must be the same everywhere.
    std::string both(const std::function<std::string(Tables&)>& work) {
        std::string first;
        for (std::size_t i = 0; i < stores_.size(); ++i) {
            std::string answer;
            try {
                run_in(*stores_[i], [&](Tables& tables) { answer = work(tables); });
            } catch (const Failure& failure) {
                answer = "failure " + std::to_string(static_cast<int>(failure.error().code));
            }
            if (i == 0) first = answer;
            if (answer != first) RC_FAIL(difference(first, answer));
        }
        return first;
    }

    void play_enqueue(const Op& op);
    void play_claim(const Op& op);
    void play_begin(Claimed& claimed, const Op& op);
    void play_settle(const Claimed& claimed, const Op& op);
    void play_lock(const Op& op);
    void play_people(const Op& op);
    void play_run(const Op& op);
    void play_store(const Op& op);

    [[nodiscard]] engine::KindPolicy policy(const Op& op) const;
    [[nodiscard]] std::string job_id(int number) const {
        return prefix_ + "j" + std::to_string(jobs_ == 0 ? 0 : number % jobs_);
    }
    [[nodiscard]] std::string worker(int number) const {
        return prefix_ + pick("w", number, 3) + "." + std::to_string(deaths_);
    }

    std::vector<std::unique_ptr<Backend>>& stores_;
    std::string ns_;
    std::string prefix_;
    int jobs_ = 0;
    int deaths_ = 0;
    std::vector<Claimed> claims_;
};

engine::KindPolicy History::policy(const Op& op) const {
    engine::KindPolicy policy;
    policy.record = op.c % 11 == 0 ? engine::RecordMode::kNone : engine::RecordMode::kKept;
    policy.effects = static_cast<engine::Effects>(op.b % 3);
    policy.on_unknown = static_cast<engine::OnUnknown>(op.c % 3);
    policy.probe = static_cast<engine::KindPolicy::Probe>(op.a % 3);
    policy.on_busy = op.b % 7 == 0 ? engine::OnBusy::kFail : engine::OnBusy::kWait;
    if (op.b % 13 == 0) policy.on_busy = engine::OnBusy::kSkip;
    policy.max_crashes = 2;
    policy.retry.max_attempts = 3;
    policy.retry.base = 10s;
    policy.timeout = 20s;
    policy.grace = 5s;
    policy.keep = 10min;
    policy.whole_answer = op.a % 2 == 0;
    return policy;
}

void History::play_enqueue(const Op& op) {
    engine::EnqueueRequest request;
    engine::Envelope& job = request.job;
    const bool repeated = op.a % 17 == 0 && jobs_ > 0;
    job.id = repeated ? job_id(op.b) : prefix_ + "j" + std::to_string(jobs_++);
    job.ns = ns_;
    job.kind = op.c % 5 == 0 ? "mail" : "charge";
    job.queue = op.b % 5 == 0 ? "other" : "default";
    job.payload = pick("payload ", op.b, 9);
    job.key = op.a % 3 == 0 ? job.id : pick("k", op.a, 4);
    if (op.b % 3 != 0) job.lock_key = pick("l", op.b, 3);
    if (op.c % 4 == 0) job.unique_key = pick("u", op.a, 2);
    job.unique_until = op.a % 5 == 0 ? engine::UniqueUntil::kStart : engine::UniqueUntil::kEnd;
    job.priority = op.c % 7 == 0 ? 9 : 0;
    job.fingerprint_rule = "payload";
    job.fingerprint = op.b % 8 == 0 ? "of another payload" : "of the payload";
    if (op.c % 6 == 0) request.delay = engine::Millis{op.b * 1000};
    request.on_duplicate =
        op.b % 2 == 0 ? engine::OnDuplicate::kReplace : engine::OnDuplicate::kKeep;
    both([&](Tables& tables) { return text_of(enqueue(tables, request)); });
}

void History::play_claim(const Op& op) {
    engine::Claim request;
    request.spec.ns = ns_;
    request.spec.queues = {"default"};
    if (op.b % 4 != 0) request.spec.queues.push_back("other");
    request.spec.kinds = {"charge", "mail"};
    request.spec.limit = static_cast<std::size_t>(op.c % 4);
    request.worker = worker(op.a);
    request.lease = 15s;
    request.draining = op.b % 3 == 0;
    engine::Claimed reply;
    both([&](Tables& tables) {
        reply = engine::claim(tables, request);
        return text_of(reply);
    });
    for (const engine::Delivery& delivery : reply.deliveries) {
        Claimed claimed;
        claimed.request.job = delivery.row.job;
        claimed.ref.job_id = delivery.row.job.id;
        claimed.ref.record = {ns_, delivery.row.job.kind, delivery.row.job.key};
        claimed.ref.worker = request.worker;
        claimed.ref.delivery = delivery.row.deliveries;
        claimed.ref.lock_key = delivery.row.job.lock_key;
        claims_.push_back(std::move(claimed));
    }
}

void History::play_begin(Claimed& claimed, const Op& op) {
    engine::Begin& request = claimed.request;
    request.run = claimed.ref;
    request.run.epoch = request.run.fence = 0;
    request.policy = policy(op);
    if (request.policy.record == engine::RecordMode::kNone) request.run.record.key.clear();
    request.lease = 15s;
    request.may_take_over = op.c % 5 != 0;
    request.lock_token = claimed.ref.worker + "'s for " + claimed.ref.job_id;
    request.lock_refused = op.a % 19 == 0;
    engine::BeginReply reply;
    both([&](Tables& tables) {
        reply = engine::begin(tables, request);
        return text_of(reply);
    });
    if (const auto* started = std::get_if<engine::Started>(&reply)) {
        claimed.ref = request.run;
        claimed.ref.epoch = started->epoch;
        claimed.ref.fence = started->fence;
    }
}

void History::play_settle(const Claimed& claimed, const Op& op) {
    engine::Settle request;
    request.run = claimed.ref;
    request.job = claimed.request.job;
    request.policy = claimed.request.policy;
    // Half of all ends are successes.
    request.outcome.kind = op.b % 2 == 0 ? engine::Outcome::Kind::kSuccess
                                         : static_cast<engine::Outcome::Kind>((op.b / 2) % 9);
    request.outcome.result = pick("result ", op.c, 5);
    request.outcome.error = pick("error ", op.c, 3);
    request.outcome.reason = op.c % 3 == 0 ? "shutdown" : "";
    request.outcome.nothing_applied = op.c % 2 == 0;
    request.outcome.process_gone = op.c % 5 != 0;
    if (request.outcome.kind == engine::Outcome::Kind::kSnooze) request.outcome.delay = 30s;
    request.random = 0.5;
    both([&](Tables& tables) {
        if (op.a % 4 == 0) {
            request.effects = [&tables, &op](Transaction&) -> Result<void> {
                engine::QueueRow row;
                row.ns = "written by effects";
                row.name = pick("q", op.a, 5);
                tables.put_queue(row);
                if (op.a % 8 == 0) {
                    return Error{.code = ErrorCode::kRefused, .message = "constraint"};
                }
                return {};
            };
        }
        return text_of(settle(tables, request)) +
               (tables.queue("written by effects", pick("q", op.a, 5)) ? "written" : "");
    });
}

void History::play_lock(const Op& op) {
    const std::string name = pick("l", op.b, 3);
    const std::string owner = prefix_ + pick("shell ", op.c, 2);
    both([&](Tables& tables) {
        switch (op.a % 4) {
            case 0:
                return text_of(acquire_lock(tables, {ns_, name, owner, "token of " + owner, 20s}));
            case 1:
                return text_of(renew_lock(tables, {ns_, name, "token of " + owner, 20s}));
            case 2:
                return text_of(release_lock(tables, {ns_, name, "token of " + owner}));
            default:
                return std::string(break_lock(tables, ns_, name) ? "broken" : "free");
        }
    });
}

void History::play_people(const Op& op) {
    const std::string id = job_id(op.b);
    both([&](Tables& tables) {
        switch (op.a % 8) {
            case 0:
                return text_of(cancel_job(tables, id, "operator", "cancelled"));
            case 1:
                return text_of(retry_now(tables, id, "operator"));
            case 2:
            case 3:
                return text_of(retry_dead(tables, id, "operator"));
            case 4:
                return text_of(drop_dead(tables, id, "operator"));
            case 5: {
                engine::Resolution resolution;
                resolution.kind = static_cast<engine::Resolution::Kind>(op.c % 3);
                resolution.result = "by hand";
                return text_of(resolve_held(tables, id, resolution, "operator"));
            }
            case 6:
                return text_of(free_unique(tables, id, "operator"));
            default:
                pause_queue(tables, ns_, op.b % 2 == 0 ? "default" : "other", op.c % 3 == 0);
                return std::string{};
        }
    });
}

void History::play_run(const Op& op) {
    if (claims_.empty()) return;
    Claimed& claimed =
        claims_[claims_.size() - 1 - static_cast<std::size_t>(op.a) % claims_.size()];
    switch (op.what) {
        case Op::What::kBegin:
            return play_begin(claimed, op);
        case Op::What::kSettle:
            return play_settle(claimed, op);
        case Op::What::kRenew:
            both([&](Tables& tables) {
                engine::Renew request;
                request.run = claimed.ref;
                request.lease = 15s;
                request.look = op.b % 4 == 0;
                return text_of(renew(tables, request));
            });
            return;
        case Op::What::kStep:
            both([&](Tables& tables) {
                engine::StepIntent request;
                request.run = claimed.ref;
                request.name = pick("step ", op.b, 3);
                request.call = pick("call ", op.c, 2);
                request.has_probe = op.c % 3 == 0;
                request.probe_said_no = op.c % 7 == 0;
                return text_of(step_intent(tables, request));
            });
            return;
        case Op::What::kStepDone:
            both([&](Tables& tables) {
                const engine::StepResult request{claimed.ref, pick("step ", op.b, 3), "receipt"};
                return std::string(step_result(tables, request) ? "kept" : "late");
            });
            return;
        case Op::What::kAnswer:
            both([&](Tables& tables) {
                engine::Answer request;
                request.run = claimed.ref;
                request.job = claimed.request.job;
                request.policy = claimed.request.policy;
                request.kind = static_cast<engine::Answer::Kind>(op.b % 3);
                request.result = "probed";
                request.resolves_job = op.c % 2 == 0;
                const auto ended = answer(tables, request);
                return ended ? text_of(*ended) : std::string("goes on");
            });
            return;
        default:
            both([&](Tables& tables) {
                engine::Return request{claimed.ref, std::nullopt};
                if (op.b % 3 == 0) request.delay = engine::Millis{op.c * 500};
                give_back(tables, request);
                return std::string{};
            });
    }
}

void History::play_store(const Op& op) {
    switch (op.what) {
        case Op::What::kRecover:
            both([&](Tables& tables) {
                engine::Recover request;
                request.ns = ns_;
                request.worker = prefix_ + "recoverer";
                request.kinds = {"charge", "mail"};
                request.policies = {{"charge", policy(op)}};
                request.may_take_over = op.b % 4 != 0;
                const engine::Recovered reply = engine::recover(tables, request);
                return std::to_string(reply.jobs) + (reply.next_seq == 0 ? " and no more" : "");
            });
            return;
        case Op::What::kHeartbeat:
            both([&](Tables& tables) {
                engine::Heartbeat request;
                request.worker.id = worker(op.a);
                request.worker.ns = ns_;
                request.worker.queues = {"default"};
                request.lease = 15s;
                request.leave = op.b % 10 == 0;
                heartbeat(tables, request);
                return std::string{};
            });
            return;
        case Op::What::kKill: {
            // The dead stay dead, so their names are not used again.
            for (int i = 0; i < 3; ++i) {
                if (op.a % 4 == i || op.a % 4 == 3) {
                    for (auto& store : stores_)
                        store->set_fate(worker(i), engine::OwnerFate::kDead);
                }
            }
            ++deaths_;
            return;
        }
        case Op::What::kAdvance: {
            static constexpr std::array<engine::Millis, 6> kSteps{1ms, 2s, 5001ms, 15s, 40s, 11min};
            const engine::Millis by = kSteps.at(static_cast<std::size_t>(op.a) % kSteps.size());
            for (auto& store : stores_)
                store->advance(by);
            return;
        }
        default:
            both([&](Tables& tables) {
                const engine::PruneReply reply = prune(tables, ns_, 10min, 1000);
                return std::to_string(reply.records) + " " + std::to_string(reply.history);
            });
    }
}

void History::play(const Op& op) {
    switch (op.what) {
        case Op::What::kEnqueue:
            return play_enqueue(op);
        case Op::What::kClaim:
            return play_claim(op);
        case Op::What::kLock:
            return play_lock(op);
        case Op::What::kPeople:
            return play_people(op);
        case Op::What::kBegin:
        case Op::What::kSettle:
        case Op::What::kRenew:
        case Op::What::kStep:
        case Op::What::kStepDone:
        case Op::What::kAnswer:
        case Op::What::kGiveBack:
            return play_run(op);
        default:
            return play_store(op);
    }
}

TEST(Differential, EveryStoreGivesTheSameAnswersAndKeepsTheSameRows) {
    // Opening a store costs more than a history, so some share one, each in its own namespace.
    constexpr int kShare = 20;
    std::vector<std::unique_ptr<Backend>> stores;
    int cases = 0;
    const bool same = rc::check([&] {
        const auto ops = *rc::gen::resize(150, rc::gen::container<std::vector<Op>>(any_op()));
        if (cases % kShare == 0) {
            stores.clear();
            for (const BackendKind& kind : backends())
                stores.push_back(kind.make());
        }
        History history(stores, ++cases);
        int played = 0;
        for (const Op& op : ops) {
            history.play(op);
            if (++played % 10 == 0) history.compare_rows();
        }
        history.compare_rows();
    });
    EXPECT_TRUE(same);
}

}  // namespace
}  // namespace sekali::conformance
