#pragma once

#include <array>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace sekali::sqlite {

/// A process of a test, with pipes to its standard input and output. Killed at the end.
class Child {
 public:
    explicit Child(std::vector<std::string> command) {
        std::array<int, 2> in{};
        std::array<int, 2> out{};
        if (::pipe2(in.data(), O_CLOEXEC) != 0 || ::pipe2(out.data(), O_CLOEXEC) != 0) std::abort();
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, in[0], 0);
        posix_spawn_file_actions_adddup2(&actions, out[1], 1);
        std::vector<char*> arguments;
        for (std::string& argument : command)
            arguments.push_back(argument.data());
        arguments.push_back(nullptr);
        const int failed =
            ::posix_spawnp(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ);
        posix_spawn_file_actions_destroy(&actions);
        ::close(in[0]);
        ::close(out[1]);
        input_ = in[1];
        output_ = out[0];
        if (failed != 0) ADD_FAILURE() << "could not start " << command[0];
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    ~Child() {
        if (pid_ > 0) {
            kill(SIGKILL);
            static_cast<void>(wait());
        }
        close_input();
        ::close(output_);
    }

    [[nodiscard]] pid_t pid() const { return pid_; }
    void kill(int signal) const { ::kill(pid_, signal); }
    void close_input() {
        if (input_ >= 0) ::close(input_);
        input_ = -1;
    }
    void write_line(const std::string& line) const {
        const std::string bytes = line + "\n";
        EXPECT_EQ(::write(input_, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    }
    /// The next line of its output; nothing at its end.
    [[nodiscard]] std::optional<std::string> read_line() {
        for (;;) {
            if (const auto end = buffer_.find('\n'); end != std::string::npos) {
                std::string line = buffer_.substr(0, end);
                buffer_.erase(0, end + 1);
                return line;
            }
            std::array<char, 4096> bytes{};
            const ssize_t size = ::read(output_, bytes.data(), bytes.size());
            if (size <= 0) return std::nullopt;
            buffer_.append(bytes.data(), static_cast<std::size_t>(size));
        }
    }
    [[nodiscard]] std::vector<std::string> read_lines() {
        std::vector<std::string> lines;
        while (auto line = read_line())
            lines.push_back(*std::move(line));
        return lines;
    }
    /// Its exit status, or minus the signal that ended it.
    int wait() {
        int status = 0;
        if (pid_ <= 0 || ::waitpid(pid_, &status, 0) != pid_) return -1000;
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }

 private:
    pid_t pid_ = -1;
    int input_ = -1;
    int output_ = -1;
    std::string buffer_;
};

}  // namespace sekali::sqlite
