#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace sekali::bench {

/// One safety level of the contract, and what its jobs have that costs something.
struct Level {
    std::string_view name;
    std::string_view adds;
    std::size_t above;  ///< Which level its cost is counted from; its own place: none.
    bool record = false;
    bool unique_key = false;
    bool lock_key = false;
    bool commit = false;  ///< The handler writes a row of its own through `ctx.commit`.
};

inline constexpr std::array<Level, 5> kLevels{{
    {.name = "L0", .adds = "queue", .above = 0},
    {.name = "L1", .adds = "+ unique key", .above = 0, .unique_key = true},
    {.name = "L2", .adds = "+ lock key", .above = 1, .unique_key = true, .lock_key = true},
    {.name = "L3", .adds = "queue + record", .above = 0, .record = true},
    {.name = "L4", .adds = "+ a row in the commit", .above = 3, .record = true, .commit = true},
}};

inline constexpr const Level& kDefaultLevel = kLevels[3];
inline constexpr const Level& kCommitLevel = kLevels[4];

}  // namespace sekali::bench
