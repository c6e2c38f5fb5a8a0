#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <string>

#include "base/clock.hpp"
#include "simulation/sim_world.hpp"

// One seed, with its story, or many, with the share of runs in which each fault really fired.
namespace {

using sekali::sim::Options;

constexpr const char* kUsage =
    "usage: sekali-sim --seed N [--trace] | --seeds N [--from M | --fresh] [--until-failure]\n"
    "       [--workers N] [--jobs N] [--twice] [--sqlite]\n";

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

void print_run(std::uint64_t seed, const Options& options) {
    std::cout << "seed " << seed << " revision " << SEKALI_REVISION << ' '
              << sekali::sim::describe(options) << '\n';
}

bool run_seed(const Request& request, std::uint64_t seed, Shares& shares) {
    const Options options = options_of(request, seed);
    if (request.prints || request.count == 1) print_run(seed, options);
    sekali::sim::World world(options, request.prints);
    world.run();
    for (const auto& [name, times] : world.marks())
        ++shares[name];
    bool is_well = world.violations().empty();
    if (request.count == 1) std::printf("trace hash %016lx\n", world.trace_hash());
    if (!is_well && request.count != 1) print_run(seed, options);
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

bool parse(int argc, char** argv, Request& request) {
    for (int i = 1; i < argc; ++i) {
        const auto is = [&](const char* name) { return std::strcmp(argv[i], name) == 0; };
        const auto number = [&] { return std::stoull(argv[++i]); };
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
            request.first = number();
        } else if (has_value && is("--seeds")) {
            request.count = number();
        } else if (has_value && is("--workers")) {
            request.workers = number();
        } else if (has_value && is("--jobs")) {
            request.jobs = number();
        } else {
            return false;
        }
    }
    return argc > 1;
}

}  // namespace

int main(int argc, char** argv) {
    Request request;
    if (!parse(argc, argv, request)) {
        std::cerr << kUsage;
        return 2;
    }
    Shares shares;
    std::uint64_t failed = 0;
    for (std::uint64_t i = 0; i < request.count && !(request.until_failure && failed > 0); ++i)
        failed += run_seed(request, request.first + i, shares) ? 0 : 1;
    if (request.count > 1) print_shares(shares, request.count);
    std::cout << request.count << " seeds from " << request.first << ", revision "
              << SEKALI_REVISION << ": " << failed << " failed\n";
    return failed == 0 ? 0 : 1;
}
