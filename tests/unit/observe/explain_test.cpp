#include "observe/explain.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "fixture.hpp"

namespace sekali::observe {
namespace {

using Kind = engine::Outcome::Kind;

class ExplainTest : public StoreFixture {
 protected:
    Explanation explain_key(const std::string& key, std::optional<std::string> kind = {}) {
        return transact([&](engine::Tables& tables) {
            return explain(tables, find_subject(tables, "default", key, kind));
        });
    }
    static std::vector<std::string> names(const Explanation& explanation) {
        std::vector<std::string> out;
        for (const Cause& cause : explanation.causes)
            out.push_back(cause.cause);
        return out;
    }
    static bool has_cause(const Explanation& explanation, const std::string& name) {
        const auto all = names(explanation);
        return std::find(all.begin(), all.end(), name) != all.end();
    }
    static std::vector<std::string> events(const Explanation& explanation) {
        std::vector<std::string> out;
        for (const TimelineEntry& entry : explanation.timeline)
            out.push_back(entry.event);
        return out;
    }
    void recover(const std::string& worker) {
        transact([&](engine::Tables& tables) {
            return engine::recover(tables, {.ns = "default",
                                            .worker = worker,
                                            .kinds = {"payment.charge"},
                                            .may_take_over = true});
        });
    }
    Error failure_of(const std::string& key, std::optional<std::string> kind = {}) {
        try {
            explain_key(key, std::move(kind));
        } catch (const Failure& failure) {
            return failure.error();
        }
        ADD_FAILURE() << "nothing was refused";
        return {};
    }
};

TEST_F(ExplainTest, OneJobDoneOnce) {
    enqueue({.key = "p:1"});
    const auto delivery = claim("w1").front();
    settle(delivery, begin(delivery, "w1"), {.kind = Kind::kSuccess, .result = "{}"});
    const Explanation found = explain_key("p:1");
    EXPECT_EQ(found.verdict, "p:1 (payment.charge) took effect once.");
    EXPECT_TRUE(found.causes.empty());
    EXPECT_EQ(events(found), (std::vector<std::string>{"enqueued", "start", "succeeded"}));
}

TEST_F(ExplainTest, ADuplicateIsTheProducersDoing) {
    enqueue({.key = "p:1"});
    enqueue({.key = "p:1"});
    for (const auto& delivery : claim("w1")) {
        const engine::RunRef run = begin(delivery, "w1");
        if (run.epoch != 0) settle(delivery, run, {.kind = Kind::kSuccess});
    }
    const Explanation found = explain_key("p:1");
    EXPECT_EQ(found.verdict, "p:1 (payment.charge) took effect once; it was enqueued twice.");
    EXPECT_TRUE(has_cause(found, "double_dispatch"));
    EXPECT_EQ(found.jobs.size(), 2U);
}

TEST_F(ExplainTest, ACrashBeforeTheRecordIsNotHidden) {
    enqueue({.key = "p:1"});
    begin(claim("w1").front(), "w1");
    store_.set_dead("w1");
    recover("w2");
    const auto delivery = claim("w2").front();
    settle(delivery, begin(delivery, "w2"), {.kind = Kind::kSuccess});
    const Explanation found = explain_key("p:1");
    EXPECT_NE(found.verdict.find("started twice"), std::string::npos) << found.verdict;
    EXPECT_NE(found.verdict.find("may have happened up to twice"), std::string::npos);
    EXPECT_TRUE(has_cause(found, "worker_crash"));
    EXPECT_TRUE(has_cause(found, "crash_before_record"));
    EXPECT_TRUE(has_cause(found, "non_atomic_effect"));
}

TEST_F(ExplainTest, ACrashUnderCommitTookEffectOnce) {
    policy_.effects = engine::Effects::kCommit;
    enqueue({.key = "p:1"});
    begin(claim("w1").front(), "w1");
    store_.set_dead("w1");
    recover("w2");
    const auto delivery = claim("w2").front();
    settle(delivery, begin(delivery, "w2"), {.kind = Kind::kSuccess});
    const Explanation found = explain_key("p:1");
    EXPECT_EQ(found.verdict, "p:1 (payment.charge) took effect once; it started twice.");
    EXPECT_TRUE(has_cause(found, "worker_crash"));
    EXPECT_FALSE(has_cause(found, "crash_before_record"));
}

TEST_F(ExplainTest, ALapsedLeaseIsNamed) {
    enqueue({.key = "p:1"});
    begin(claim("w1").front(), "w1");
    store_.advance(kLease + Millis{1});
    recover("w2");
    const auto delivery = claim("w2").front();
    settle(delivery, begin(delivery, "w2", true), {.kind = Kind::kSuccess});
    EXPECT_TRUE(has_cause(explain_key("p:1"), "lease_lapsed"));
}

TEST_F(ExplainTest, ARetryAfterAnErrorIsNamed) {
    enqueue({.key = "p:1"});
    auto delivery = claim("w1").front();
    settle(delivery, begin(delivery, "w1"), {.kind = Kind::kRetry, .error = "boom"});
    EXPECT_NE(explain_key("p:1").verdict.find("is tried again at"), std::string::npos);
    store_.advance(Millis{60'000});
    delivery = claim("w1").front();
    settle(delivery, begin(delivery, "w1"), {.kind = Kind::kSuccess});
    EXPECT_TRUE(has_cause(explain_key("p:1"), "retry_after_error"));
}

TEST_F(ExplainTest, APersonsRetryIsNamed) {
    const std::string id = enqueue({.key = "p:1"});
    auto delivery = claim("w1").front();
    settle(delivery, begin(delivery, "w1"), {.kind = Kind::kPermanent, .error = "no such card"});
    const Explanation dead = explain_key("p:1");
    EXPECT_NE(dead.verdict.find("is dead after 1 attempts"), std::string::npos) << dead.verdict;
    EXPECT_NE(dead.verdict.find("no such card"), std::string::npos);
    transact([&](engine::Tables& tables) { return engine::retry_dead(tables, id, "ana"); });
    EXPECT_TRUE(has_cause(explain_key("p:1"), "replay"));
}

TEST_F(ExplainTest, ARunThatGoesOnIsInTheTimeline) {
    const std::string id = enqueue({.key = "p:1"});
    begin(claim("w1").front(), "w1");
    const Explanation found = explain_key(id);
    EXPECT_EQ(found.key, "p:1");
    EXPECT_NE(found.verdict.find("is running on worker w1, attempt 1"), std::string::npos);
    EXPECT_EQ(events(found), (std::vector<std::string>{"enqueued", "start"}));
}

TEST_F(ExplainTest, AnUnstableKeyIsNamed) {
    enqueue({.payload = R"({"order":1})", .key = "p:1:12:00:01"});
    enqueue({.payload = R"({"order":1})", .key = "p:1:12:00:02"});
    enqueue({.payload = R"({"order":2})", .key = "p:2"});
    EXPECT_TRUE(has_cause(explain_key("p:1:12:00:01"), "unstable_key"));
    EXPECT_FALSE(has_cause(explain_key("p:2"), "unstable_key"));
}

// Scenario M04: why is it not running?
TEST_F(ExplainTest, M04NamesTheLockAndItsHolder) {
    const std::string holder = enqueue({.key = "p:1", .lock_key = "order:1"});
    enqueue({.key = "p:2", .lock_key = "order:1"});
    for (const auto& delivery : claim("w1"))
        begin(delivery, "w1");
    const std::string verdict = explain_key("p:2").verdict;
    EXPECT_NE(verdict.find("behind lock \"order:1\""), std::string::npos) << verdict;
    EXPECT_NE(verdict.find("\"p:1\""), std::string::npos) << verdict;
    EXPECT_NE(verdict.find(holder), std::string::npos) << verdict;
    EXPECT_NE(verdict.find("(in 15s)"), std::string::npos) << verdict;
}

TEST_F(ExplainTest, M04NamesTheKeyItWaitsFor) {
    const std::string holder = enqueue({.key = "p:1"});
    enqueue({.key = "p:1"});
    for (const auto& delivery : claim("w1"))
        begin(delivery, "w1");
    transact([&](engine::Tables& tables) {
        engine::JobRow row = *tables.job(holder);
        EXPECT_EQ(row.state, engine::JobState::kRunning);
        return true;
    });
    const Explanation found = explain_key("p:1");
    EXPECT_EQ(found.jobs.back().waiting_for, "key:p:1");
}

TEST_F(ExplainTest, M04NamesPauseDelayMissingHandlerAndMissingWorker) {
    enqueue({.key = "p:1"});
    EXPECT_NE(explain_key("p:1").verdict.find("no live worker serves queue"), std::string::npos);
    add_worker("w1");
    EXPECT_NE(explain_key("p:1").verdict.find("is ready"), std::string::npos);

    enqueue({.kind = "mail.send", .key = "m:1"});
    const std::string unhandled = explain_key("m:1").verdict;
    EXPECT_NE(unhandled.find("worker that handles mail.send"), std::string::npos) << unhandled;
    EXPECT_NE(unhandled.find("handle payment.charge"), std::string::npos) << unhandled;

    enqueue({.key = "p:2"}, Millis{90'000});
    EXPECT_NE(explain_key("p:2").verdict.find("is delayed until"), std::string::npos);
    EXPECT_NE(explain_key("p:2").verdict.find("(in 90s)"), std::string::npos);

    transact([](engine::Tables& tables) {
        engine::pause_queue(tables, "default", "default", true);
        return true;
    });
    EXPECT_NE(explain_key("p:1").verdict.find("sekali queue resume default"), std::string::npos);
}

TEST_F(ExplainTest, M04TellsHowToAnswerAHeldJob) {
    policy_.on_unknown = engine::OnUnknown::kHold;
    const std::string id = enqueue({.key = "p:1"});
    begin(claim("w1").front(), "w1");
    store_.set_dead("w1");
    recover("w2");
    begin(claim("w2").front(), "w2");
    const std::string verdict = explain_key("p:1").verdict;
    EXPECT_NE(verdict.find("sekali held resolve " + id), std::string::npos) << verdict;
}

TEST_F(ExplainTest, AnUnknownKeyNamesTheNearest) {
    enqueue({.key = "payment:1001"});
    const Error error = failure_of("payment:1002");
    EXPECT_EQ(error.code, ErrorCode::kNotFound);
    EXPECT_NE(error.hint.find("payment:1001"), std::string::npos) << error.hint;
    EXPECT_EQ(failure_of("payment:1001", "mail.send").code, ErrorCode::kNotFound);
}

TEST_F(ExplainTest, AKeyOfSeveralKindsMustBeChosen) {
    enqueue({.key = "p:1"});
    enqueue({.kind = "mail.send", .key = "p:1"});
    const Error error = failure_of("p:1");
    EXPECT_EQ(error.code, ErrorCode::kUsage);
    EXPECT_NE(error.message.find("mail.send"), std::string::npos);
    EXPECT_NE(error.message.find("payment.charge"), std::string::npos);
    EXPECT_EQ(explain_key("p:1", "mail.send").kind, "mail.send");
}

TEST_F(ExplainTest, TheDocumentHasExactlyTheFieldsOfTheContract) {
    enqueue({.key = "p:1"});
    enqueue({.key = "p:1"});
    const auto delivery = claim("w1").front();
    settle(delivery, begin(delivery, "w1"), {.kind = Kind::kSuccess});
    std::string text;
    base::JsonWriter json(text);
    write_explanation(json, explain_key("p:1"));
    const auto document = nlohmann::json::parse(text);
    const auto fields = [](const nlohmann::json& object) {
        std::vector<std::string> out;
        for (const auto& [name, value] : object.items())
            out.push_back(name);
        return out;
    };
    EXPECT_EQ(fields(document),
              (std::vector<std::string>{"causes", "jobs", "key", "kind", "timeline", "verdict"}));
    EXPECT_EQ(fields(document["timeline"][0]),
              (std::vector<std::string>{"at", "attempt", "detail", "epoch", "event", "job_id",
                                        "worker"}));
    EXPECT_EQ(fields(document["causes"][0]),
              (std::vector<std::string>{"advice", "cause", "evidence"}));
    EXPECT_EQ(document["jobs"].size(), 2U);
}

TEST_F(ExplainTest, HostileKeysStayOnTheirLine) {
    enqueue({.key = "p\n\x1b[2J", .lock_key = "l\r"});
    const std::string text = render_explanation(explain_key("p\n\x1b[2J"));
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_EQ(text.find('\r'), std::string::npos);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
}

}  // namespace
}  // namespace sekali::observe
