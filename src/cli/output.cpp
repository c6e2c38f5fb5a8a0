#include "cli/output.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/json_writer.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"

namespace sekali::cli {
namespace {

constexpr std::size_t kBufferBytes = 64 * 1024;

/// 0, or the errno of the write that failed.
int write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(fd, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return errno;
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return 0;
}

std::size_t width(std::string_view text) {
    std::size_t columns = 0;
    for (std::size_t i = 0; i < text.size(); ++columns)
        i += base::decode_utf8(text, i).length;
    return columns;
}

}  // namespace

std::string_view to_string(ErrorCode code) {
    switch (code) {
        case ErrorCode::kUsage:
            return "usage";
        case ErrorCode::kUnreachable:
            return "unreachable";
        case ErrorCode::kRefused:
            return "refused";
        case ErrorCode::kNotFound:
            return "not_found";
        case ErrorCode::kConflict:
            return "conflict";
        case ErrorCode::kCancelled:
            return "cancelled";
        case ErrorCode::kInternal:
            break;
    }
    return "internal";
}

int exit_status(ErrorCode code) {
    switch (code) {
        case ErrorCode::kUsage:
            return kExitUsage;
        case ErrorCode::kUnreachable:
        case ErrorCode::kRefused:
            return 3;
        case ErrorCode::kNotFound:
            return kExitNotFound;
        case ErrorCode::kConflict:
            return kExitConflict;
        case ErrorCode::kCancelled:
        case ErrorCode::kInternal:
            break;
    }
    return 1;
}

Output::~Output() {
    write_all(STDOUT_FILENO, buffer_);
}

void Output::line(std::string_view text) {
    bytes(text);
    bytes("\n");
}

void Output::bytes(std::string_view bytes) {
    buffer_ += bytes;
    if (buffer_.size() >= kBufferBytes) flush();
}

void Output::complaint(std::string_view bytes) {
    write_all(STDERR_FILENO, bytes);
}

void Output::note(std::string_view sentence) {
    write_all(STDERR_FILENO, fmt::format("sekali: {}\n", sentence));
}

int Output::fail(const Error& error) {
    if (json_) {
        std::string document;
        base::JsonWriter writer(document);
        writer.begin_object().field("error").begin_object();
        writer.field("code", to_string(error.code)).field("message", error.message);
        writer.field("applied", error.applied == Applied::kMaybe ? "maybe" : "no");
        writer.field("hint");
        error.hint.empty() ? writer.value(nullptr) : writer.value(error.hint);
        writer.end_object().end_object();
        line(document);
        try {
            flush();
        } catch (const Failure& failure) {
            note(error.message);
            note(failure.error().message);
        }
    } else {
        std::string text = error.message;
        if (error.applied == Applied::kMaybe) text += " (it may have taken effect all the same)";
        note(text);
        if (!error.hint.empty()) note("  " + error.hint);
    }
    return exit_status(error.code);
}

void Output::flush() {
    const std::string bytes = std::exchange(buffer_, {});
    const int problem = write_all(STDOUT_FILENO, bytes);
    if (problem == 0) return;
    Error error;
    error.code = ErrorCode::kRefused;
    error.applied = Applied::kMaybe;
    error.message =
        fmt::format("the answer could not be written to stdout: {}", std::strerror(problem));
    throw Failure(error);
}

bool Output::is_terminal(int fd) {
    return isatty(fd) == 1;
}

void TextTable::add(std::vector<std::string> row) {
    for (std::string& cell : row)
        cell = base::printable(cell);
    rows_.push_back(std::move(row));
}

std::string TextTable::render() const {
    std::vector<std::size_t> widths(rows_.front().size(), 0);
    for (std::size_t r = 1; r < rows_.size(); ++r) {
        for (std::size_t c = 0; c < widths.size(); ++c)
            widths[c] = std::max(widths[c], width(rows_[r][c]));
    }
    for (std::size_t c = 0; c < widths.size(); ++c) {
        if (widths[c] > 0) widths[c] = std::max(widths[c], width(rows_.front()[c]));
    }
    std::string out;
    for (const auto& row : rows_) {
        std::string text;
        for (std::size_t c = 0; c < widths.size(); ++c) {
            if (widths[c] == 0) continue;
            text += row[c] + std::string(widths[c] + 2 - width(row[c]), ' ');
        }
        text.erase(text.find_last_not_of(' ') + 1);
        out += text + '\n';
    }
    return out;
}

}  // namespace sekali::cli
