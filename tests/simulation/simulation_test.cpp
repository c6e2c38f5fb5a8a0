#include <gtest/gtest.h>

#include <array>
#include <string>

#include "simulation/sim_world.hpp"

// Whole fleets on virtual time, each drawn by one seed; `sekali-sim --seed N --trace` tells its
// story.
namespace sekali::sim {
namespace {

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

// The same ones each time, so that a change answers for itself; `sekali-sim --seeds N` draws new
// ones.
TEST(Simulation, ManySeeds) {
    std::map<std::string, std::size_t> marks;
    for (std::uint64_t seed = 100; seed < 400; ++seed)
        run_seed(seed, marks);
}

}  // namespace
}  // namespace sekali::sim
