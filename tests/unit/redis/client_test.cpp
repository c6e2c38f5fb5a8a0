#include "backends/redis/client.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <latch>
#include <thread>

#include "redis/redis_server.hpp"

namespace sekali::redis {
namespace {

using namespace std::chrono_literals;
using ::sekali::testing::ask;
using ::sekali::testing::RedisServer;

constexpr auto kPatience = 20s;

class RedisClientTest : public ::testing::Test {
 protected:
    std::unique_ptr<Client> client(const std::string& url) {
        const Address address = parse_address(url).value();
        std::shared_ptr<ssl_ctx_st> tls;
        if (address.tls) tls = make_tls_context(address).value();
        return std::make_unique<Client>(loop_, address, tls);
    }
    static Call command(std::vector<std::string> words) {
        Call call;
        call.words = std::move(words);
        return call;
    }
    Loop loop_;
};

TEST_F(RedisClientTest, ThreadsShareOneConnectionAndGetTheirOwnReplies) {
    RedisServer server;
    const auto shared = client(server.url());
    const Script echo("return {KEYS[1], ARGV[1]}");
    std::atomic<int> wrong = 0;
    {
        std::vector<std::jthread> threads;
        for (int thread = 0; thread < 8; ++thread) {
            threads.emplace_back([&, thread] {
                for (int i = 0; i < 300; ++i) {
                    const std::string key = std::to_string(thread) + "-" + std::to_string(i);
                    Call call = command({"1", key, "v" + key});
                    call.script = &echo;
                    const auto reply = ask(*shared, std::move(call));
                    if (!reply.ok() || reply->items.at(0).text != key ||
                        reply->items.at(1).text != "v" + key) {
                        ++wrong;
                    }
                }
            });
        }
    }
    EXPECT_EQ(wrong, 0);
    // This one's own connection is the second.
    const std::string info = server.ask({"INFO", "clients"}).text;
    EXPECT_NE(info.find("connected_clients:2\r\n"), std::string::npos) << info;
}

TEST_F(RedisClientTest, AFlushOfScriptsIsNotNoticed) {
    RedisServer server;
    const auto c = client(server.url());
    const Script script("return redis.call('incr', KEYS[1])");
    for (int i = 1; i <= 50; ++i) {
        if (i % 10 == 0) server.ask({"SCRIPT", "FLUSH", "SYNC"});
        Call call = command({"1", "n"});
        call.script = &script;
        EXPECT_EQ(ask(*c, std::move(call)).value().integer, i);
    }
}

TEST_F(RedisClientTest, NobodyThereIsSaidBeforeTheDeadline) {
    const auto c = client("redis+unix:/nonexistent/redis.sock");
    Call call = command({"PING"});
    call.timeout = 100ms;
    const auto reply = ask(*c, std::move(call));
    ASSERT_FALSE(reply.ok());
    EXPECT_EQ(reply.error().code, ErrorCode::kUnreachable);
    EXPECT_EQ(reply.error().applied, Applied::kNo);
    EXPECT_NE(reply.error().message.find("No such file"), std::string::npos)
        << reply.error().message;
}

TEST_F(RedisClientTest, ItComesBackWithTheServer) {
    RedisServer server;
    const auto c = client(server.url());
    ASSERT_TRUE(ask(*c, command({"PING"})).ok());
    server.stop();
    server.start();
    Call call = command({"PING"});
    call.timeout = 10s;
    auto reply = ask(*c, std::move(call));
    // Sent into the connection that just ended, or behind it.
    if (!reply.ok()) reply = ask(*c, command({"PING"}));
    EXPECT_TRUE(reply.ok());
}

TEST_F(RedisClientTest, C05_AFrozenServerEndsTheCallAtItsDeadlineAndTheConnectionWithIt) {
    RedisServer server;
    const auto c = client(server.url());
    ASSERT_TRUE(ask(*c, command({"SET", "k", "old"})).ok());
    server.freeze();
    Call call = command({"GET", "k"});
    call.timeout = 50ms;
    const auto lost = ask(*c, std::move(call));
    ASSERT_FALSE(lost.ok());
    EXPECT_EQ(lost.error().applied, Applied::kMaybe);
    server.thaw();
    const auto reply = ask(*c, command({"ECHO", "mine"}));
    ASSERT_TRUE(reply.ok()) << reply.error().message;
    EXPECT_EQ(reply->text, "mine");
}

TEST_F(RedisClientTest, PasswordsOpenAndNeverShow) {
    RedisServer server({"--requirepass", "hunter2"});
    EXPECT_TRUE(
        ask(*client("redis+unix://:hunter2@" + server.socket_path()), command({"PING"})).ok());
    for (const std::string login : {"", "//:wrong-hunter2@", "//nobody:wrong-hunter2@"}) {
        Call call = command({"PING"});
        call.timeout = 200ms;
        const auto reply =
            ask(*client("redis+unix:" + login + server.socket_path()), std::move(call));
        ASSERT_FALSE(reply.ok()) << login;
        EXPECT_EQ(reply.error().code, ErrorCode::kRefused) << reply.error().message;
        EXPECT_EQ(reply.error().message.find("hunter2"), std::string::npos);
    }
}

TEST_F(RedisClientTest, AnAclUserAndADatabaseNumber) {
    RedisServer server;
    server.ask({"ACL", "SETUSER", "alice", "on", ">pw", "~*", "+@all"});
    const auto c = client("redis+unix://alice:pw@" + server.socket_path() + "?db=3");
    EXPECT_EQ(ask(*c, command({"ACL", "WHOAMI"})).value().text, "alice");
    ask(*c, command({"SET", "k", "v"})).value();
    EXPECT_TRUE(server.ask({"GET", "k"}).is(Reply::Type::kNil));
}

/// An authority that vouches for itself and for 127.0.0.1.
class Certificate {
 public:
    Certificate() {
        std::string pattern =
            (std::filesystem::temp_directory_path() / "sekali-tls-XXXXXX").string();
        folder_ = ::mkdtemp(pattern.data());
        const std::string command =
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
            "-subj /CN=redis -addext subjectAltName=IP:127.0.0.1 -keyout " +
            key() + " -out " + file() + " 2>/dev/null";
        if (std::system(command.c_str()) != 0) throw std::runtime_error("no openssl");
    }
    ~Certificate() {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    Certificate(const Certificate&) = delete;
    Certificate& operator=(const Certificate&) = delete;
    [[nodiscard]] std::string file() const { return (folder_ / "cert.pem").string(); }
    [[nodiscard]] std::string key() const { return (folder_ / "key.pem").string(); }

 private:
    std::filesystem::path folder_;
};

TEST_F(RedisClientTest, TlsWithACertificateThatIsTrusted) {
    const Certificate certificate;
    const std::string port = std::to_string(::sekali::testing::free_port());
    RedisServer server({"--tls-port", port, "--tls-cert-file", certificate.file(), "--tls-key-file",
                        certificate.key(), "--tls-ca-cert-file", certificate.file(),
                        "--tls-auth-clients", "no"});
    const std::string url = "rediss://127.0.0.1:" + port;
    const auto trusting = client(url + "?ca=" + certificate.file());
    const std::string large(300'000, 'x');
    EXPECT_TRUE(ask(*trusting, command({"SET", "k", large})).ok());
    EXPECT_EQ(ask(*trusting, command({"GET", "k"})).value().text, large);

    Call call = command({"PING"});
    call.timeout = 300ms;
    const auto refused = ask(*client(url), std::move(call));
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().message.find("certificate"), std::string::npos)
        << refused.error().message;
    Call wrong = command({"PING"});
    wrong.timeout = 300ms;
    const auto other_name =
        ask(*client("rediss://localhost:" + port + "?ca=" + certificate.file()), std::move(wrong));
    EXPECT_FALSE(other_name.ok());
}

TEST_F(RedisClientTest, SubscriptionsComeBackByThemselves) {
    RedisServer server;
    const auto c = client(server.url());
    std::promise<void> first;
    std::promise<void> again;
    std::promise<std::string> heard;
    int subscribed = 0;
    loop_.run([&] {
        c->subscribe("news", [&](const ChannelEvent& event) {
            if (event.kind == ChannelEvent::Kind::kMessage) heard.set_value(event.message);
            if (event.kind != ChannelEvent::Kind::kSubscribed) return;
            ++subscribed;
            if (subscribed == 1) first.set_value();
            if (subscribed == 2) again.set_value();
        });
    });
    ASSERT_EQ(first.get_future().wait_for(kPatience), std::future_status::ready);
    server.ask({"CLIENT", "KILL", "TYPE", "pubsub"});
    ASSERT_EQ(again.get_future().wait_for(kPatience), std::future_status::ready);
    server.ask({"PUBLISH", "news", "hello"});
    EXPECT_EQ(heard.get_future().get(), "hello");
    loop_.run([&] { c->unsubscribe("news"); });
    ask(*c, command({"PING"})).value();
}

TEST_F(RedisClientTest, ClosingAnswersWhatIsOpen) {
    RedisServer server;
    auto c = client(server.url());
    ask(*c, command({"PING"})).value();
    server.freeze();
    constexpr int kCalls = 100;
    std::latch answered(kCalls);
    std::vector<Call> calls;
    for (int i = 0; i < kCalls; ++i) {
        Call call = command({"PING"});
        call.timeout = 1h;
        call.done = [&](const Result<Reply>& reply) {
            EXPECT_FALSE(reply.ok());
            answered.count_down();
        };
        calls.push_back(std::move(call));
    }
    c->submit(std::move(calls));
    c.reset();
    answered.wait();
    server.thaw();
}

}  // namespace
}  // namespace sekali::redis
