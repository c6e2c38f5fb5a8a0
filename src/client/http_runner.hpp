#pragma once

#include <map>
#include <memory>
#include <string>

#include "client/handler_pool.hpp"
#include "client/inbox.hpp"
#include "client/runner.hpp"

namespace sekali::client {

/// Runs handlers as HTTP requests: POST of the payload, the body of the answer is the result.
class HttpRunner final : public Runner {
 public:
    /// `urls` by kind; `requests` at most run at the same time. Throws `Failure` (`kUsage`) for
    /// what is no http or https URL.
    HttpRunner(const std::map<std::string, std::string, std::less<>>& urls,
               std::shared_ptr<Inbox> inbox, std::size_t requests);
    ~HttpRunner() override;

    void start(engine::action::StartHandler request) override;
    void probe(engine::action::AskProbe request) override;
    void ask_stop(engine::RunId run, engine::StopReason reason) override;
    void kill(engine::RunId run) override;
    void complete_commit(engine::RunId, const engine::Settled&) override {}

 private:
    struct Target {
        std::string origin;  ///< `http://host:port`.
        std::string path;
    };
    class Request;
    /// Outlives the runner for as long as a thread of it is stuck in a request.
    struct Running;

    static Target parse(const std::string& kind, const std::string& url);
    std::shared_ptr<Request> find(engine::RunId run);

    std::map<std::string, Target, std::less<>> targets_;
    std::shared_ptr<Inbox> inbox_;
    std::shared_ptr<Running> running_;
    HandlerPool pool_;
};

}  // namespace sekali::client
