#include "process/signals.hpp"

#include <fcntl.h>

#include <atomic>
#include <cerrno>
#include <cstring>

namespace sekali::process {
namespace {

/// What a handler can reach: the write end of the one installed source.
std::atomic<int> installed_write_end{-1};
static_assert(std::atomic<int>::is_always_lock_free, "it is used by a signal handler");

/// A signal is one byte in the pipe: its number, and whether the kernel raised it.
constexpr unsigned char kFromKernelBit = 0x80;

void on_signal(int number, siginfo_t* info, void* /*context*/) {
    const int saved_errno = errno;
    const auto from_kernel = info->si_code == SI_KERNEL ? kFromKernelBit : 0U;
    const auto byte = static_cast<unsigned char>(static_cast<unsigned>(number) | from_kernel);
    // A full pipe holds more signals than anybody has sent on purpose.
    [[maybe_unused]] const ssize_t written = ::write(installed_write_end, &byte, 1);
    errno = saved_errno;
}

}  // namespace

StopLevel StopLatch::feed(int signal) {
    if (signal != SIGTERM && signal != SIGINT) return level_;
    level_ = level_ == StopLevel::kRun ? StopLevel::kGraceful : StopLevel::kNow;
    return level_;
}

Result<SignalSource> SignalSource::install(std::initializer_list<int> signals) {
    Error error;
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        error.message = std::string("no pipe for signals: ") + std::strerror(errno);
        return error;
    }
    SignalSource source;
    source.read_end_.reset(ends[0]);
    UniqueFd write_end(ends[1]);
    int none = -1;
    if (!installed_write_end.compare_exchange_strong(none, write_end.get())) {
        error.message = "signals are already taken by another part of this process";
        return error;
    }
    source.write_end_ = std::move(write_end);
    struct sigaction action {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    ::sigfillset(&action.sa_mask);
    sigset_t unblocked;
    ::sigemptyset(&unblocked);
    for (const int number : signals) {
        struct sigaction previous {};
        ::sigaction(number, &action, &previous);
        source.previous_.emplace_back(number, previous);
        ::sigaddset(&unblocked, number);
    }
    ::pthread_sigmask(SIG_UNBLOCK, &unblocked, nullptr);
    return source;
}

SignalSource::~SignalSource() {
    if (!write_end_.valid()) return;
    restore_handlers();
    installed_write_end = -1;
}

void SignalSource::restore_handlers() {
    for (const auto& [number, action] : previous_)
        ::sigaction(number, &action, nullptr);
    previous_.clear();
}

ReceivedSignal SignalSource::next() {
    unsigned char byte = 0;
    if (::read(read_end_.get(), &byte, 1) != 1) return {};
    return {.number = byte & ~kFromKernelBit, .from_kernel = (byte & kFromKernelBit) != 0};
}

void SignalSource::reset_in_child() {
    for (auto& [number, action] : previous_) {
        action = {};
        action.sa_handler = SIG_DFL;
    }
    restore_handlers();
    installed_write_end = -1;
    read_end_.reset();
    write_end_.reset();
}

}  // namespace sekali::process
