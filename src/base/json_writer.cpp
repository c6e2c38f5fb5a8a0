#include "base/json_writer.hpp"

#include <fmt/format.h>

#include <iterator>

#include "base/utf8.hpp"

namespace sekali::base {
namespace {

/// C1 controls and DEL are legal in JSON, but a terminal that shows the line would obey them.
bool must_escape(char32_t code_point) {
    return code_point < 0x20 || (code_point >= 0x7F && code_point <= 0x9F) || code_point == '"' ||
           code_point == '\\';
}

void append_escape(std::string& out, char32_t code_point) {
    switch (code_point) {
        case '"':
            out += "\\\"";
            return;
        case '\\':
            out += "\\\\";
            return;
        case '\b':
            out += "\\b";
            return;
        case '\f':
            out += "\\f";
            return;
        case '\n':
            out += "\\n";
            return;
        case '\r':
            out += "\\r";
            return;
        case '\t':
            out += "\\t";
            return;
        default:
            break;
    }
    fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(code_point));
}

}  // namespace

JsonWriter& JsonWriter::field(std::string_view name) {
    separate();
    append_string(name);
    out_ += ':';
    need_comma_ = false;
    return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
    separate();
    append_string(text);
    need_comma_ = true;
    return *this;
}

JsonWriter& JsonWriter::raw(std::string_view json) {
    separate();
    out_ += json;
    need_comma_ = true;
    return *this;
}

JsonWriter& JsonWriter::open(char bracket) {
    separate();
    out_ += bracket;
    need_comma_ = false;
    return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
    out_ += bracket;
    need_comma_ = true;
    return *this;
}

void JsonWriter::separate() {
    if (need_comma_) out_ += ',';
}

void JsonWriter::append_string(std::string_view text) {
    out_ += '"';
    for (std::size_t i = 0; i < text.size();) {
        const Utf8Step step = decode_utf8(text, i);
        if (!step.valid) {
            out_ += kReplacementCharacter;
        } else if (must_escape(step.code_point)) {
            append_escape(out_, step.code_point);
        } else {
            out_ += text.substr(i, step.length);
        }
        i += step.length;
    }
    out_ += '"';
}

}  // namespace sekali::base
