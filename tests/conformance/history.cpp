#include "conformance/history.hpp"

#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "conformance/ports_of.hpp"
#include "conformance/row_text.hpp"

namespace sekali::conformance {
namespace {

using namespace std::chrono_literals;
using engine::Tables;

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

}  // namespace

void showValue(const Op& op, std::ostream& out) {
    out << "Op{" << static_cast<int>(op.what) << ", " << op.a << ", " << op.b << ", " << op.c
        << "}";
}

void History::everywhere(const std::function<std::string(Tables&)>& work) {
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
}

void History::compare_rows() {
    everywhere([ns = ns_](Tables& tables) { return text_of(tables, ns); });
}

std::string History::job_id(int number) const {
    return prefix_ + "j" + std::to_string(jobs_ == 0 ? 0 : number % jobs_);
}

std::string History::worker(int number) const {
    return prefix_ + pick("w", number, 3) + "." + std::to_string(deaths_);
}

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
    everywhere([&](Tables& tables) { return text_of(enqueue(tables, request)); });
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
    everywhere([&](Tables& tables) {
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
    everywhere([&](Tables& tables) {
        const auto before = tables.record({ns_, claimed.request.job.kind, claimed.request.job.key});
        reply = engine::begin(tables, request);
        witness_.began(before, request, reply);
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
    everywhere([&](Tables& tables) {
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
    everywhere([&](Tables& tables) {
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
    everywhere([&](Tables& tables) {
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
            everywhere([&](Tables& tables) {
                engine::Renew request;
                request.run = claimed.ref;
                request.lease = 15s;
                request.look = op.b % 4 == 0;
                return text_of(renew(tables, request));
            });
            return;
        case Op::What::kStep:
            everywhere([&](Tables& tables) {
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
            everywhere([&](Tables& tables) {
                const engine::StepResult request{claimed.ref, pick("step ", op.b, 3), "receipt"};
                return std::string(step_result(tables, request) ? "kept" : "late");
            });
            return;
        case Op::What::kAnswer:
            everywhere([&](Tables& tables) {
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
            everywhere([&](Tables& tables) {
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
            everywhere([&](Tables& tables) {
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
            everywhere([&](Tables& tables) {
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
            everywhere([&](Tables& tables) {
                const engine::PruneReply reply = prune(tables, ns_, 10min, 1000);
                return std::to_string(reply.records) + " " + std::to_string(reply.history);
            });
    }
}

void History::play(const Op& op) {
    switch (op.what) {
        case Op::What::kEnqueue:
            play_enqueue(op);
            break;
        case Op::What::kClaim:
            play_claim(op);
            break;
        case Op::What::kLock:
            play_lock(op);
            break;
        case Op::What::kPeople:
            // It may drop a dead letter.
            witness_.expect_removals();
            play_people(op);
            break;
        case Op::What::kBegin:
        case Op::What::kSettle:
        case Op::What::kRenew:
        case Op::What::kStep:
        case Op::What::kStepDone:
        case Op::What::kAnswer:
        case Op::What::kGiveBack:
            play_run(op);
            break;
        case Op::What::kPrune:
            witness_.expect_removals();
            play_store(op);
            break;
        default:
            play_store(op);
    }
    run_in(*stores_.front(), [&](Tables& tables) { witness_.look(tables); });
}

bool History::all_ended() {
    bool ended = true;
    run_in(*stores_.front(), [&](Tables& tables) {
        engine::JobFilter filter;
        filter.ns = ns_;
        filter.limit = 100'000;
        for (const engine::JobRow& row : tables.list_jobs(filter).items) {
            ended = ended && is_final(row.state);
        }
    });
    return ended;
}

void History::finish_round() {
    everywhere([&](Tables& tables) {
        engine::Recover request;
        request.ns = ns_;
        request.worker = prefix_ + "finisher";
        request.kinds = {"charge", "mail"};
        request.may_take_over = true;
        return std::to_string(engine::recover(tables, request).jobs);
    });
    const std::size_t first = claims_.size();
    Op everything;
    everything.b = 1;
    everything.c = 3;
    play_claim(everything);
    for (std::size_t i = first; i < claims_.size(); ++i) {
        Claimed& claimed = claims_[i];
        // A kind whose effects are in its commit, under rerun, without a refused lock.
        Op begin;
        begin.a = 1;
        begin.b = 2;
        begin.c = 3;
        play_begin(claimed, begin);
        if (claimed.ref.epoch == 0) continue;
        Op answered;
        answered.what = Op::What::kAnswer;
        answered.a = static_cast<int>(claims_.size() - 1 - i);
        answered.b = 1;
        play_run(answered);
        Op success;
        success.a = 1;
        play_settle(claimed, success);
    }
    everywhere([&](Tables& tables) {
        engine::JobFilter held;
        held.ns = ns_;
        held.state = "held";
        std::string resolved;
        for (const engine::JobRow& row : tables.list_jobs(held).items) {
            engine::Resolution resolution;
            resolution.kind = engine::Resolution::Kind::kDead;
            resolved += text_of(resolve_held(tables, row.job.id, resolution, "operator"));
        }
        return resolved;
    });
    run_in(*stores_.front(), [&](Tables& tables) { witness_.look(tables); });
    for (auto& store : stores_)
        store->advance(16s);
}

void History::finish() {
    everywhere([&](Tables& tables) {
        pause_queue(tables, ns_, "default", false);
        pause_queue(tables, ns_, "other", false);
        return std::string{};
    });
    // Bounded: each round ends a job of every line, and no lease, delay or reservation outlives a
    // few.
    constexpr int kRounds = 200;
    for (int round = 0; round < kRounds; ++round) {
        if (all_ended()) return;
        finish_round();
    }
    std::string left;
    run_in(*stores_.front(), [&](Tables& tables) { left = text_of(tables, ns_); });
    RC_FAIL("G1 this never ends:\n" + left);
}

}  // namespace sekali::conformance
