#include "base/faults.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/limits.hpp"
#include "base/text.hpp"

namespace sekali::base {
namespace {

enum class Action : std::uint8_t { kKill, kStop, kError };

struct Trigger {
    std::size_t point;
    std::uint64_t at_hit;
    Action action;
};

[[noreturn]] void refuse(std::string_view message) {
    std::fputs(fmt::format("sekali: {}\n", message).c_str(), stderr);
    std::fflush(stderr);
    _exit(2);
}

std::string_view take_part(std::string_view& rest, char separator) {
    const std::size_t at = rest.find(separator);
    const std::string_view part = rest.substr(0, at);
    rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + 1);
    return part;
}

Trigger parse_trigger(std::string_view text) {
    std::string_view rest = text;
    const std::string_view name = take_part(rest, ':');
    const auto* point = std::find_if(kFaultPoints.begin(), kFaultPoints.end(),
                                     [&](const FaultPoint& p) { return p.name == name; });
    if (point == kFaultPoints.end()) {
        refuse(fmt::format("SEKALI_FAULT_AT: no fault point is named {}", quoted(name)));
    }
    Trigger trigger{static_cast<std::size_t>(point - kFaultPoints.begin()), 1, Action::kKill};
    if (!rest.empty()) {
        const auto hit = parse_count("SEKALI_FAULT_AT: the hit", take_part(rest, ':'), 1,
                                     std::numeric_limits<std::uint32_t>::max());
        if (!hit) refuse(hit.error().message);
        trigger.at_hit = *hit;
    }
    if (rest == "stop") {
        trigger.action = Action::kStop;
    } else if (rest == "error") {
        trigger.action = Action::kError;
    } else if (!rest.empty() && rest != "kill") {
        refuse(fmt::format("SEKALI_FAULT_AT: {} is not kill, stop or error", quoted(rest)));
    }
    return trigger;
}

/// What the environment asks for; never destroyed, because threads reach fault points during exit.
class Faults {
 public:
    static Faults& instance() {
        static auto* faults = new Faults;
        return *faults;
    }

    bool hit(std::size_t index) {
        const std::uint64_t count = hits_[index].fetch_add(1, std::memory_order_relaxed) + 1;
        if (count == 1 && !log_path_.empty()) log(kFaultPoints[index].name);
        for (const Trigger& trigger : triggers_) {
            if (trigger.point == index && trigger.at_hit == count) return act(trigger.action);
        }
        return false;
    }

 private:
    Faults() {
        if (const char* list = std::getenv("SEKALI_FAULT_AT")) {
            for (std::string_view rest = list; !rest.empty();) {
                triggers_.push_back(parse_trigger(take_part(rest, ',')));
            }
        }
        if (const char* path = std::getenv("SEKALI_FAULT_LOG")) log_path_ = path;
        const bool active = !triggers_.empty() || !log_path_.empty();
        detail::faults_active.store(active, std::memory_order_relaxed);
        if (active) pthread_atfork(nullptr, nullptr, [] { instance().forget_hits(); });
    }

    /// Hits are counted for each process, a forked one too.
    void forget_hits() {
        for (auto& count : hits_)
            count.store(0, std::memory_order_relaxed);
    }

    static bool act(Action action) {
        switch (action) {
            case Action::kError:
                return true;
            case Action::kStop:
                kill(getpid(), SIGSTOP);
                return false;
            case Action::kKill:
                break;
        }
        kill(getpid(), SIGKILL);
        _exit(128 + SIGKILL);  // the first process of a container survives its own SIGKILL
    }

    /// One append and one write, so that lines of many processes do not mix.
    void log(std::string_view name) const {
        const std::string line = std::string(name) + '\n';
        const int fd = open(log_path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        const bool written =
            fd >= 0 && write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
        if (!written) {
            refuse(fmt::format("SEKALI_FAULT_LOG {}: {}", base::quoted(log_path_),
                               std::strerror(errno)));
        }
        close(fd);
    }

    std::vector<Trigger> triggers_;
    std::string log_path_;
    std::array<std::atomic<std::uint64_t>, kFaultPoints.size()> hits_{};
};

}  // namespace

void load_faults() {
    Faults::instance();
}

bool detail::fault_hit(std::size_t index) {
    return Faults::instance().hit(index);
}

}  // namespace sekali::base
