#include "engine/ops_internal.hpp"

namespace sekali::engine {
namespace {

/// The record of a run that may still write, or nothing.
std::optional<RecordRow> own_record(Tables& tables, const RunRef& run) {
    auto record = tables.record(run.record);
    if (!record || record->state != RecordState::kProcessing || record->owner != run.worker ||
        record->epoch != run.epoch || record->delivery != run.delivery) {
        return std::nullopt;
    }
    return record;
}

StepIntentReply reply_of(StepIntentReply::Kind kind, std::string result = {}) {
    return StepIntentReply{kind, std::move(result)};
}

/// What to do about a step that an earlier run began and never answered.
StepIntentReply::Kind judge_open_step(const RecordRow& record, const StepIntent& request) {
    if (!record.marked || request.probe_said_no) return StepIntentReply::Kind::kRun;
    switch (record.on_unknown) {
        case OnUnknown::kRerun:
            return StepIntentReply::Kind::kRun;
        case OnUnknown::kProbe:
            return request.has_probe ? StepIntentReply::Kind::kAsk : StepIntentReply::Kind::kHold;
        case OnUnknown::kHold:
            break;
    }
    return StepIntentReply::Kind::kHold;
}

}  // namespace

StepIntentReply step_intent(Tables& tables, const StepIntent& request) {
    auto record = own_record(tables, request.run);
    if (!record) return reply_of(StepIntentReply::Kind::kSuperseded);
    const std::vector<StepRow> steps = tables.steps(record->id);
    StepRow step;
    step.record = record->id;
    step.name = request.name;
    step.order = static_cast<std::int32_t>(steps.size());
    bool known = false;
    for (const StepRow& row : steps) {
        if (row.name != request.name) continue;
        step = row;
        known = true;
    }
    const bool repeated = known && step.epoch == request.run.epoch && step.call == request.call;
    if (known && step.epoch == request.run.epoch && !repeated) {
        return reply_of(StepIntentReply::Kind::kUsedTwice);
    }
    if (known && !step.done && !repeated) {
        const auto kind = judge_open_step(*record, request);
        if (kind != StepIntentReply::Kind::kRun) return reply_of(kind);
    }
    step.epoch = request.run.epoch;
    step.call = request.call;
    tables.put_step(step);
    if (step.done) return reply_of(StepIntentReply::Kind::kDone, step.result);
    return reply_of(StepIntentReply::Kind::kRun);
}

bool step_result(Tables& tables, const StepResult& request) {
    auto record = own_record(tables, request.run);
    if (!record) {
        JobRow evidence;
        evidence.job.id = request.run.job_id;
        evidence.job.ns = request.run.record.ns;
        evidence.job.kind = request.run.record.kind;
        evidence.job.key = request.run.record.key;
        evidence.epoch = request.run.epoch;
        note(tables, EventKind::kLateResult, evidence, request.run.worker,
             "step " + request.name + ": " + request.result);
        return false;
    }
    bool open_left = false;
    for (StepRow& step : tables.steps(record->id)) {
        if (step.name != request.name) {
            open_left = open_left || !step.done;
            continue;
        }
        if (step.done) return true;
        step.done = true;
        step.result = request.result;
        tables.put_step(step);
    }
    // Where effects happen in steps only, the last open step's answer is the answer.
    if (record->marked && record->effects == Effects::kSteps && !open_left) {
        record->marked = false;
        record->mark_cause.clear();
        tables.put_record(*record);
    }
    return true;
}

}  // namespace sekali::engine
