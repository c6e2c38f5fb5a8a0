#include "backends/sqlite/gate_holder.hpp"

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include <sys/stat.h>
#include <unistd.h>

#include "backends/sqlite/gate.hpp"

namespace sekali::sqlite {
namespace {

namespace fs = std::filesystem;

struct Holder {
    std::string pid;
    std::string name;
    bool stopped = false;
};

/// Whether a line of /proc/PID/fdinfo/FD is the lock of the turn (proc(5)):
/// "lock: 1: OFDLCK ADVISORY WRITE -1 MAJOR:MINOR:INODE START END".
bool is_turn(const std::string& line, ino_t inode) {
    std::istringstream words(line);
    std::string label, number, type, mode, access, pid, file;
    std::int64_t start = -1;
    words >> label >> number >> type >> mode >> access >> pid >> file >> start;
    return label == "lock:" && type == "OFDLCK" && start == Gate::kTurn &&
           file.ends_with(":" + std::to_string(inode));
}

bool has_turn(const fs::path& process, ino_t inode) {
    std::error_code unseen;
    for (const fs::directory_entry& entry : fs::directory_iterator(process / "fdinfo", unseen)) {
        std::ifstream info(entry.path());
        for (std::string line; std::getline(info, line);) {
            if (is_turn(line, inode)) return true;
        }
    }
    return false;
}

/// "PID (NAME) STATE …", where the name may hold anything.
Holder describe(const fs::path& process) {
    Holder holder;
    holder.pid = process.filename();
    std::ifstream file(process / "stat");
    const std::string stat{std::istreambuf_iterator<char>(file), {}};
    const auto from = stat.find('(');
    const auto to = stat.rfind(") ");
    if (from == std::string::npos || to == std::string::npos) return holder;
    holder.name = stat.substr(from + 1, to - from - 1);
    holder.stopped = stat.compare(to + 2, 1, "T") == 0 || stat.compare(to + 2, 1, "t") == 0;
    return holder;
}

std::optional<Holder> find_holder(const std::string& gate_path) {
    struct stat gate {};
    if (::stat(gate_path.c_str(), &gate) != 0) return std::nullopt;
    const std::string own = std::to_string(::getpid());
    std::error_code unseen;
    for (const fs::directory_entry& entry : fs::directory_iterator("/proc", unseen)) {
        const std::string name = entry.path().filename();
        if (name.find_first_not_of("0123456789") != std::string::npos || name == own) continue;
        if (has_turn(entry.path(), gate.st_ino)) return describe(entry.path());
    }
    return std::nullopt;
}

}  // namespace

Error gate_kept(const std::string& gate_path, std::string_view otherwise) {
    Error error;
    error.code = ErrorCode::kUnreachable;
    error.retryable = true;
    error.message = "sqlite: " + std::string(otherwise);
    error.hint = "look for a stopped process that has the database open, or a slow disk";
    const std::optional<Holder> holder = find_holder(gate_path);
    if (!holder) return error;
    error.message = "sqlite: process " + holder->pid + " (" + holder->name + ")" +
                    (holder->stopped ? ", which is stopped," : "") + " kept the write gate";
    if (holder->stopped)
        error.hint = "let it go on with `kill -CONT " + holder->pid + "`, or end it";
    return error;
}

}  // namespace sekali::sqlite
