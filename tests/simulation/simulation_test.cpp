#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <random>
#include <string>

#include "simulation/sim_world.hpp"

// Whole fleets on virtual time, each drawn by one seed; `sekali-sim --seed N --trace` tells its
// story.
namespace sekali::sim {
namespace {

using namespace std::chrono_literals;

std::string story(const World& world, const Options& options) {
    std::string text = "seed " + std::to_string(options.seed) + " " + describe(options);
    for (const std::string& violation : world.violations())
        text += "\n  " + violation;
    return text;
}

void run_seed(std::uint64_t seed, std::map<std::string, std::size_t>& marks) {
    const Options options = draw_options(seed);
    World world(options, false);
    world.run();
    EXPECT_TRUE(world.violations().empty()) << story(world, options);
    for (const auto& [name, times] : world.marks())
        marks[name] += times;
}

// Each of these seeds has found something once.
constexpr std::array<std::uint64_t, 1> kCorpus{
    15,  // a cancelled job lost the attempt that its handler had used
};

TEST(Simulation, Corpus) {
    std::map<std::string, std::size_t> marks;
    for (const std::uint64_t seed : kCorpus)
        run_seed(seed, marks);
}

TEST(Simulation, FixedSeedsReachEverythingThatTheyAreFor) {
    std::map<std::string, std::size_t> marks;
    for (std::uint64_t seed = 0; seed < 40; ++seed)
        run_seed(seed, marks);
    for (const char* name : {"begin: started",
                             "begin: parked",
                             "begin: ended",
                             "begin: held",
                             "begin: gone",
                             "begin: probe first",
                             "begin: ask in step",
                             "settle: applied",
                             "settle: superseded",
                             "settle: lock fenced",
                             "settle: effects failed",
                             "settle: still alive",
                             "recovered",
                             "stop: timeout",
                             "stop: cancel",
                             "stop: lease_lost",
                             "stop: shutdown",
                             "kill",
                             "recycle",
                             "cancel",
                             "replay",
                             "fault: lost request",
                             "fault: late request",
                             "fault: lost reply",
                             "fault: stall",
                             "fault: outage",
                             "fault: crash at an action",
                             "fault: crash a poison job",
                             "fault: pause",
                             "fault: stop"}) {
        EXPECT_GT(marks[name], 0U) << name << " was never reached";
    }
}

TEST(Simulation, TheSameSeedGivesTheSameHistory) {
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
        World first(draw_options(seed), false);
        World second(draw_options(seed), false);
        first.run();
        second.run();
        EXPECT_EQ(first.trace_hash(), second.trace_hash()) << "seed " << seed;
    }
}

TEST(Simulation, FreshSeeds) {
    const std::uint64_t first = std::random_device{}();
    RecordProperty("first_seed", std::to_string(first));
    std::map<std::string, std::size_t> marks;
    const auto until = std::chrono::steady_clock::now() + 10s;
    for (std::uint64_t i = 0; i < 300 && std::chrono::steady_clock::now() < until; ++i) {
        run_seed(first + i, marks);
        if (HasFailure()) return;
    }
}

}  // namespace
}  // namespace sekali::sim
