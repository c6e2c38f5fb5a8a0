#include "bench/environment.hpp"

#include <gtest/gtest.h>

namespace sekali::bench {
namespace {

constexpr std::string_view kMounts =
    "21 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
    "22 21 0:20 / /dev/shm rw shared:2 - tmpfs tmpfs rw\n"
    "23 21 254:16 / /srv/my\\040data rw shared:3 master:1 - xfs /dev/vdb rw\n"
    "24 21 0:31 / /home rw - tmpfs tmpfs rw\n"
    "25 21 254:32 / /home rw - btrfs /dev/vdc rw\n";

TEST(FileSystemOf, IsThatOfTheDeepestMountAroundTheFolder) {
    EXPECT_EQ(file_system_of("/var/lib", kMounts), "ext4");
    EXPECT_EQ(file_system_of("/dev/shm", kMounts), "tmpfs");
    EXPECT_EQ(file_system_of("/dev/shmoo", kMounts), "ext4");
    EXPECT_EQ(file_system_of("/srv/my data/x", kMounts), "xfs");
}

TEST(FileSystemOf, ALaterMountLiesOnTopOfAnEarlierOne) {
    EXPECT_EQ(file_system_of("/home/me", kMounts), "btrfs");
}

TEST(FileSystemOf, IsUnknownWhereNothingTells) {
    EXPECT_EQ(file_system_of("/var", ""), "unknown");
    EXPECT_EQ(file_system_of("/var", "cut off"), "unknown");
}

}  // namespace
}  // namespace sekali::bench
