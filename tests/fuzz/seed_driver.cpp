// Runs a fuzz target without a fuzzer: on every file of the folders that are named, and on every
// beginning of it, because a text that is cut is the commonest hostile one.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::string read_file(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void run_beginnings(const std::string& seed) {
    for (std::size_t size = 0; size <= seed.size(); ++size) {
        // A copy of exactly this size, so that AddressSanitizer sees a read beyond it.
        const std::string beginning = seed.substr(0, size);
        LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(beginning.data()), size);
    }
}

}  // namespace

int main(int argc, char** argv) {
    std::size_t seeds = 0;
    for (int i = 1; i < argc; ++i) {
        for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
            run_beginnings(read_file(entry.path()));
            ++seeds;
        }
    }
    std::printf("%zu seeds and all their beginnings passed\n", seeds);
    return seeds > 0 ? 0 : 1;
}
