#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace crash {

/// What happens outside of sekali in the crash tests: an append-only file of lines, which survives
/// every `kill -9`, and a file for each lock that tells when two handlers hold it at once.
class Ledger {
 public:
    /// `folder` must exist.
    explicit Ledger(std::string folder) : folder_(std::move(folder)) {}

    /// One line, in one write.
    void note(const std::string& what, const std::string& key, const std::string& job) const {
        const std::string line = what + '\t' + key + '\t' + job + '\n';
        const int fd =
            ::open(path("ledger").c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        if (::write(fd, line.data(), line.size()) < 0) ::abort();
        ::close(fd);
    }

    /// The outside service: every call is noted, every key is charged once.
    std::string charge(const std::string& key, const std::string& job) const {
        const int turn = take_turn("gateway");
        note("call", key, job);
        if (!is_charged(key)) note("charge", key, job);
        ::close(turn);
        return "receipt-" + key;
    }
    [[nodiscard]] bool is_charged(const std::string& key) const {
        std::ifstream file(path("ledger"));
        const std::string begin = "charge\t" + key + '\t';
        for (std::string line; std::getline(file, line);) {
            if (line.starts_with(begin)) return true;
        }
        return false;
    }

    [[nodiscard]] bool exists(const std::string& name) const {
        return ::access(path(name).c_str(), F_OK) == 0;
    }
    [[nodiscard]] std::string path(const std::string& name) const { return folder_ + '/' + name; }

    /// Holds the file of a lock key while it lives, and notes an overlap where it is held already.
    class Inside {
     public:
        Inside(const Ledger& ledger, const std::string& lock, const std::string& job)
            : fd_(::open(ledger.path("lock-" + lock).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
            if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) ledger.note("overlap", lock, job);
        }
        ~Inside() { ::close(fd_); }
        Inside(const Inside&) = delete;
        Inside& operator=(const Inside&) = delete;

     private:
        int fd_;
    };

 private:
    [[nodiscard]] int take_turn(const std::string& name) const {
        const int fd = ::open(path(name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        ::flock(fd, LOCK_EX);
        return fd;
    }

    std::string folder_;
};

}  // namespace crash
