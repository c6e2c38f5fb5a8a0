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

void run(const Options& options, std::map<std::string, std::size_t>& marks) {
    World world(options, false);
    world.run();
    EXPECT_TRUE(world.violations().empty()) << story(world, options);
    for (const auto& [name, times] : world.marks())
        marks[name] += times;
}

void run_seed(std::uint64_t seed, std::map<std::string, std::size_t>& marks) {
    run(draw_options(seed), marks);
}

// Each of these seeds has found something once.
constexpr std::array<std::uint64_t, 19> kEarlyCorpus{
    15,         // a cancelled job lost the attempt that its handler had used
    1620,       // judge: a paused handler was told of its timeout and its lost lease at once
    3885,       // judge: the same, of a handler that does not listen
    589409647,  // judge: a hung handler, told of its timeout, lost its lease within the grace
    3577,       // judge: a job died alone between its begin and its handler, earlier in company
    4940,       // judge: the same between its handler and its settlement
    5016,       // a lapse that recovery had judged was judged again by every begin, without end
    114939,     // a begin that saw a death first hid it from the company of its neighbours
    105127,     // judge: a lock was broken between begin and handler
    108485,     // judge: the same, and granted again
    109064,     // judge: the same, to a worker that had claimed before
    111061,     // judge: the same, to another worker
    310265,     // a begin left the lease of its claim as it was, shorter than its worker believed
    423513,     // a probe's answer started a handler whose lock was broken while it was asked
    411657,     // budget: four poison jobs in turn, whose deaths nobody proves
    116399,     // judge: a replaced job's retry delay bound the next job of its key
    5008758,    // judge: a replay that a stalled store ran after all else had come to rest
    5077755,    // judge: the same, before a worker's end
    5082664,    // judge: a late copy of a lock's request was granted when all was over
};

constexpr std::array<std::uint64_t, 5> kCorpus{
    13,        // budget: a poison job's lock outlived its lease by half a minute, twenty times
    247,       // budget: the same, and others stood in line behind it
    315,       // judge: a person's answer and the begin that found it were one group
    484,       // idle: what waits for a lock outside is not idle
    50012646,  // judge: a cancel held a job that waited for its retry, an answer ran it at once
};

constexpr std::array<std::uint64_t, 5> kLateCorpus{
    1796083929982035,  // a worker gave up to give back what only its queue's connection knew of
    1796093880920583,  // judge: late copies of a dead worker's begins took over from each other
    40002291,          // a dead worker's late claim began a job, which was then convicted
    50041124,          // the same, where no answer is lost
    5008014,           // a claim that was asked for again had the lease of the first one
};

TEST(Simulation, Corpus) {
    std::map<std::string, std::size_t> marks;
    for (const std::uint64_t seed : kEarlyCorpus)
        run(without_later_faults(draw_options(seed)), marks);
    for (const std::uint64_t seed : kCorpus) {
        Options options = draw_options(seed);
        options.broker = options.claims_begin = false;  // they came later
        run(options, marks);
    }
    for (const std::uint64_t seed : kLateCorpus)
        run(draw_options(seed), marks);
}

TEST(Simulation, FixedSeedsReachEverythingThatTheyAreFor) {
    std::map<std::string, std::size_t> marks;
    for (std::uint64_t seed = 0; seed < 150; ++seed)
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
                             "fault: clock leap",
                             "fault: disconnect from the queue",
                             "fault: published twice",
                             "fault: late effect outside",
                             "fault: lock held by a stranger",
                             "fault: lock service failover",
                             "fault: lock service restart",
                             "fault: stop"}) {
        EXPECT_GT(marks[name], 0U) << name << " was never reached";
    }
}

std::uint64_t trace_of(const Options& options) {
    World world(options, false);
    world.run();
    return world.trace_hash();
}

TEST(Simulation, TheSameSeedGivesTheSameHistory) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const Options options = draw_options(seed);
        EXPECT_EQ(trace_of(options), trace_of(options)) << "seed " << seed;
        const Options sqlite = on_sqlite(options);
        EXPECT_EQ(trace_of(sqlite), trace_of(sqlite)) << "seed " << seed << " on SQLite";
    }
}

TEST(Simulation, SqliteKeepsItsWordThroughPowerCuts) {
    std::map<std::string, std::size_t> marks;
    for (std::uint64_t seed = 0; seed < 100; ++seed)
        run(on_sqlite(draw_options(seed)), marks);
    EXPECT_GT(marks["fault: power cut"], 20U);
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
