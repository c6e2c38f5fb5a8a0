#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sekali/result.hpp"

namespace sekali::cli {

/// `usage`, `not_found`, …: how an error code is written in JSON.
[[nodiscard]] std::string_view to_string(ErrorCode code);
/// The exit status that stands for an error code.
[[nodiscard]] int exit_status(ErrorCode code);

inline constexpr int kExitDone = 0;
inline constexpr int kExitCheckFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitNotFound = 4;
inline constexpr int kExitConflict = 5;

/// Where a command's answer goes. Answers go to stdout: with `--json` one document (or lines of
/// them) and nothing else, without it what a script would want. Sentences go to stderr. Everything
/// that is not JSON has to be made printable by the caller. Not thread-safe.
class Output {
 public:
    explicit Output(bool json) : json_(json) {}
    Output(const Output&) = delete;
    Output& operator=(const Output&) = delete;
    ~Output();

    [[nodiscard]] bool json() const { return json_; }
    void set_json(bool json) { json_ = json; }

    /// A line of stdout: a JSON document, or a line of text.
    void line(std::string_view text);
    /// Bytes of stdout as they are.
    void bytes(std::string_view bytes);
    /// Bytes of stderr as they are.
    static void complaint(std::string_view bytes);
    /// A sentence on stderr, behind `sekali: `.
    void note(std::string_view sentence);
    /// Reports an error in the form that was asked for, and returns its exit status.
    int fail(const Error& error);

    /// Writes out what is still buffered. Throws `Failure` when stdout does not take it.
    void flush();

    [[nodiscard]] static bool is_terminal(int fd);

 private:
    bool json_;
    std::string buffer_;
};

/// Rows for a terminal, in columns. Cells are made printable.
class TextTable {
 public:
    explicit TextTable(std::vector<std::string> header) { rows_.push_back(std::move(header)); }
    void add(std::vector<std::string> row);
    /// With a newline behind each row; columns that hold nothing are left out.
    [[nodiscard]] std::string render() const;

 private:
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace sekali::cli
