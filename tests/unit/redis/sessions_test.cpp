#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "backends/redis/command_session.hpp"
#include "backends/redis/subscriber_session.hpp"
#include "unit/redis/reply_text.hpp"

namespace sekali::redis {
namespace {

using namespace std::chrono_literals;

const TimePoint kStart{1h};

std::string request(const std::vector<std::string_view>& words) {
    std::string bytes;
    append_request(bytes, words);
    return bytes;
}

/// A session whose handshake is over, and what became of its calls.
class Session {
 public:
    Session() : session(Login{}, kStart + 1s) {
        static_cast<void>(session.take_output());
        session.received("+PONG\r\n");
    }

    void send(std::vector<std::string> words, const Script* script = nullptr,
              TimePoint deadline = kStart + 1s) {
        Call call;
        call.words = std::move(words);
        call.script = script;
        call.deadline = deadline;
        call.done = [this](Result<Reply> reply) { answers.push_back(std::move(reply)); };
        session.send(std::move(call));
    }
    void received(const std::string& bytes) {
        session.received(bytes);
        deliver();
    }
    void deliver() {
        for (auto& [done, reply] : session.take_answers())
            done(std::move(reply));
    }

    CommandSession session;
    std::vector<Result<Reply>> answers;
};

TEST(CommandSession, LogsInBeforeAnythingElse) {
    CommandSession session({.user = "alice", .password = "pw", .db = 2}, kStart + 1s);
    EXPECT_EQ(session.take_output(),
              request({"AUTH", "alice", "pw"}) + request({"SELECT", "2"}) + request({"PING"}));
    session.received("+OK\r\n+OK\r\n");
    EXPECT_FALSE(session.ready());
    session.received("+PONG\r\n");
    EXPECT_TRUE(session.ready());
}

TEST(CommandSession, ALoginThatFailsTellsNothingOfThePassword) {
    for (const char* reply : {"WRONGPASS invalid username-password pair or user is disabled.",
                              "ERR unknown command 'AUTH', with args beginning with: 'hunter2'",
                              "ERR AUTH <password> called without any password configured"}) {
        CommandSession session({.password = "hunter2"}, kStart + 1s);
        session.received(encoded(error_reply(reply)));
        ASSERT_TRUE(session.failure()) << reply;
        EXPECT_EQ(session.failure()->code, ErrorCode::kRefused);
        EXPECT_EQ(session.failure()->message.find("hunter2"), std::string::npos);
    }
}

TEST(CommandSession, C03_AServerThatLoadsIsNotReady) {
    CommandSession session({}, kStart + 1s);
    session.received("-LOADING Redis is loading the dataset in memory\r\n");
    EXPECT_FALSE(session.ready());
    ASSERT_TRUE(session.failure());
    EXPECT_EQ(session.failure()->backend_code, "LOADING");
}

TEST(CommandSession, AReplicaIsRefusedWhereAPrimaryIsWanted) {
    CommandSession session({.primary_only = true}, kStart + 1s);
    session.received(encoded(array_reply({string_reply("slave"), string_reply("h")})) +
                     "+PONG\r\n");
    EXPECT_TRUE(session.failure());
}

TEST(CommandSession, AnswersInTheOrderOfTheRequestsWhereverTheBytesAreCut) {
    std::mt19937 random(11);
    for (int round = 0; round < 100; ++round) {
        Session s;
        std::string bytes;
        std::vector<Reply> replies;
        for (int i = 0; i < 30; ++i) {
            s.send({"GET", std::to_string(i)});
            Reply reply = random_reply(random);
            if (reply.is_error()) reply.type = Reply::Type::kStatus;
            bytes += encoded(reply);
            replies.push_back(std::move(reply));
        }
        in_pieces(random, bytes, [&](std::string_view piece) { s.received(std::string(piece)); });
        ASSERT_EQ(s.answers.size(), replies.size());
        for (std::size_t i = 0; i < replies.size(); ++i)
            EXPECT_EQ(*s.answers[i], replies[i]);
    }
}

TEST(CommandSession, AScriptGoesWholeOnceAndByNameAfterwards) {
    const Script script("return 1");
    Session s;
    s.send({"0"}, &script);
    s.send({"0"}, &script);
    EXPECT_EQ(s.session.take_output(),
              request({"EVAL", "return 1", "0"}) + request({"EVALSHA", script.sha(), "0"}));
    EXPECT_EQ(script.sha(), "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
}

TEST(CommandSession, AForgottenScriptIsSentAgainInTheMiddleOfAPipeline) {
    const Script script("return 1");
    Session s;
    s.send({"0"}, &script);
    s.received(":1\r\n");
    static_cast<void>(s.session.take_output());
    s.send({"0", "a"}, &script);
    s.send({"GET", "k"});
    s.send({"0", "b"}, &script);
    static_cast<void>(s.session.take_output());
    s.received("-NOSCRIPT No matching script.\r\n+between\r\n-NOSCRIPT No matching script.\r\n");
    EXPECT_EQ(s.session.take_output(),
              request({"EVAL", "return 1", "0", "a"}) + request({"EVAL", "return 1", "0", "b"}));
    ASSERT_EQ(s.answers.size(), 2U);
    s.received(":2\r\n:3\r\n");
    ASSERT_EQ(s.answers.size(), 4U);
    EXPECT_EQ(s.answers[1]->text, "between");
    EXPECT_EQ(s.answers[2]->integer, 2);
    EXPECT_EQ(s.answers[3]->integer, 3);
}

TEST(CommandSession, C06_AfterATimeoutNoReplyIsReadAsAnothers) {
    Session s;
    s.send({"GET", "slow"}, nullptr, kStart + 100ms);
    s.send({"GET", "other"}, nullptr, kStart + 900ms);
    EXPECT_EQ(s.session.next_deadline(), kStart + 100ms);
    s.session.advance(kStart + 99ms);
    EXPECT_FALSE(s.session.failure());
    s.session.advance(kStart + 100ms);
    s.deliver();
    ASSERT_TRUE(s.session.failure());
    ASSERT_EQ(s.answers.size(), 2U);
    for (const auto& answer : s.answers) {
        ASSERT_FALSE(answer.ok());
        EXPECT_EQ(answer.error().applied, Applied::kMaybe);
        EXPECT_TRUE(answer.error().retryable);
    }
    s.received("+late\r\n+later\r\n");
    EXPECT_EQ(s.answers.size(), 2U);
}

TEST(CommandSession, TheEarliestDeadlineCountsWhateverTheOrder) {
    Session s;
    s.send({"A"}, nullptr, kStart + 900ms);
    s.send({"B"}, nullptr, kStart + 100ms);
    EXPECT_EQ(s.session.next_deadline(), kStart + 100ms);
    s.received("+a\r\n");
    EXPECT_EQ(s.session.next_deadline(), kStart + 100ms);
    s.received("+b\r\n");
    EXPECT_EQ(s.session.next_deadline(), std::nullopt);
}

TEST(CommandSession, ALostConnectionLeavesNobodyWithoutAnAnswer) {
    Session s;
    for (int i = 0; i < 5; ++i)
        s.send({"GET", "k"});
    s.received("+ok\r\n");
    s.session.fail({.message = "cut"});
    s.deliver();
    ASSERT_EQ(s.answers.size(), 5U);
    EXPECT_TRUE(s.answers[0].ok());
    for (std::size_t i = 1; i < 5; ++i)
        EXPECT_EQ(s.answers[i].error().applied, Applied::kMaybe);
}

TEST(CommandSession, C02_AReplicaIsLeft) {
    Session s;
    s.send({"SET", "k", "v"});
    s.send({"SET", "k", "v"});
    s.received("-READONLY You can't write against a read only replica.\r\n");
    ASSERT_EQ(s.answers.size(), 2U);
    EXPECT_EQ(s.answers[0].error().applied, Applied::kNo);
    EXPECT_EQ(s.answers[1].error().applied, Applied::kMaybe);
    EXPECT_TRUE(s.session.failure());
}

TEST(CommandSession, AnAnswerThatNobodyAskedForEndsTheSession) {
    Session s;
    s.received("+what\r\n");
    EXPECT_TRUE(s.session.failure());
}

TEST(CommandSession, AskingGoesBeforeItsCallAndItsReplyIsNobodys) {
    Session s;
    Call call;
    call.words = {"GET", "k"};
    call.asking = true;
    call.deadline = kStart + 1s;
    call.done = [&](Result<Reply> reply) { s.answers.push_back(std::move(reply)); };
    s.session.send(std::move(call));
    EXPECT_EQ(s.session.take_output(), request({"ASKING"}) + request({"GET", "k"}));
    s.received("+OK\r\n$1\r\nv\r\n");
    ASSERT_EQ(s.answers.size(), 1U);
    EXPECT_EQ(s.answers[0]->text, "v");
}

TEST(SubscriberSession, TellsOfSubscriptionsAndMessages) {
    std::mt19937 random(3);
    SubscriberSession session({}, false, kStart, 1s);
    session.received("+PONG\r\n", kStart);
    ASSERT_TRUE(session.ready());
    session.subscribe("c");
    const std::string bytes =
        encoded(array_reply({string_reply("subscribe"),
                             string_reply("c"),
                             {.type = Reply::Type::kInteger, .integer = 1}})) +
        encoded(array_reply({string_reply("message"), string_reply("c"), string_reply("0")}));
    in_pieces(random, bytes, [&](std::string_view piece) { session.received(piece, kStart); });
    const auto events = session.take_events();
    ASSERT_EQ(events.size(), 2U);
    EXPECT_EQ(events[0].kind, SubscriberEvent::Kind::kSubscribed);
    EXPECT_EQ(events[1].kind, SubscriberEvent::Kind::kMessage);
    EXPECT_EQ(events[1].channel, "c");
    EXPECT_EQ(events[1].message, "0");
}

TEST(SubscriberSession, C05_ASilentPeerIsNoticed) {
    SubscriberSession session({}, false, kStart, 1s);
    session.received("+PONG\r\n", kStart);
    static_cast<void>(session.take_output());
    TimePoint now = session.next_deadline();
    session.advance(now);
    EXPECT_EQ(session.take_output(), request({"PING"}));
    session.received(encoded(array_reply({string_reply("pong"), string_reply("")})), now);
    now = session.next_deadline();
    session.advance(now);
    EXPECT_FALSE(session.failure());
    session.advance(session.next_deadline());
    EXPECT_TRUE(session.failure());
}

TEST(SubscriberSession, AServerThatNeverSaysHelloIsNoticed) {
    SubscriberSession session({}, false, kStart, 1s);
    session.advance(kStart + 1s);
    EXPECT_TRUE(session.failure());
}

}  // namespace
}  // namespace sekali::redis
