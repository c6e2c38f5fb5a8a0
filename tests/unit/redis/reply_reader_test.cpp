#include "backends/redis/reply_reader.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "backends/redis/errors.hpp"
#include "unit/redis/reply_text.hpp"

namespace sekali::redis {
namespace {

TEST(ReplyReader, ReadsWhatWasWrittenWhereverItIsCut) {
    std::mt19937 random(7);
    for (int round = 0; round < 400; ++round) {
        std::vector<Reply> written;
        std::string bytes;
        for (int i = 0; i < 8; ++i) {
            written.push_back(random_reply(random));
            bytes += encoded(written.back());
        }
        ReplyReader reader;
        std::vector<Reply> read;
        in_pieces(random, bytes, [&](std::string_view piece) {
            reader.feed(piece);
            while (auto reply = reader.next().value())
                read.push_back(*std::move(reply));
        });
        ASSERT_EQ(read, written) << "round " << round;
    }
}

TEST(ReplyReader, SaysNothingBeforeAReplyIsWhole) {
    ReplyReader reader;
    const std::string bytes = encoded(array_reply({string_reply("abc"), string_reply("")}));
    for (const char byte : bytes.substr(0, bytes.size() - 1)) {
        reader.feed({&byte, 1});
        EXPECT_FALSE(reader.next().value());
    }
    reader.feed("\n");
    EXPECT_TRUE(reader.next().value());
}

TEST(ReplyReader, FailsForGoodOnWhatIsNoReply) {
    for (const char* bytes : {"HTTP/1.1 400 Bad Request\r\n", "$abc\r\n", "*2000000000\r\n",
                              ":12x\r\n", "*1000001\r\n", "\r\n"}) {
        ReplyReader reader;
        reader.feed(bytes);
        const auto reply = reader.next();
        ASSERT_FALSE(reply.ok()) << bytes;
        EXPECT_EQ(reply.error().code, ErrorCode::kUnreachable);
        reader.feed("+OK\r\n");
        EXPECT_FALSE(reader.next().ok()) << bytes;
    }
}

TEST(RedisErrors, AreWhatTheyAre) {
    struct Case {
        const char* reply;
        ErrorCode code;
        bool retryable;
    };
    for (const Case& each :
         {Case{"LOADING Redis is loading the dataset in memory", ErrorCode::kUnreachable, true},
          Case{"READONLY You can't write against a read only replica.", ErrorCode::kRefused, true},
          Case{"OOM command not allowed when used memory > 'maxmemory'.", ErrorCode::kRefused,
               true},
          Case{"MISCONF Redis is configured to save RDB snapshots", ErrorCode::kRefused, true},
          Case{"CLUSTERDOWN The cluster is down", ErrorCode::kUnreachable, true},
          Case{"TRYAGAIN Multiple keys request during rehashing", ErrorCode::kUnreachable, true},
          Case{"NOPERM this user has no permissions", ErrorCode::kRefused, false},
          Case{"WRONGTYPE Operation against a key", ErrorCode::kRefused, false},
          Case{"ERR unknown command 'X'", ErrorCode::kRefused, false}}) {
        const Error error = from_reply(each.reply);
        EXPECT_EQ(error.code, each.code) << each.reply;
        EXPECT_EQ(error.retryable, each.retryable) << each.reply;
        EXPECT_EQ(error.applied, Applied::kNo) << each.reply;
        EXPECT_EQ(error.backend_code, code_of(each.reply));
    }
}

}  // namespace
}  // namespace sekali::redis
