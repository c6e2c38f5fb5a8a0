// Enqueues jobs one after the other until its input ends: fault_producer URL JOBS_PER_SECOND.
// Prints "ack\tkey\tnanoseconds" for each that was acknowledged. A call of which nobody knows
// whether it was applied is made again under the same id, as every producer should.

#include <poll.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/ids.hpp"
#include "sekali/client.hpp"

namespace {

using Clock = std::chrono::steady_clock;

/// Waits until then; false when the input has ended.
bool goes_on_until(Clock::time_point then) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(then - Clock::now());
    pollfd input{STDIN_FILENO, POLLIN, 0};
    return ::poll(&input, 1, std::max(0, static_cast<int>(left.count()))) == 0;
}

std::int64_t now_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    const std::chrono::nanoseconds pause{std::int64_t{1'000'000'000} / std::atoi(argv[2])};
    auto client = sekali::Client::open(argv[1]).value();
    auto next = Clock::now();
    for (int number = 0; goes_on_until(next); ++number) {
        next += pause;
        const std::string key = "job-" + std::to_string(number);
        const sekali::EnqueueOptions options{.key = key, .id = sekali::base::new_uuid7()};
        for (;;) {
            const auto enqueued = client.enqueue(sekali::RawJob{"work", "{}"}, options);
            if (enqueued.ok()) break;
            if (!enqueued.error().retryable) {
                std::fprintf(stderr, "%s\n", enqueued.error().message.c_str());
                return 1;
            }
        }
        std::printf("ack\t%s\t%" PRId64 "\n", key.c_str(), now_ns());
        std::fflush(stdout);
    }
    return 0;
}
