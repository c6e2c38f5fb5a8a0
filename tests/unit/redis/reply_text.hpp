#pragma once

#include <random>
#include <string>

#include "backends/redis/reply.hpp"

namespace sekali::redis {

/// A reply in the bytes of the RESP 2 specification.
inline std::string encoded(const Reply& reply) {
    switch (reply.type) {
        case Reply::Type::kNil:
            return "$-1\r\n";
        case Reply::Type::kInteger:
            return ":" + std::to_string(reply.integer) + "\r\n";
        case Reply::Type::kString:
            return "$" + std::to_string(reply.text.size()) + "\r\n" + reply.text + "\r\n";
        case Reply::Type::kStatus:
            return "+" + reply.text + "\r\n";
        case Reply::Type::kError:
            return "-" + reply.text + "\r\n";
        case Reply::Type::kArray:
            break;
    }
    std::string bytes = "*" + std::to_string(reply.items.size()) + "\r\n";
    for (const Reply& item : reply.items)
        bytes += encoded(item);
    return bytes;
}

inline Reply string_reply(std::string text) {
    return {.type = Reply::Type::kString, .text = std::move(text)};
}
inline Reply status_reply(std::string text) {
    return {.type = Reply::Type::kStatus, .text = std::move(text)};
}
inline Reply error_reply(std::string text) {
    return {.type = Reply::Type::kError, .text = std::move(text)};
}
inline Reply array_reply(std::vector<Reply> items) {
    return {.type = Reply::Type::kArray, .items = std::move(items)};
}

/// Any reply that a script of depth `depth` may give.
inline Reply random_reply(std::mt19937& random, int depth = 4) {
    Reply reply;
    reply.type = static_cast<Reply::Type>(random() % (depth == 0 ? 5 : 6));
    const auto any = [&](int low, int high) {
        return std::uniform_int_distribution<int>(low, high)(random);
    };
    if (reply.type == Reply::Type::kInteger) {
        reply.integer = static_cast<std::int64_t>((std::uint64_t{random()} << 32) | random());
    } else if (reply.type == Reply::Type::kString) {
        for (int i = any(0, 40); i > 0; --i)
            reply.text += static_cast<char>(any(0, 255));
    } else if (reply.type == Reply::Type::kStatus || reply.type == Reply::Type::kError) {
        for (int i = any(1, 20); i > 0; --i)
            reply.text += static_cast<char>(any(' ', '~'));
    } else if (reply.type == Reply::Type::kArray) {
        for (int i = any(0, 5); i > 0; --i)
            reply.items.push_back(random_reply(random, depth - 1));
    }
    return reply;
}

/// Hands the bytes over in pieces of random size.
template <typename Take>
void in_pieces(std::mt19937& random, std::string_view bytes, Take take) {
    while (!bytes.empty()) {
        const std::size_t most = std::min<std::size_t>(bytes.size(), 1 + random() % 64);
        const std::size_t size = 1 + random() % most;
        take(bytes.substr(0, size));
        bytes.remove_prefix(size);
    }
}

}  // namespace sekali::redis
