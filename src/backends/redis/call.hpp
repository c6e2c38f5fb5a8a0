#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/redis/reply.hpp"
#include "backends/redis/script.hpp"
#include "sekali/result.hpp"

namespace sekali::redis {

using Millis = std::chrono::milliseconds;
using TimePoint = std::chrono::steady_clock::time_point;

/// One request and what to do with its answer.
struct Call {
    using Done = std::function<void(Result<Reply>)>;

    /// A command's words; of a script: the number of keys, the keys, the arguments. A script's
    /// first key, else the second word, says which node of a cluster it goes to.
    std::vector<std::string> words{};
    const Script* script = nullptr;  ///< Must outlive the answer.
    /// Called once, on the client's thread; must not block. An error reply is an error here.
    Done done{};
    std::optional<Millis> timeout{};  ///< Default: the address's.
    bool asking = false;              ///< A cluster's node has said ASK.
    /// Where there is no connection by then it ends as not applied, before its deadline.
    TimePoint send_by = TimePoint::max();

    TimePoint deadline{};  ///< Set when it is submitted.

    [[nodiscard]] TimePoint waits_until() const { return std::min(deadline, send_by); }
};

/// Appends a request in the form of the RESP 2 specification.
void append_request(std::string& out, const std::vector<std::string_view>& words);

}  // namespace sekali::redis
