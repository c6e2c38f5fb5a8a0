#include "process/guard_wire.hpp"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace sekali::process {
namespace {

constexpr std::size_t kControlBytes = CMSG_SPACE(kSpawnFdCount * sizeof(int));

struct Message {
    template <typename T>
    explicit Message(T& content) : part{.iov_base = &content, .iov_len = sizeof(T)} {
        header.msg_iov = &part;
        header.msg_iovlen = 1;
    }
    void with_control_space() {
        header.msg_control = control.data();
        header.msg_controllen = control.size();
    }

    iovec part;
    alignas(cmsghdr) std::array<char, kControlBytes> control{};
    msghdr header{};
};

/// A message is sent whole or not at all.
WireStatus send_message(int socket, const Message& message) {
    while (true) {
        if (::sendmsg(socket, &message.header, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
            return WireStatus::kDone;
        }
        // ETOOMANYREFS: too many descriptors of this user are on their way.
        if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM || errno == ETOOMANYREFS) {
            return WireStatus::kWouldBlock;
        }
        if (errno != EINTR) return WireStatus::kClosed;
    }
}

WireStatus receive_message(int socket, Message& message) {
    while (true) {
        const ssize_t count = ::recvmsg(socket, &message.header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (count == static_cast<ssize_t>(message.part.iov_len)) return WireStatus::kDone;
        if (count >= 0) return WireStatus::kClosed;
        if (errno == EAGAIN) return WireStatus::kWouldBlock;
        if (errno != EINTR) return WireStatus::kClosed;
    }
}

void put_number(std::string& bytes, std::uint64_t number) {
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}
void put_text(std::string& bytes, std::string_view text) {
    put_number(bytes, text.size());
    bytes += text;
}
void put_list(std::string& bytes, const std::vector<std::string>& list) {
    put_number(bytes, list.size());
    for (const std::string& text : list)
        put_text(bytes, text);
}

/// Reads what the functions above wrote; `good` turns false at the first thing that does not fit.
struct Reader {
    std::string_view bytes;
    bool good = true;

    std::uint64_t number() {
        std::uint64_t value = 0;
        good = good && bytes.size() >= sizeof value;
        if (!good) return 0;
        std::memcpy(&value, bytes.data(), sizeof value);
        bytes.remove_prefix(sizeof value);
        return value;
    }
    std::string text() {
        const std::uint64_t size = number();
        good = good && size <= bytes.size();
        if (!good) return {};
        std::string value(bytes.substr(0, size));
        bytes.remove_prefix(size);
        return value;
    }
    std::vector<std::string> list() {
        std::vector<std::string> value;
        for (std::uint64_t left = number(); good && left > 0; --left)
            value.push_back(text());
        return value;
    }
};

}  // namespace

WireStatus send_command(int socket, const GuardCommand& command, const SpawnFds* fds) {
    GuardCommand content = command;
    Message message(content);
    if (fds != nullptr) {
        message.with_control_space();
        cmsghdr* control = CMSG_FIRSTHDR(&message.header);
        control->cmsg_level = SOL_SOCKET;
        control->cmsg_type = SCM_RIGHTS;
        control->cmsg_len = CMSG_LEN(kSpawnFdCount * sizeof(int));
        std::array<int, kSpawnFdCount> numbers{};
        std::ranges::transform(*fds, numbers.begin(), &UniqueFd::get);
        std::memcpy(CMSG_DATA(control), numbers.data(), sizeof numbers);
    }
    return send_message(socket, message);
}

WireStatus receive_command(int socket, GuardCommand& command, SpawnFds& fds) {
    Message message(command);
    message.with_control_space();
    const WireStatus status = receive_message(socket, message);
    const cmsghdr* control = CMSG_FIRSTHDR(&message.header);
    if (status != WireStatus::kDone || control == nullptr) return status;
    std::array<int, kSpawnFdCount> numbers;
    numbers.fill(-1);
    std::memcpy(numbers.data(), CMSG_DATA(control),
                std::min(sizeof numbers, control->cmsg_len - CMSG_LEN(0)));
    for (std::size_t i = 0; i < kSpawnFdCount; ++i)
        fds[i].reset(numbers[i]);
    return status;
}

WireStatus send_report(int socket, const GuardReport& report) {
    GuardReport content = report;
    return send_message(socket, Message(content));
}

WireStatus receive_report(int socket, GuardReport& report) {
    Message message(report);
    return receive_message(socket, message);
}

UniqueFd write_spawn_body(const SpawnBody& body) {
    std::string bytes;
    put_list(bytes, body.argv);
    put_list(bytes, body.env);
    put_text(bytes, body.cwd);
    put_text(bytes, body.attempt_id);
    UniqueFd file(::memfd_create("sekali-spawn", MFD_CLOEXEC));
    for (std::string_view rest = bytes; file.valid() && !rest.empty();) {
        const ssize_t count = ::write(file.get(), rest.data(), rest.size());
        if (count > 0) rest.remove_prefix(static_cast<std::size_t>(count));
        if (count < 0 && errno != EINTR) return UniqueFd();
    }
    return file;
}

std::optional<SpawnBody> read_spawn_body(int fd) {
    struct stat status {};
    if (::fstat(fd, &status) != 0) return std::nullopt;
    std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
    if (::pread(fd, bytes.data(), bytes.size(), 0) != status.st_size) return std::nullopt;
    Reader reader{.bytes = bytes};
    SpawnBody body;
    body.argv = reader.list();
    body.env = reader.list();
    body.cwd = reader.text();
    body.attempt_id = reader.text();
    if (!reader.good || body.argv.empty()) return std::nullopt;
    return body;
}

}  // namespace sekali::process
