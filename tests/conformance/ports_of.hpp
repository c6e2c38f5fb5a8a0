#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "conformance/backend.hpp"
#include "sekali/result.hpp"

namespace sekali::conformance {

/// Long enough for any machine; reached only where an answer is lost.
inline constexpr std::chrono::seconds kPatience{60};

/// Sends the commands as one batch and returns the answers in the order of the commands. Without
/// `wait` only those that are there when `pump` returns.
template <typename Port, typename Reply, typename Command>
std::vector<Result<Reply>> send_all(Port& port, std::vector<Command> commands,
                                    const std::function<void()>& pump, bool wait) {
    std::vector<std::future<Result<Reply>>> futures;
    std::vector<typename Port::Call> calls;
    for (Command& command : commands) {
        auto promise = std::make_shared<std::promise<Result<Reply>>>();
        futures.push_back(promise->get_future());
        calls.push_back({std::move(command),
                         [promise](Result<Reply> reply) { promise->set_value(std::move(reply)); }});
    }
    port.submit(std::move(calls));
    pump();
    std::vector<Result<Reply>> replies;
    for (std::future<Result<Reply>>& future : futures) {
        const auto patience = wait ? kPatience : std::chrono::seconds{0};
        if (future.wait_for(patience) == std::future_status::ready) {
            replies.push_back(future.get());
        } else if (wait) {
            throw std::runtime_error("the port has not answered");
        }
    }
    return replies;
}

/// Runs `work` in a transaction of its own and waits for its commit.
inline void run_in(Backend& backend, std::function<void(engine::Tables&)> work) {
    auto committed = std::make_shared<std::promise<Result<void>>>();
    auto future = committed->get_future();
    backend.executor().submit(
        {{.work = std::move(work),
          .done = [committed](const Result<void>& result) { committed->set_value(result); }}});
    backend.pump();
    if (future.wait_for(kPatience) != std::future_status::ready) {
        throw std::runtime_error("the backend has not answered");
    }
    future.get().value();
}

}  // namespace sekali::conformance
