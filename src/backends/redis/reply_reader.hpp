#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "backends/redis/reply.hpp"
#include "sekali/result.hpp"

namespace sekali::redis {

/// Cuts a stream of bytes into replies. Once it has failed it stays so, because nobody knows where
/// the next reply begins.
class ReplyReader {
 public:
    ReplyReader();
    ~ReplyReader();
    ReplyReader(ReplyReader&&) noexcept;
    ReplyReader& operator=(ReplyReader&&) noexcept;

    void feed(std::string_view bytes);
    /// The next whole reply; nothing while it has not arrived. Errors: `kUnreachable` for bytes
    /// that are no reply, or one too large for what sekali ever asks for.
    [[nodiscard]] Result<std::optional<Reply>> next();

 private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace sekali::redis
