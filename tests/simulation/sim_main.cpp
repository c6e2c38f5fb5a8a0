#include <cstdint>
#include <cstring>
#include <iostream>
#include <string>

#include "simulation/sim_world.hpp"

// sekali-sim --seed N [--trace] | --seeds N [--from M]
namespace {

bool run_seed(std::uint64_t seed, bool prints) {
    const auto options = sekali::sim::draw_options(seed);
    if (prints) std::cout << "seed " << seed << ' ' << describe(options) << '\n';
    sekali::sim::World world(options, prints);
    world.run();
    if (prints) std::cout << "hash " << std::hex << world.trace_hash() << std::dec << '\n';
    if (world.violations().empty()) return true;
    std::cout << "seed " << seed << ' ' << describe(options) << '\n';
    for (const std::string& violation : world.violations())
        std::cout << "  " << violation << '\n';
    return false;
}

}  // namespace

int main(int argc, char** argv) {
    std::uint64_t seed = 0;
    std::uint64_t count = 1;
    bool prints = false;
    for (int i = 1; i < argc; ++i) {
        const bool has_value = i + 1 < argc;
        if (std::strcmp(argv[i], "--trace") == 0) {
            prints = true;
        } else if (has_value &&
                   (std::strcmp(argv[i], "--seed") == 0 || std::strcmp(argv[i], "--from") == 0)) {
            seed = std::stoull(argv[++i]);
        } else if (has_value && std::strcmp(argv[i], "--seeds") == 0) {
            count = std::stoull(argv[++i]);
        } else {
            std::cerr << "usage: sekali-sim --seed N [--trace] | --seeds N [--from M]\n";
            return 2;
        }
    }
    std::uint64_t failed = 0;
    for (std::uint64_t i = 0; i < count; ++i)
        failed += run_seed(seed + i, prints) ? 0 : 1;
    std::cout << count << " seeds, " << failed << " failed\n";
    return failed == 0 ? 0 : 1;
}
