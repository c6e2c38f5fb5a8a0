#include "cli/line_reader.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>
#include <vector>

namespace sekali::cli {
namespace {

class LineReaderTest : public testing::Test {
 protected:
    void SetUp() override { ASSERT_EQ(pipe2(ends_, O_CLOEXEC), 0); }
    void TearDown() override {
        close(ends_[0]);
        close_writer();
    }
    void close_writer() {
        if (ends_[1] >= 0) close(ends_[1]);
        ends_[1] = -1;
    }
    void put(std::string_view bytes) const {
        ASSERT_EQ(write(ends_[1], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    }
    /// Every line, `!` for one that is too long.
    std::vector<std::string> read_all(std::size_t limit) {
        LineReader reader(ends_[0], limit);
        std::vector<std::string> lines;
        while (true) {
            switch (reader.next()) {
                case LineReader::Next::kLine:
                    lines.emplace_back(reader.line());
                    break;
                case LineReader::Next::kTooLong:
                    lines.emplace_back("!");
                    break;
                case LineReader::Next::kEnd:
                    return lines;
            }
        }
    }
    int ends_[2] = {-1, -1};
};

TEST_F(LineReaderTest, ReadsLinesAndALastOneWithoutANewline) {
    put(std::string("a\n\nb\r\n\0c\nlast", 13));
    close_writer();
    EXPECT_EQ(read_all(100),
              (std::vector<std::string>{"a", "", "b\r", std::string("\0c", 2), "last"}));
}

TEST_F(LineReaderTest, AnEmptyInputHasNoLine) {
    close_writer();
    EXPECT_TRUE(read_all(100).empty());
}

TEST_F(LineReaderTest, ReadsOverALineBeyondTheLimit) {
    put("12345\n123456\n1\n1234567");
    close_writer();
    EXPECT_EQ(read_all(5), (std::vector<std::string>{"12345", "!", "1", "!"}));
}

TEST_F(LineReaderTest, ALineMayBeLargerThanWhatIsReadAtOnce) {
    constexpr std::size_t kLong = 3'000'000;
    std::thread writer([this] {
        const std::string text = "a\n" + std::string(kLong, 'x') + "\nb\n";
        for (std::size_t at = 0; at < text.size();) {
            const ssize_t put = write(ends_[1], text.data() + at, text.size() - at);
            ASSERT_GT(put, 0);
            at += static_cast<std::size_t>(put);
        }
        close_writer();
    });
    const auto lines = read_all(kLong);
    writer.join();
    ASSERT_EQ(lines.size(), 3U);
    EXPECT_EQ(lines[1], std::string(kLong, 'x'));
}

TEST_F(LineReaderTest, TellsWhetherItWouldWait) {
    LineReader reader(ends_[0], 100);
    EXPECT_TRUE(reader.would_wait());
    put("a\nb\npart");
    EXPECT_FALSE(reader.would_wait());
    EXPECT_EQ(reader.next(), LineReader::Next::kLine);
    EXPECT_FALSE(reader.would_wait());
    EXPECT_EQ(reader.next(), LineReader::Next::kLine);
    EXPECT_TRUE(reader.would_wait());
    close_writer();
    EXPECT_FALSE(reader.would_wait());
    EXPECT_EQ(reader.next(), LineReader::Next::kLine);
    EXPECT_EQ(reader.line(), "part");
    EXPECT_EQ(reader.next(), LineReader::Next::kEnd);
    EXPECT_FALSE(reader.would_wait());
}

}  // namespace
}  // namespace sekali::cli
