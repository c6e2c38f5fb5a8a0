#include "client/http_runner.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <gtest/gtest.h>

#include "process/unique_fd.hpp"

namespace sekali::client {
namespace {

using namespace std::chrono_literals;

/// Takes one request on loopback and never answers it.
class SilentServer {
 public:
    SilentServer() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        auto* const generic = reinterpret_cast<sockaddr*>(&address);
        EXPECT_EQ(::bind(listener_.get(), generic, size), 0);
        EXPECT_EQ(::listen(listener_.get(), 1), 0);
        EXPECT_EQ(::getsockname(listener_.get(), generic, &size), 0);
        port_ = ntohs(address.sin_port);
    }

    [[nodiscard]] std::string url() const {
        return "http://127.0.0.1:" + std::to_string(port_) + "/";
    }
    /// Blocks until the request is under way.
    void take_request() {
        request_.reset(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        char first = 0;
        EXPECT_EQ(::recv(request_.get(), &first, 1, 0), 1);
    }

 private:
    process::UniqueFd listener_;
    process::UniqueFd request_;
    std::uint16_t port_ = 0;
};

TEST(HttpRunner, EndsBehindItsRequests) {
    SilentServer server;
    const auto inbox = std::make_shared<Inbox>();
    auto runner = std::make_unique<HttpRunner>(
        std::map<std::string, std::string, std::less<>>{{"k", server.url()}}, inbox, 1);
    engine::action::StartHandler start;
    start.run = 7;
    start.ref.record = {"default", "k", "key"};
    start.delivery.row.job.kind = "k";
    start.deadline = local_now() + 60s;
    runner->start(std::move(start));
    server.take_request();
    runner.reset();
    const std::vector<engine::Event> events = inbox->wait(local_now());
    ASSERT_EQ(events.size(), 1);
    const auto* const ended = std::get_if<engine::event::HandlerEnded>(&events.front());
    ASSERT_NE(ended, nullptr);
    EXPECT_EQ(ended->run, 7);
    EXPECT_EQ(ended->outcome.kind, engine::Outcome::Kind::kInterrupted);
}

}  // namespace
}  // namespace sekali::client
