#include "gateway.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace payments {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kAnswerTimeoutMs = 300;
constexpr int kBacklog = 128;

sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path)) throw std::runtime_error("socket path too long");
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    return address;
}

/// One caller: what it asked, and when and what it is answered.
struct Caller {
    int fd = -1;
    std::string request;
    std::string answer;
    Clock::time_point answer_at{};
    bool asked = false;
};

class Server {
 public:
    explicit Server(const GatewayOptions& options) : options_(options) {
        ::unlink(options.socket.c_str());
        listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const sockaddr_un address = address_of(options.socket);
        ledger_ = ::open(options.ledger.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        const auto* generic = reinterpret_cast<const sockaddr*>(&address);
        if (listener_ < 0 || ledger_ < 0 || ::bind(listener_, generic, sizeof(address)) != 0 ||
            ::listen(listener_, kBacklog) != 0) {
            throw std::runtime_error("the gateway cannot start: " +
                                     std::string(std::strerror(errno)));
        }
    }

    [[noreturn]] void serve() {
        while (true) {
            std::vector<pollfd> waits{{listener_, POLLIN, 0}};
            for (const Caller& caller : callers_) {
                const short wanted = caller.asked ? 0 : POLLIN;
                waits.push_back({caller.fd, wanted, 0});
            }
            ::poll(waits.data(), waits.size(), callers_.empty() ? -1 : 2);
            for (std::size_t i = 0; i < callers_.size(); ++i) {
                if (waits[i + 1].revents != 0) listen_to(callers_[i]);
            }
            if (waits[0].revents != 0) {
                const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
                if (fd >= 0) callers_.push_back(Caller{fd, {}, {}, {}, false});
            }
            answer_due();
        }
    }

 private:
    void listen_to(Caller& caller) {
        char bytes[512];
        const ssize_t got = ::read(caller.fd, bytes, sizeof(bytes));
        if (got <= 0) {
            // The caller has gone; what it asked for has happened all the same.
            ::close(caller.fd);
            caller.fd = -1;
            return;
        }
        if (caller.asked) return;
        caller.request.append(bytes, static_cast<std::size_t>(got));
        const std::size_t end = caller.request.find('\n');
        if (end == std::string::npos) return;
        caller.asked = true;
        caller.answer = handle(caller.request.substr(0, end));
        caller.answer_at = Clock::now() + std::chrono::milliseconds(options_.latency_ms);
    }

    std::string handle(const std::string& line) {
        std::istringstream words(line);
        std::string verb, key, account, cents;
        words >> verb >> key >> account >> cents;
        const auto known = receipts_.find(key);
        if (verb == "find") return known == receipts_.end() ? "none" : "found " + known->second;
        write_ledger("call " + key);
        if (known != receipts_.end()) return "moved " + known->second;
        const std::string receipt = "r" + std::to_string(receipts_.size() + 1);
        receipts_.emplace(key, receipt);
        write_ledger("move " + key + " " + account + " " + cents);
        const bool silent = options_.silent_every > 0 &&
                            receipts_.size() % static_cast<std::size_t>(options_.silent_every) == 0;
        return silent ? std::string{} : "moved " + receipt;
    }

    void write_ledger(const std::string& entry) const {
        const std::string line = entry + "\n";
        if (::write(ledger_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
            std::abort();  // A gateway that cannot keep its ledger is no gateway.
        }
    }

    void answer_due() {
        for (Caller& caller : callers_) {
            if (caller.fd < 0 || !caller.asked || caller.answer.empty()) continue;
            if (Clock::now() < caller.answer_at) continue;
            const std::string line = caller.answer + "\n";
            (void)::send(caller.fd, line.data(), line.size(), MSG_NOSIGNAL);
            ::close(caller.fd);
            caller.fd = -1;
        }
        std::erase_if(callers_, [](const Caller& caller) { return caller.fd < 0; });
    }

    GatewayOptions options_;
    int listener_ = -1;
    int ledger_ = -1;
    std::vector<Caller> callers_;
    std::map<std::string, std::string> receipts_;
};

}  // namespace

void serve_gateway(const GatewayOptions& options, int ready) {
    Server server(options);
    if (ready >= 0) {
        (void)!::write(ready, "1", 1);
        ::close(ready);
    }
    server.serve();
}

std::string Gateway::ask(const std::string& request) const {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_un address = address_of(socket_);
    const std::string line = request + "\n";
    std::string answer;
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    if (fd >= 0 && ::connect(fd, generic, sizeof(address)) == 0 &&
        ::send(fd, line.data(), line.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(line.size())) {
        const auto deadline = Clock::now() + std::chrono::milliseconds(kAnswerTimeoutMs);
        while (answer.find('\n') == std::string::npos) {
            const auto left =
                std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
            pollfd wait{fd, POLLIN, 0};
            if (left.count() <= 0 || ::poll(&wait, 1, static_cast<int>(left.count())) <= 0) break;
            char bytes[512];
            const ssize_t got = ::read(fd, bytes, sizeof(bytes));
            if (got <= 0) break;
            answer.append(bytes, static_cast<std::size_t>(got));
        }
    }
    if (fd >= 0) ::close(fd);
    const std::size_t end = answer.find('\n');
    if (end == std::string::npos) throw std::runtime_error("the gateway gave no answer in time");
    return answer.substr(0, end);
}

std::string Gateway::move(std::string_view key, std::string_view account,
                          std::int64_t cents) const {
    const std::string answer =
        ask("move " + std::string(key) + " " + std::string(account) + " " + std::to_string(cents));
    return answer.substr(answer.find(' ') + 1);
}

std::optional<std::string> Gateway::find(std::string_view key) const {
    const std::string answer = ask("find " + std::string(key));
    if (answer == "none") return std::nullopt;
    return answer.substr(answer.find(' ') + 1);
}

LedgerSummary read_ledger(const std::string& path) {
    LedgerSummary summary;
    std::ifstream file(path);
    std::set<std::string> moved;
    std::string line;
    while (std::getline(file, line)) {
        std::istringstream words(line);
        std::string verb, key;
        words >> verb >> key;
        if (verb == "call") ++summary.calls;
        if (verb != "move") continue;
        ++summary.movements;
        if (!moved.insert(key).second) ++summary.doubled;
    }
    return summary;
}

}  // namespace payments
