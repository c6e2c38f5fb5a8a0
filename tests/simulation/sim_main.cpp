#include <unistd.h>

#include <array>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "simulation/sim_world.hpp"

// One seed, with its story, or many, with the share of runs in which each fault really fired.
namespace {

using sekali::sim::Options;

constexpr const char* kUsage =
    "usage: sekali-sim --seed N [--trace] | --seeds N [--from M | --fresh] [--until-failure]\n"
    "       [--workers N] [--jobs N] [--twice] [--sqlite]\n"
    "\n"
    "  --seed N          one run; --trace tells its story\n"
    "  --seeds N         so many runs, from seed M, or from one that nobody has seen\n"
    "  --until-failure   no run after the first that fails\n"
    "  --workers, --jobs at most 64 and 1000, whatever the seed draws\n"
    "  --twice           each run again: its trace must be the same\n"
    "  --sqlite          the store is SQLite on a disk that loses what is not synced\n";
constexpr std::uint64_t kMostSeeds = 1'000'000'000;
constexpr std::uint64_t kMostWorkers = 64;
constexpr std::uint64_t kMostJobs = 1000;

struct Request {
    std::uint64_t first = 0;
    std::uint64_t count = 1;
    std::size_t workers = 0;  ///< 0: as the seed draws it.
    std::size_t jobs = 0;
    bool prints = false;
    bool twice = false;
    bool sqlite = false;
    bool until_failure = false;
};

/// Runs by what happened in them.
using Shares = std::map<std::string, std::size_t>;

Options options_of(const Request& request, std::uint64_t seed) {
    Options options = sekali::sim::draw_options(seed);
    if (request.workers != 0) options.workers = request.workers;
    if (request.jobs != 0) options.jobs = request.jobs;
    return request.sqlite ? sekali::sim::on_sqlite(options) : options;
}

void print_run(const Request& request, std::uint64_t seed, const Options& options) {
    std::cout << "seed " << seed << " revision " << SEKALI_REVISION << ' '
              << sekali::sim::describe(options) << '\n';
    std::cout << "  again: sekali-sim --seed " << seed;
    if (request.workers != 0) std::cout << " --workers " << request.workers;
    if (request.jobs != 0) std::cout << " --jobs " << request.jobs;
    std::cout << (request.sqlite ? " --sqlite" : "") << " --trace" << std::endl;
}

volatile std::uint64_t running_seed = 0;  ///< For who asks why this process died.

/// A run that ends the process must leave its seed.
void name_seed(int signal) {
    std::array<char, 64> line{};
    const auto end = std::to_chars(line.data(), line.data() + line.size(), running_seed).ptr;
    constexpr std::string_view kBefore = "sekali-sim: it ended in seed ";
    const std::size_t length = static_cast<std::size_t>(end - line.data());
    line[length] = '\n';
    if (write(STDERR_FILENO, kBefore.data(), kBefore.size()) < 0 ||
        write(STDERR_FILENO, line.data(), length + 1) < 0) {
        _exit(1);
    }
    std::signal(signal, SIG_DFL);
    std::raise(signal);
}

bool run_seed(const Request& request, std::uint64_t seed, Shares& shares) {
    running_seed = seed;
    const Options options = options_of(request, seed);
    if (request.prints || request.count == 1) print_run(request, seed, options);
    sekali::sim::World world(options, request.prints);
    world.run();
    for (const auto& [name, times] : world.marks())
        ++shares[name];
    bool is_well = world.violations().empty();
    if (request.count == 1) std::printf("trace hash %016lx\n", world.trace_hash());
    if (!is_well && request.count != 1) print_run(request, seed, options);
    for (const std::string& violation : world.violations())
        std::cout << "  " << violation << '\n';
    if (request.twice) {
        sekali::sim::World again(options, false);
        again.run();
        if (again.trace_hash() != world.trace_hash()) {
            std::cout << "  seed " << seed << " had another trace the second time\n";
            is_well = false;
        }
    }
    return is_well;
}

void print_shares(const Shares& shares, std::uint64_t runs) {
    std::cout << "share of runs in which it happened:\n";
    for (const auto& [name, times] : shares) {
        std::printf("  %5.1f %%  %s\n",
                    100.0 * static_cast<double>(times) / static_cast<double>(runs), name.c_str());
    }
}

/// Says what is wrong with it and ends, where it is no number in its bounds.
std::uint64_t number_of(const char* name, const char* text, std::uint64_t least,
                        std::uint64_t most) {
    std::uint64_t number = 0;
    const char* end = text + std::strlen(text);
    const auto read = std::from_chars(text, end, number);
    if (read.ec == std::errc{} && read.ptr == end && number >= least && number <= most) {
        return number;
    }
    std::cerr << "sekali-sim: " << name << " takes a whole number from " << least << " to " << most
              << ", not \"" << text << "\"\n";
    std::exit(2);
}

bool parse(int argc, char** argv, Request& request) {
    constexpr std::uint64_t kMostSeed = std::numeric_limits<std::uint64_t>::max() - kMostSeeds;
    for (int i = 1; i < argc; ++i) {
        const char* name = argv[i];
        const auto is = [&](const char* known) { return std::strcmp(name, known) == 0; };
        const auto number = [&](std::uint64_t least, std::uint64_t most) {
            return number_of(name, argv[++i], least, most);
        };
        const bool has_value = i + 1 < argc;
        if (is("--trace")) {
            request.prints = true;
        } else if (is("--twice")) {
            request.twice = true;
        } else if (is("--until-failure")) {
            request.until_failure = true;
        } else if (is("--fresh")) {
            request.first = static_cast<std::uint64_t>(sekali::base::wall_ms()) * 1000;
        } else if (is("--sqlite")) {
            request.sqlite = true;
        } else if (has_value && (is("--seed") || is("--from"))) {
            request.first = number(0, kMostSeed);
        } else if (has_value && is("--seeds")) {
            request.count = number(1, kMostSeeds);
        } else if (has_value && is("--workers")) {
            request.workers = number(1, kMostWorkers);
        } else if (has_value && is("--jobs")) {
            request.jobs = number(1, kMostJobs);
        } else {
            return false;
        }
    }
    return argc > 1;
}

}  // namespace

int main(int argc, char** argv) {
    Request request;
    if (argc == 2 && std::strcmp(argv[1], "--help") == 0) {
        std::cout << kUsage;
        return 0;
    }
    if (!parse(argc, argv, request)) {
        std::cerr << kUsage;
        return 2;
    }
    for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGTERM, SIGINT})
        std::signal(signal, name_seed);
    if (request.count > 1) std::cout << "from seed " << request.first << std::endl;
    Shares shares;
    std::uint64_t runs = 0;
    std::uint64_t failed = 0;
    while (runs < request.count && !(request.until_failure && failed > 0))
        failed += run_seed(request, request.first + runs++, shares) ? 0 : 1;
    if (request.count > 1) print_shares(shares, runs);
    std::cout << runs << " seeds from " << request.first << ", revision " << SEKALI_REVISION << ": "
              << failed << " failed\n";
    return failed == 0 ? 0 : 1;
}
