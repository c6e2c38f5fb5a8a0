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
    /// To be asked after each commit that others may wait for. True: the others are told soon.
    /// False: nothing was told them lately, so the caller is to tell them at once.
    [[nodiscard]] bool publishes_later();
    /// Returns after somebody's commit, or after `at_most`. A change between two waits of a thread
    /// ends the second one.
    void wait(engine::Millis at_most);

 private:
    void listen_until_closed();
    void listen();
    void publish_until_closed();

    const PostgresOptions& options_;
    const std::string channel_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::uint64_t changes_ = 0;
    std::map<std::thread::id, std::uint64_t> seen_;
    std::atomic<bool> closing_{false};
    std::thread listener_;  ///< Started by the first who waits.
    std::condition_variable publishing_;
    std::chrono::steady_clock::time_point published_{};  ///< When others were told last.
    bool has_news_ = false;                              ///< That others are to be told.
    std::thread publisher_;  ///< Started where commits follow each other closely.
};

}  // namespace sekali::postgres
