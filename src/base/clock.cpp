#include "base/clock.hpp"

#include <time.h>

#include <fstream>

#include "base/assert.hpp"
#include "sekali/result.hpp"

namespace sekali::base {
namespace {

constexpr const char* kBootIdPath = "/proc/sys/kernel/random/boot_id";

std::int64_t read_ms(clockid_t clock) {
    timespec now{};
    SEKALI_ASSERT(clock_gettime(clock, &now) == 0, "the kernel lacks a clock");
    return static_cast<std::int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

std::string read_boot_id() {
    std::ifstream file(kBootIdPath);
    std::string id;
    if (!std::getline(file, id) || id.empty()) {
        Error error;
        error.code = ErrorCode::kRefused;
        error.message = std::string("cannot read ") + kBootIdPath;
        error.hint = "mount /proc: without the boot id, leases of an earlier boot look alive";
        throw Failure(std::move(error));
    }
    return id;
}

}  // namespace

std::int64_t boot_ms() {
    return read_ms(CLOCK_BOOTTIME);
}

std::chrono::steady_clock::time_point steady_now() {
    return std::chrono::steady_clock::now();
}

std::int64_t wall_ms() {
    return read_ms(CLOCK_REALTIME);
}

std::string boot_id() {
    static const std::string id = read_boot_id();
    return id;
}

}  // namespace sekali::base
