#include "bench/environment.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>
#include <vector>

#include "base/errors.hpp"
#include "base/text.hpp"
#include "bench/clock.hpp"
#include "bench/figures.hpp"
#include "process/unique_fd.hpp"

namespace sekali::bench {
namespace {

namespace fs = std::filesystem;

constexpr int kSyncs = 50;
constexpr std::size_t kSyncBytes = 4096;

/// Octal escapes stand for the bytes that would split the line.
std::string unescaped(std::string_view text) {
    constexpr std::size_t kDigits = 3;
    std::string plain;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] == '\\' && at + kDigits < text.size()) {
            plain +=
                static_cast<char>(std::stoi(std::string(text.substr(at + 1, kDigits)), nullptr, 8));
            at += kDigits;
        } else {
            plain += text[at];
        }
    }
    return plain;
}

bool lies_in(const fs::path& path, const fs::path& folder) {
    auto step = path.begin();
    for (const fs::path& part : folder) {
        if (part.empty()) continue;
        if (step == path.end() || *step != part) return false;
        ++step;
    }
    return true;
}

void refuse_memory(const fs::path& folder) {
    struct statfs found {};
    if (::statfs(folder.c_str(), &found) != 0) return;
    if (found.f_type != TMPFS_MAGIC && found.f_type != RAMFS_MAGIC) return;
    throw Failure(base::usage_error(
        fmt::format("{} lies in memory (tmpfs or ramfs), where a commit costs nothing",
                    base::quoted(folder.string())),
        "choose a folder on a disk by --folder"));
}

std::vector<double> sync_times(const fs::path& folder) {
    const fs::path path = folder / "sync";
    const process::UniqueFd file(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    const std::array<char, kSyncBytes> bytes{};
    std::vector<double> times;
    for (int i = 0; i < kSyncs; ++i) {
        const Stopwatch watch;
        const auto at = static_cast<off_t>(kSyncBytes) * i;
        const bool written =
            ::pwrite(file.get(), bytes.data(), bytes.size(), at) == ssize_t{kSyncBytes};
        if (!written || ::fdatasync(file.get()) != 0) {
            throw Failure({.code = ErrorCode::kRefused,
                           .message = "the disk does not take what is written to it"});
        }
        times.push_back(watch.ms());
    }
    ::unlink(path.c_str());
    return times;
}

double load_average() {
    double load = 0;
    return ::getloadavg(&load, 1) == 1 ? load : 0;
}

}  // namespace

std::string file_system_of(const fs::path& folder, std::string_view mounts) {
    constexpr int kBeforeMountPoint = 4;
    std::istringstream lines{std::string(mounts)};
    std::string type = "unknown";
    std::size_t deepest = 0;
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string word;
        for (int i = 0; i < kBeforeMountPoint; ++i)
            words >> word;
        words >> word;
        const fs::path mount = unescaped(word);
        while (words >> word && word != "-") {
        }
        // A later mount lies on top of an earlier one at the same place.
        const auto depth = static_cast<std::size_t>(std::distance(mount.begin(), mount.end()));
        if (!(words >> word) || !lies_in(folder, mount) || depth < deepest) continue;
        deepest = depth;
        type = word;
    }
    return type;
}

Environment look_at_machine() {
    Environment found;
    found.load_average = load_average();
    found.cores = std::thread::hardware_concurrency();
#ifdef __clang__
    found.compiler = "clang " __clang_version__;
#else
    found.compiler = "GCC " __VERSION__;
#endif
    found.build_type = SEKALI_BUILD_TYPE;
    return found;
}

void look_at_disk(const fs::path& folder, Environment& found) {
    refuse_memory(folder);
    std::ifstream mounts("/proc/self/mountinfo");
    const std::string text{std::istreambuf_iterator<char>(mounts), {}};
    found.file_system = file_system_of(fs::canonical(folder), text);
    const std::vector<double> times = sync_times(folder);
    found.fsync_ms_median = median(times);
    found.fsync_ms_p99 = percentile(times, 0.99);
}

}  // namespace sekali::bench
