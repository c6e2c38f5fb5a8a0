#include "redis/redis_server.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <future>
#include <stdexcept>

#include "backends/redis/reply_reader.hpp"

namespace sekali::testing {
namespace {

constexpr int kPatienceMs = 20'000;

/// Debian's redis-tools holds the server under another name, without its service.
std::string program() {
    for (const char* path : {"/usr/bin/redis-server", "/usr/bin/redis-check-rdb"}) {
        if (::access(path, X_OK) == 0) return path;
    }
    return {};
}

[[noreturn]] void become(const std::string& path, const std::vector<std::string>& words, int out) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(out, STDOUT_FILENO);
    std::vector<char*> argv;
    for (const std::string& word : words)
        argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    ::execv(path.c_str(), argv.data());
    ::_exit(127);
}

/// Reads what the server says until it is ready; afterwards nobody reads, so it must log no more
/// than a pipe holds.
void wait_until_said(int out, const std::string& sign) {
    std::string said;
    std::array<char, 4096> buffer{};
    pollfd waiting{.fd = out, .events = POLLIN, .revents = 0};
    while (said.find(sign) == std::string::npos) {
        if (::poll(&waiting, 1, kPatienceMs) <= 0) throw std::runtime_error("no server: " + said);
        const ssize_t count = ::read(out, buffer.data(), buffer.size());
        if (count <= 0) throw std::runtime_error("the server ended: " + said);
        said.append(buffer.data(), static_cast<std::size_t>(count));
    }
}

int connect_to(const RedisServer& server) {
    int descriptor = -1;
    int status = -1;
    if (server.port() == 0) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::strncpy(address.sun_path, server.socket_path().c_str(), sizeof address.sun_path - 1);
        descriptor = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        status = ::connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address);
    } else {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(server.port());
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        status = ::connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address);
    }
    if (status != 0) throw std::runtime_error("the server takes no connection");
    return descriptor;
}

}  // namespace

std::uint16_t free_port() {
    const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::bind(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address);
    socklen_t size = sizeof address;
    ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size);
    ::close(descriptor);
    return ntohs(address.sin_port);
}

pid_t start_redis(const std::vector<std::string>& words, const std::string& sign) {
    std::array<int, 2> out{};
    if (::pipe2(out.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    const std::string path = program();
    const pid_t pid = ::fork();
    if (pid == 0) become(path, words, out[1]);
    ::close(out[1]);
    wait_until_said(out[0], sign);
    // The server goes on when nobody reads its log; it ignores SIGPIPE.
    ::close(out[0]);
    return pid;
}

RedisServer::RedisServer(std::vector<std::string> options, Listen listen)
    : options_(std::move(options)), listen_(listen) {
    std::string pattern = (std::filesystem::temp_directory_path() / "sekali-redis-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = pattern;
    if (listen_ == Listen::kTcp) port_ = free_port();
    start();
}

RedisServer::~RedisServer() {
    stop();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
}

std::string RedisServer::url() const {
    if (listen_ == Listen::kUnix) return "redis+unix:" + socket_path();
    return "redis://127.0.0.1:" + std::to_string(port_);
}

void RedisServer::start() {
    std::vector<std::string> words{"redis-server",   "--port",      std::to_string(port_),
                                   "--bind",         "127.0.0.1",   "--dir",
                                   folder_.string(), "--daemonize", "no"};
    const auto add = [&](const char* name, const std::string& value) {
        words.emplace_back(name);
        words.push_back(value);
    };
    if (listen_ == Listen::kUnix) add("--unixsocket", socket_path());
    add("--save", "");
    add("--loglevel", "notice");
    words.insert(words.end(), options_.begin(), options_.end());
    pid_ = start_redis(words, "eady to accept connections");
}

void RedisServer::stop() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
}

void RedisServer::freeze() {
    ::kill(pid_, SIGSTOP);
    siginfo_t ignored{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &ignored, WSTOPPED | WNOWAIT);
}

void RedisServer::thaw() {
    ::kill(pid_, SIGCONT);
}

redis::Reply RedisServer::ask(std::vector<std::string> words) {
    const int descriptor = connect_to(*this);
    std::string request;
    redis::append_request(request, {words.begin(), words.end()});
    static_cast<void>(::send(descriptor, request.data(), request.size(), MSG_NOSIGNAL));
    redis::ReplyReader reader;
    std::array<char, 4096> buffer{};
    while (true) {
        const ssize_t count = ::recv(descriptor, buffer.data(), buffer.size(), 0);
        if (count <= 0) break;
        reader.feed({buffer.data(), static_cast<std::size_t>(count)});
        auto reply = reader.next().value();
        if (!reply) continue;
        ::close(descriptor);
        return *std::move(reply);
    }
    ::close(descriptor);
    throw std::runtime_error("the server did not answer");
}

Result<redis::Reply> ask(redis::Server& server, redis::Call call) {
    // Shared, because the answering thread may still be in it when the waiting one is gone.
    const auto answered = std::make_shared<std::promise<Result<redis::Reply>>>();
    auto answer = answered->get_future();
    call.done = [answered](Result<redis::Reply> reply) { answered->set_value(std::move(reply)); };
    std::vector<redis::Call> calls;
    calls.push_back(std::move(call));
    server.submit(std::move(calls));
    return answer.get();
}

}  // namespace sekali::testing
