#include "process/proc_table.hpp"

#include <dirent.h>
#include <fcntl.h>

#include <charconv>
#include <cstdio>
#include <memory>
#include <optional>
#include <unordered_map>

#include "process/unique_fd.hpp"

namespace sekali::process {
namespace {

// ThreadSanitizer's runtime has a thread of its own, which it looks after when a process forks.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SEKALI_THREAD_SANITIZER
#endif
#elif defined(__SANITIZE_THREAD__)
#define SEKALI_THREAD_SANITIZER
#endif
#if defined(SEKALI_THREAD_SANITIZER)
constexpr std::size_t kThreadsOfTheRuntime = 1;
#else
constexpr std::size_t kThreadsOfTheRuntime = 0;
#endif

std::string read_whole(const std::string& path) {
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    std::string content;
    while (file.valid()) {
        constexpr std::size_t kStep = 16 * 1024;
        const std::size_t before = content.size();
        content.resize(before + kStep);
        const ssize_t count = ::read(file.get(), content.data() + before, kStep);
        content.resize(before + static_cast<std::size_t>(count > 0 ? count : 0));
        if (count <= 0) break;
    }
    return content;
}

std::string proc_path(pid_t pid, const char* name) {
    return "/proc/" + std::to_string(pid) + "/" + name;
}

/// The numbers that name entries of a folder of `/proc`.
std::vector<pid_t> list_numbers(const char* folder) {
    struct Close {
        void operator()(DIR* directory) const { ::closedir(directory); }
    };
    const std::unique_ptr<DIR, Close> directory(::opendir(folder));
    std::vector<pid_t> numbers;
    while (directory) {
        const dirent* entry = ::readdir(directory.get());
        if (entry == nullptr) break;
        const std::string_view name(entry->d_name);
        pid_t number = 0;
        const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
        if (error == std::errc{} && end == name.data() + name.size()) numbers.push_back(number);
    }
    return numbers;
}

std::optional<pid_t> read_parent(pid_t pid) {
    const std::string stat = read_whole(proc_path(pid, "stat"));
    // proc(5): pid (comm) state ppid …; comm may hold anything, also `)`.
    const std::size_t comm_end = stat.rfind(')');
    pid_t parent = 0;
    if (comm_end == std::string::npos) return std::nullopt;
    if (std::sscanf(stat.c_str() + comm_end, ") %*c %d", &parent) != 1) return std::nullopt;
    return parent;
}

}  // namespace

std::vector<ProcessEntry> list_processes() {
    std::vector<ProcessEntry> processes;
    for (const pid_t pid : list_numbers("/proc")) {
        if (const auto parent = read_parent(pid)) {
            processes.push_back({.pid = pid, .parent = *parent});
        }
    }
    return processes;
}

std::vector<pid_t> descendants_of(pid_t root, const std::vector<ProcessEntry>& processes) {
    std::unordered_multimap<pid_t, pid_t> children;
    for (const ProcessEntry& process : processes)
        children.emplace(process.parent, process.pid);
    std::vector<pid_t> found;
    const auto add_children_of = [&](pid_t parent) {
        const auto [first, last] = children.equal_range(parent);
        for (auto child = first; child != last; ++child)
            found.push_back(child->second);
        children.erase(first, last);
    };
    add_children_of(root);
    for (std::size_t next = 0; next < found.size(); ++next)
        add_children_of(found[next]);
    return found;
}

std::string read_environment(pid_t pid) {
    return read_whole(proc_path(pid, "environ"));
}

bool environment_has(std::string_view environment, std::string_view variable) {
    while (!environment.empty()) {
        const std::size_t end = environment.find('\0');
        if (environment.substr(0, end) == variable) return true;
        if (end == std::string_view::npos) return false;
        environment.remove_prefix(end + 1);
    }
    return false;
}

bool has_other_threads() {
    return list_numbers("/proc/self/task").size() > 1 + kThreadsOfTheRuntime;
}

}  // namespace sekali::process
