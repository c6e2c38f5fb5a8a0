#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "backends/postgres/connection.hpp"

namespace sekali::postgres {

/// How those who wait learn of commits: of this process by an event, of others by LISTEN on a
/// connection of its own. Notifications may be lost, so nobody waits long for one. Thread-safe.
class ChangeSignal {
 public:
    ChangeSignal(const PostgresOptions& options, std::string channel);
    ~ChangeSignal();
    ChangeSignal(const ChangeSignal&) = delete;
    ChangeSignal& operator=(const ChangeSignal&) = delete;

    /// A commit of this process made something ready or ended something.
    void announce();
    /// Returns after somebody's commit, or after `at_most`. A change between two waits of a thread
    /// ends the second one.
    void wait(engine::Millis at_most);

 private:
    void listen_until_closed();
    void listen();

    const PostgresOptions& options_;
    const std::string channel_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::uint64_t changes_ = 0;
    std::map<std::thread::id, std::uint64_t> seen_;
    std::atomic<bool> closing_{false};
    std::thread listener_;  ///< Started by the first who waits.
};

}  // namespace sekali::postgres
