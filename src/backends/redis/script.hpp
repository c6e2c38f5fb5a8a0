#pragma once

#include <string>
#include <string_view>

namespace sekali::redis {

/// A Lua script and the name by which a server remembers it.
class Script {
 public:
    explicit Script(std::string_view text);
    [[nodiscard]] const std::string& text() const { return text_; }
    /// SHA-1 in lower-case hex, as EVALSHA wants it.
    [[nodiscard]] const std::string& sha() const { return sha_; }

 private:
    std::string text_;
    std::string sha_;
};

}  // namespace sekali::redis
