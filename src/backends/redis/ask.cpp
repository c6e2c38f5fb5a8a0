#include "backends/redis/ask.hpp"

#include <future>
#include <memory>
#include <utility>

namespace sekali::redis {

std::vector<Result<Reply>> ask(Server& server, std::vector<Call> calls) {
    std::vector<std::future<Result<Reply>>> answers;
    for (Call& call : calls) {
        // Shared, because the answering thread may still be in it when the waiting one is gone.
        const auto answered = std::make_shared<std::promise<Result<Reply>>>();
        answers.push_back(answered->get_future());
        call.done = [answered](Result<Reply> reply) { answered->set_value(std::move(reply)); };
    }
    server.submit(std::move(calls));
    std::vector<Result<Reply>> replies;
    for (auto& answer : answers)
        replies.push_back(answer.get());
    return replies;
}

Result<Reply> ask(Server& server, Call call) {
    std::vector<Call> calls;
    calls.push_back(std::move(call));
    return std::move(ask(server, std::move(calls)).front());
}

}  // namespace sekali::redis
