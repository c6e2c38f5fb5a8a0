#pragma once

#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "sekali/result.hpp"

namespace sekali::client {

/// Sends one command to a port and waits for its answer. Not to be called from the port's thread.
template <typename Port, typename Reply, typename Command>
[[nodiscard]] Result<Reply> ask(Port& port, Command command) {
    // Shared, because the answering thread may still be in it when the waiting one is gone.
    auto answered = std::make_shared<std::promise<Result<Reply>>>();
    auto reply = answered->get_future();
    std::vector<typename Port::Call> calls;
    calls.push_back({std::move(command),
                     [answered](Result<Reply> answer) { answered->set_value(std::move(answer)); }});
    port.submit(std::move(calls));
    return reply.get();
}

}  // namespace sekali::client
