#include "backends/redis/address.hpp"

#include <gtest/gtest.h>

namespace sekali::redis {
namespace {

Address parsed(std::string_view url) {
    return parse_address(url).value();
}

TEST(RedisAddress, ReadsASingleServer) {
    const Address address = parsed("redis://db.example:6380/3");
    EXPECT_EQ(address.hosts, (std::vector<HostPort>{{"db.example", 6380}}));
    EXPECT_EQ(address.db, 3);
    EXPECT_FALSE(address.tls);
    EXPECT_TRUE(address.user.empty());
    EXPECT_EQ(parsed("redis://h").hosts.front().port, 6379);
    EXPECT_EQ(parsed("redis://[::1]:7000").hosts.front(), (HostPort{"::1", 7000}));
    EXPECT_EQ(parsed("redis://h?db=2").db, 2);
    EXPECT_EQ(parsed("redis://h?timeout=250ms").timeout, std::chrono::milliseconds{250});
}

TEST(RedisAddress, ReadsTheLogin) {
    const Address both = parsed("redis://alice:p%40ss%3Aw%2Frd@h");
    EXPECT_EQ(both.user, "alice");
    EXPECT_EQ(both.password, "p@ss:w/rd");
    const Address password = parsed("redis://:secret@h");
    EXPECT_TRUE(password.user.empty());
    EXPECT_EQ(password.password, "secret");
}

TEST(RedisAddress, ReadsTheOtherForms) {
    EXPECT_TRUE(parsed("rediss://h?ca=%2Fetc%2Fca.pem").tls);
    EXPECT_EQ(parsed("rediss://h?ca=/etc/ca.pem").ca_file, "/etc/ca.pem");
    EXPECT_EQ(parsed("redis+unix:/run/r.sock?db=1").unix_path, "/run/r.sock");
    EXPECT_EQ(parsed("redis+unix://:pw@/run/r.sock").password, "pw");
    const Address sentinel = parsed("redis+sentinel://a,b:7000/mymaster/2");
    EXPECT_EQ(sentinel.topology, Topology::kSentinel);
    EXPECT_EQ(sentinel.hosts, (std::vector<HostPort>{{"a", 26379}, {"b", 7000}}));
    EXPECT_EQ(sentinel.master, "mymaster");
    EXPECT_EQ(sentinel.db, 2);
    EXPECT_EQ(parsed("redis+cluster://a,b").topology, Topology::kCluster);
}

TEST(RedisAddress, RefusesWhatItCannotMean) {
    for (const char* url : {"redis:",
                            "redis:h",
                            "redis://",
                            "redis://h:0",
                            "redis://h:65536",
                            "redis://h:x",
                            "redis://h/x",
                            "redis://h/-1",
                            "redis://a,b",
                            "redis://user@h",
                            "redis://:%zz@h",
                            "redis://h?colour=red",
                            "redis://h?tls=yes",
                            "redis://h?timeout=5",
                            "redis+unix:",
                            "redis+unix:r.sock",
                            "redis+sentinel://h",
                            "redis+cluster://h/1",
                            "rediss://h?cert=/c",
                            "sqlite:/a.db",
                            "redis"}) {
        const auto address = parse_address(url);
        ASSERT_FALSE(address.ok()) << url;
        EXPECT_EQ(address.error().code, ErrorCode::kUsage) << url;
    }
}

TEST(RedisAddress, ShowsNoSecret) {
    for (const char* url : {"redis://alice:hunter2@h:1/x", "redis://:hunter2@", "redis://h:hunter2",
                            "redis://alice:pa?hunter2@h"}) {
        const auto address = parse_address(url);
        ASSERT_FALSE(address.ok());
        EXPECT_EQ(address.error().message.find("hunter2"), std::string::npos)
            << address.error().message;
    }
    EXPECT_EQ(parsed("redis://alice:hunter2@h:1/2").printable(), "redis://h:1/2");
    EXPECT_EQ(parsed("redis+sentinel://:hunter2@a,b/m").printable(),
              "redis+sentinel://a:26379,b:26379/m");
}

TEST(RedisAddress, KnowsItsSchemes) {
    EXPECT_TRUE(is_redis_url("redis+cluster://h"));
    EXPECT_FALSE(is_redis_url("redis"));
    EXPECT_FALSE(is_redis_url("redish://h"));
}

}  // namespace
}  // namespace sekali::redis
