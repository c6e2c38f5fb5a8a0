#pragma once

#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace sekali::postgres {

/// A socket between client and server that breaks the connection around a chosen statement.
class Relay {
 public:
    enum class Break {
        kNothing,
        kRequest,  ///< The server does not get it.
        kAnswer,   ///< The server gets it, the client hears no more.
    };

    /// `server` is the folder of the server's socket.
    explicit Relay(const std::string& server) : server_(server + "/.s.PGSQL.5432") {
        std::string folder = std::filesystem::temp_directory_path() / "sekali-relay-XXXXXX";
        if (::mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no folder");
        folder_ = folder;
        listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const sockaddr_un address = address_of(folder_ + "/.s.PGSQL.5432");
        if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
            ::listen(listener_, 16) != 0) {
            throw std::runtime_error("no socket");
        }
        accepting_ = std::thread([this] { accept_all(); });
    }
    Relay(const Relay&) = delete;
    Relay& operator=(const Relay&) = delete;
    ~Relay() {
        ::shutdown(listener_, SHUT_RDWR);
        accepting_.join();
        for (std::thread& pump : pumps_)
            pump.join();
        ::close(listener_);
        std::filesystem::remove_all(folder_);
    }

    [[nodiscard]] const std::string& folder() const { return folder_; }
    /// Breaks the next connection that says `word`, once.
    void break_at(std::string word, Break what) {
        const std::lock_guard guard(mutex_);
        word_ = std::move(word);
        what_ = what;
    }
    [[nodiscard]] int breaks() const { return breaks_; }

 private:
    static sockaddr_un address_of(const std::string& path) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        path.copy(address.sun_path, sizeof address.sun_path - 1);
        return address;
    }

    void accept_all() {
        for (;;) {
            const int client = ::accept(listener_, nullptr, nullptr);
            if (client < 0) return;
            const int server = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
            const sockaddr_un address = address_of(server_);
            if (::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
                0) {
                ::close(client);
                ::close(server);
                continue;
            }
            pumps_.emplace_back([this, client, server] { pump(client, server); });
        }
    }

    Break judge(const std::string& bytes) {
        const std::lock_guard guard(mutex_);
        if (what_ == Break::kNothing || bytes.find(word_) == std::string::npos) {
            return Break::kNothing;
        }
        ++breaks_;
        return std::exchange(what_, Break::kNothing);
    }

    void pump(int client, int server) {
        bool deaf = false;
        std::array<char, 65536> buffer{};
        for (;;) {
            std::array<pollfd, 2> ends{{{client, POLLIN, 0}, {server, POLLIN, 0}}};
            if (::poll(ends.data(), ends.size(), -1) < 0) break;
            if (ends[0].revents != 0 && !deaf) {
                const ssize_t got = ::read(client, buffer.data(), buffer.size());
                if (got <= 0) break;
                const Break what = judge({buffer.data(), static_cast<std::size_t>(got)});
                if (what == Break::kRequest) break;
                if (::write(server, buffer.data(), static_cast<std::size_t>(got)) != got) break;
                if (what == Break::kAnswer) {
                    deaf = true;
                    // The server sees the end only after it has done what it was told.
                    ::shutdown(server, SHUT_WR);
                    ::shutdown(client, SHUT_RDWR);
                }
            }
            if (ends[1].revents != 0) {
                const ssize_t got = ::read(server, buffer.data(), buffer.size());
                if (got <= 0) break;
                if (!deaf && ::write(client, buffer.data(), static_cast<std::size_t>(got)) != got) {
                    break;
                }
            }
            if (deaf) ends[0].fd = -1;
        }
        ::close(client);
        ::close(server);
    }

    std::string server_;
    std::string folder_;
    int listener_ = -1;
    std::mutex mutex_;
    std::string word_;
    Break what_ = Break::kNothing;
    std::atomic<int> breaks_{0};
    std::vector<std::thread> pumps_;
    std::thread accepting_;
};

}  // namespace sekali::postgres
