#include "base/ids.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"

namespace sekali::base {
namespace {

TEST(Uuid7, HasTheFormOfTheRfc) {
    const std::int64_t before = wall_ms();
    const std::string id = new_uuid7();
    EXPECT_TRUE(is_uuid(id)) << id;
    EXPECT_EQ(id[14], '7');
    EXPECT_NE(std::string("89ab").find(id[19]), std::string::npos) << id;
    const std::int64_t ms = std::stoll(id.substr(0, 8) + id.substr(9, 4), nullptr, 16);
    EXPECT_GE(ms, before);
    // The random part may carry a burst into the next millisecond.
    EXPECT_LE(ms, wall_ms() + 1);
}

TEST(Uuid7, GrowsWithinAProcess) {
    std::string last = new_uuid7();
    for (int i = 0; i < 100'000; ++i) {
        std::string next = new_uuid7();
        ASSERT_LT(last, next);
        last = std::move(next);
    }
}

TEST(Uuid7, ThreadsGetDifferentIdsEachInOrder) {
    constexpr std::size_t kThreads = 8;
    constexpr std::size_t kIds = 5'000;
    std::array<std::vector<std::string>, kThreads> made;
    {
        std::vector<std::jthread> threads;
        for (auto& mine : made) {
            threads.emplace_back([&mine] {
                for (std::size_t i = 0; i < kIds; ++i)
                    mine.push_back(new_uuid7());
            });
        }
    }
    std::set<std::string> all;
    for (const auto& mine : made) {
        EXPECT_TRUE(std::is_sorted(mine.begin(), mine.end()));
        all.insert(mine.begin(), mine.end());
    }
    EXPECT_EQ(all.size(), kThreads * kIds);
}

/// Forks; the child writes `count` ids into the pipe and exits.
pid_t fork_writer(int pipe_end, int count) {
    const pid_t child = fork();
    if (child != 0) return child;
    std::string text;
    for (int i = 0; i < count; ++i)
        text += new_uuid7() + "\n";
    const bool written =
        write(pipe_end, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    std::_Exit(written ? 0 : 1);
}

std::vector<std::string> read_lines(int pipe_end) {
    std::string text;
    std::array<char, 4096> buffer{};
    for (ssize_t got = 0; (got = read(pipe_end, buffer.data(), buffer.size())) > 0;) {
        text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < text.size(); at += 37)
        lines.push_back(text.substr(at, 36));
    return lines;
}

TEST(Uuid7, ForkedChildrenRepeatNothingWhileThreadsMakeIds) {
    constexpr int kChildren = 20;
    constexpr int kIds = 50;
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe(ends.data()), 0);
    std::vector<std::string> ids;
    std::vector<std::string> of_thread;
    std::vector<pid_t> children;
    {
        const std::jthread busy([&of_thread](const std::stop_token& stop) {
            while (!stop.stop_requested())
                of_thread.push_back(new_uuid7());
        });
        for (int i = 0; i < kChildren; ++i) {
            ids.push_back(new_uuid7());
            children.push_back(fork_writer(ends[1], kIds));
        }
    }
    close(ends[1]);
    const std::vector<std::string> of_children = read_lines(ends[0]);
    close(ends[0]);
    for (const pid_t child : children) {
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    }
    EXPECT_EQ(of_children.size(), static_cast<std::size_t>(kChildren * kIds));
    std::set<std::string> all(ids.begin(), ids.end());
    all.insert(of_thread.begin(), of_thread.end());
    all.insert(of_children.begin(), of_children.end());
    EXPECT_EQ(all.size(), ids.size() + of_thread.size() + of_children.size());
}

TEST(Uuid7, ForkedSiblingsDrawDifferentRandomParts) {
    constexpr std::size_t kRandomPart = 15;  // behind the time and the version
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe(ends.data()), 0);
    const std::string drawn_before = new_uuid7();
    // Both begin with what the parent had; the clock alone would still part most of their whole
    // ids.
    const std::array<pid_t, 2> children = {fork_writer(ends[1], 1), fork_writer(ends[1], 1)};
    close(ends[1]);
    std::set<std::string> parts = {new_uuid7().substr(kRandomPart)};
    for (const std::string& id : read_lines(ends[0]))
        parts.insert(id.substr(kRandomPart));
    close(ends[0]);
    for (const pid_t child : children)
        ASSERT_EQ(waitpid(child, nullptr, 0), child);
    parts.insert(drawn_before.substr(kRandomPart));
    EXPECT_EQ(parts.size(), 4U);
}

TEST(IsUuid, AcceptsTheCanonicalFormOnly) {
    EXPECT_TRUE(is_uuid("01a22cff-44ee-74b5-8da9-761c80cf8506"));
    EXPECT_TRUE(is_uuid("00000000-0000-0000-0000-000000000000"));
    for (const std::string_view text :
         {"", "01a22cff-44ee-74b5-8da9-761c80cf850", "01a22cff-44ee-74b5-8da9-761c80cf85066",
          "01A22CFF-44EE-74B5-8DA9-761C80CF8506", "01a22cff44ee74b58da9761c80cf8506",
          "{1a22cff-44ee-74b5-8da9-761c80cf850}", "01a22cff-44ee-74b5-8da9_761c80cf8506",
          "g1a22cff-44ee-74b5-8da9-761c80cf8506"}) {
        EXPECT_FALSE(is_uuid(text)) << text;
    }
}

TEST(RandomHex, GivesTwiceAsManyDigits) {
    EXPECT_EQ(random_hex(0), "");
    EXPECT_EQ(random_hex(16).size(), 32U);
    EXPECT_EQ(random_hex(1000).find_first_not_of("0123456789abcdef"), std::string::npos);
    EXPECT_NE(random_hex(16), random_hex(16));
}

}  // namespace
}  // namespace sekali::base
