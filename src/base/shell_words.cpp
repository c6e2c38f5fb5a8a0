#include "base/shell_words.hpp"

#include <fmt/format.h>

#include <cstddef>

#include "base/errors.hpp"
#include "base/text.hpp"

namespace sekali::base {
namespace {

constexpr std::string_view kOperators = "|&;<>$*?()[]{}~#`\n";
constexpr std::string_view kEscapableInDoubleQuotes = "$`\"\\";

/// POSIX.1-2017, Shell Command Language, section 2.2.
class Splitter {
 public:
    explicit Splitter(std::string_view command) : command_(command) {}

    Result<std::vector<std::string>> run() {
        while (pos_ < command_.size()) {
            if (!step()) return error_;
        }
        end_word();
        if (words_.empty() || words_.front().empty()) {
            return usage_error(fmt::format("command {}: it names no program", quoted(command_)));
        }
        return std::move(words_);
    }

 private:
    bool step() {
        const char c = command_[pos_];
        if (c == '\0') return refuse("it holds a NUL byte");
        if (c == ' ' || c == '\t') {
            end_word();
            ++pos_;
            return true;
        }
        if (c == '\'') return single_quotes();
        if (c == '"') return double_quotes();
        if (c == '\\') return backslash();
        if (kOperators.find(c) != std::string_view::npos) return refuse_operator(c);
        add(c);
        ++pos_;
        return true;
    }

    bool single_quotes() {
        const std::size_t close = command_.find('\'', pos_ + 1);
        if (close == std::string_view::npos) return refuse_open("single quote");
        const std::string_view text = command_.substr(pos_ + 1, close - pos_ - 1);
        if (text.find('\0') != std::string_view::npos) return refuse("it holds a NUL byte");
        word_ += text;
        in_word_ = true;
        pos_ = close + 1;
        return true;
    }

    bool double_quotes() {
        in_word_ = true;
        for (std::size_t i = pos_ + 1; i < command_.size(); ++i) {
            const char c = command_[i];
            if (c == '"') {
                pos_ = i + 1;
                return true;
            }
            if (c == '\0') return refuse("it holds a NUL byte");
            const char next = i + 1 < command_.size() ? command_[i + 1] : '\0';
            if (c != '\\' || next == '\0') {
                word_ += c;
            } else if (next == '\n') {
                ++i;
            } else if (kEscapableInDoubleQuotes.find(next) != std::string_view::npos) {
                word_ += next;
                ++i;
            } else {
                word_ += c;
            }
        }
        return refuse_open("double quote");
    }

    bool backslash() {
        if (pos_ + 1 == command_.size()) return refuse("it ends with a backslash");
        const char next = command_[pos_ + 1];
        if (next == '\0') return refuse("it holds a NUL byte");
        if (next != '\n') add(next);
        pos_ += 2;
        return true;
    }

    void add(char c) {
        word_ += c;
        in_word_ = true;
    }

    void end_word() {
        if (!in_word_) return;
        words_.push_back(std::move(word_));
        word_.clear();
        in_word_ = false;
    }

    bool refuse(std::string_view what, std::string hint = {}) {
        error_ =
            usage_error(fmt::format("command {}: {}", quoted(command_), what), std::move(hint));
        return false;
    }

    bool refuse_open(std::string_view what) {
        return refuse(fmt::format("the {} at byte {} is not closed", what, pos_));
    }

    bool refuse_operator(char c) {
        return refuse(fmt::format("{} needs a shell, and commands are run without one",
                                  quoted(std::string_view(&c, 1))),
                      "write: " + shell_form() + " (or quote it, if it is meant as text)");
    }

    /// The whole command as one quoted argument of sh, where it can be shown on a line.
    [[nodiscard]] std::string shell_form() const {
        constexpr std::size_t kShownBytes = 400;
        std::string text;
        for (const char c : command_) {
            if (c == '\'') {
                text += "'\\''";
            } else {
                text += c;
            }
        }
        if (text.size() > kShownBytes || printable(command_).size() != plain_size()) {
            return "sh -c '…'";
        }
        return "sh -c '" + text + "'";
    }

    /// The size of `printable` when nothing but backslashes was escaped.
    [[nodiscard]] std::size_t plain_size() const {
        std::size_t size = command_.size();
        for (const char c : command_)
            size += c == '\\' ? 1 : 0;
        return size;
    }

    std::string_view command_;
    std::size_t pos_ = 0;
    std::string word_;
    bool in_word_ = false;
    std::vector<std::string> words_;
    Error error_;
};

}  // namespace

Result<std::vector<std::string>> split_command(std::string_view command) {
    return Splitter(command).run();
}

}  // namespace sekali::base
