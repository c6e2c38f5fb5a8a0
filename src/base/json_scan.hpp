#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sekali/result.hpp"

namespace sekali::base {

/// Walks the decoded bytes of a JSON string whose content (between the quotes) is known to be
/// valid.
class DecodedBytes {
 public:
    static constexpr int kEnd = -1;

    explicit DecodedBytes(std::string_view content) : content_(content) {}

    /// The next byte, or `kEnd`.
    int next();

 private:
    void decode_escape();
    char32_t take_hex4();

    std::string_view content_;
    std::size_t pos_ = 0;
    std::string pending_;  // short enough for its own buffer
    std::size_t pending_pos_ = 0;
};

/// The decoded text of such a content.
[[nodiscard]] std::string decode_content(std::string_view content);

/// Finds repeated field names in all objects that are open at one time. Memory grows with the
/// number of fields only; small documents need none from the heap.
class FieldNames {
 public:
    explicit FieldNames(std::string_view text);
    FieldNames(const FieldNames&) = delete;
    FieldNames& operator=(const FieldNames&) = delete;

    [[nodiscard]] std::size_t mark() const { return entries_.size(); }

    /// Notes the name whose content begins at `offset`; `content` is that content.
    void add(std::size_t offset, std::string_view content, bool escaped);

    /// Forgets the names noted since `mark`; returns the offset of the first repeated one among
    /// them.
    std::optional<std::size_t> close(std::size_t mark);

 private:
    struct Entry {
        std::size_t hash;
        std::size_t offset;
    };
    static constexpr std::size_t kInlineEntries = 128;

    [[nodiscard]] std::string_view content_at(std::size_t offset) const;
    [[nodiscard]] int compare(const Entry& a, const Entry& b) const;
    [[nodiscard]] std::optional<std::size_t> find_few(std::size_t mark) const;
    [[nodiscard]] std::optional<std::size_t> find_many(std::size_t mark);

    std::string_view text_;
    alignas(Entry) std::array<std::byte, kInlineEntries * sizeof(Entry)> buffer_;
    std::pmr::monotonic_buffer_resource memory_;
    std::pmr::vector<Entry> entries_;
};

/// One strict pass over a JSON text (RFC 8259), shared by the check and the slicing. Every step
/// returns false at the first fault, after which `error` tells it and no further step may be taken.
class JsonScanner {
 public:
    JsonScanner(std::string_view text, std::size_t max_depth)
        : text_(text), max_depth_(max_depth), names_(text) {}

    /// Where the next step begins.
    [[nodiscard]] std::size_t position() const { return pos_; }
    void skip_space();
    /// The byte of the next step, or NUL at the end.
    [[nodiscard]] char peek() const { return pos_ < text_.size() ? text_[pos_] : '\0'; }

    bool value();
    bool string();
    /// Nothing but white space may follow.
    bool end();
    /// Steps through an object and calls `on_field(name_content, value_slice)` after each field;
    /// the name is the raw content between its quotes.
    template <typename OnField>
    bool object(OnField&& on_field);
    /// Steps through an array and calls `on_element(slice)` after each element.
    template <typename OnElement>
    bool array(OnElement&& on_element);

    [[nodiscard]] Error error() const;

 private:
    bool fail(const char* what) { return fail(what, pos_); }
    bool fail(const char* what, std::size_t at);
    bool enter();
    bool field_name(std::string_view& content);
    bool literal(std::string_view word);
    bool number();
    bool digits();
    bool escape();
    bool unicode_escape();
    bool hex4(unsigned& value);
    bool next_item(char close, bool& more);
    void skip_plain();
    bool close_object(std::size_t mark);

    std::string_view text_;
    std::size_t max_depth_;
    std::size_t pos_ = 0;
    std::size_t depth_ = 0;
    bool escaped_ = false;  // whether the last string held an escape
    const char* what_ = nullptr;
    std::size_t at_ = 0;
    FieldNames names_;
};

template <typename OnField>
bool JsonScanner::object(OnField&& on_field) {
    if (!enter()) return false;
    const std::size_t mark = names_.mark();
    skip_space();
    bool more = peek() != '}';
    if (!more) ++pos_;
    while (more) {
        std::string_view name;
        if (!field_name(name)) return false;
        const std::size_t begin = pos_;
        if (!value()) return false;
        on_field(name, text_.substr(begin, pos_ - begin));
        if (!next_item('}', more)) return false;
    }
    return close_object(mark);
}

template <typename OnElement>
bool JsonScanner::array(OnElement&& on_element) {
    if (!enter()) return false;
    skip_space();
    bool more = peek() != ']';
    if (!more) ++pos_;
    while (more) {
        skip_space();
        const std::size_t begin = pos_;
        if (!value()) return false;
        on_element(text_.substr(begin, pos_ - begin));
        if (!next_item(']', more)) return false;
    }
    --depth_;
    return true;
}

}  // namespace sekali::base
