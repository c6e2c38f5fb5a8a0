#include "backends/redis/reply_reader.hpp"

#include <fmt/format.h>
#include <hiredis/hiredis.h>

#include <string>
#include <utility>

#include "backends/redis/errors.hpp"
#include "base/text.hpp"

namespace sekali::redis {
namespace {

/// No script of ours answers with more, and a stream that claims so is not one of Redis.
constexpr std::size_t kMaxItems = 1'000'000;
constexpr std::size_t kMaxUnread = 256U * 1024 * 1024;

/// Items are built in their place inside the array that holds them, the outermost in `privdata`.
Reply& place_of(const redisReadTask* task) {
    if (task->parent == nullptr) {
        auto& root = *static_cast<Reply*>(task->privdata);
        root = {};
        return root;
    }
    return static_cast<Reply*>(task->parent->obj)->items[static_cast<std::size_t>(task->idx)];
}

void* create_string(const redisReadTask* task, char* text, std::size_t length) {
    Reply& reply = place_of(task);
    reply.type = task->type == REDIS_REPLY_ERROR    ? Reply::Type::kError
                 : task->type == REDIS_REPLY_STATUS ? Reply::Type::kStatus
                                                    : Reply::Type::kString;
    reply.text.assign(text, length);
    return &reply;
}

template <typename Size>  // int until hiredis 0.14, size_t behind it
void* create_array(const redisReadTask* task, Size size) {
    if (static_cast<std::size_t>(size) > kMaxItems) return nullptr;
    Reply& reply = place_of(task);
    reply.type = Reply::Type::kArray;
    reply.items.resize(static_cast<std::size_t>(size));
    return &reply;
}

void* create_integer(const redisReadTask* task, long long value) {
    Reply& reply = place_of(task);
    reply.type = Reply::Type::kInteger;
    reply.integer = value;
    return &reply;
}

void* create_nil(const redisReadTask* task) {
    return &place_of(task);
}

void keep_object(void* /*object*/) {}

redisReplyObjectFunctions functions() {
    redisReplyObjectFunctions functions{};
    functions.createString = create_string;
    functions.createArray = create_array;
    functions.createInteger = create_integer;
    functions.createNil = create_nil;
    functions.freeObject = keep_object;
    return functions;
}

}  // namespace

struct ReplyReader::State {
    struct Free {
        void operator()(redisReader* read) const { redisReaderFree(read); }
    };

    State() : reader(redisReaderCreateWithFunctions(&table)) { reader->privdata = &root; }

    redisReplyObjectFunctions table = functions();
    Reply root;
    std::unique_ptr<redisReader, Free> reader;
    std::size_t unread = 0;
};

ReplyReader::ReplyReader() : state_(std::make_unique<State>()) {}
ReplyReader::~ReplyReader() = default;
ReplyReader::ReplyReader(ReplyReader&&) noexcept = default;
ReplyReader& ReplyReader::operator=(ReplyReader&&) noexcept = default;

void ReplyReader::feed(std::string_view bytes) {
    state_->unread += bytes.size();
    redisReaderFeed(state_->reader.get(), bytes.data(), bytes.size());
}

Result<std::optional<Reply>> ReplyReader::next() {
    redisReader& reader = *state_->reader;
    void* found = nullptr;
    if (redisReaderGetReply(&reader, &found) != REDIS_OK) {
        return unreachable(fmt::format("its answer is not of the Redis protocol: {}",
                                       base::printable(reader.errstr)));
    }
    if (found == nullptr) {
        if (state_->unread > kMaxUnread) return unreachable("its answer is too large");
        return std::optional<Reply>{};
    }
    state_->unread = 0;
    return std::optional<Reply>{std::move(state_->root)};
}

}  // namespace sekali::redis
