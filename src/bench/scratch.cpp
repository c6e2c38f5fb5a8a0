#include "bench/scratch.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "base/text.hpp"
#include "sekali/result.hpp"

namespace sekali::bench {

namespace fs = std::filesystem;

Scratch::Scratch(const fs::path& parent) {
    std::string path = (fs::absolute(parent) / "sekali-bench-XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr) {
        Error error;
        error.code = errno == ENOENT ? ErrorCode::kUsage : ErrorCode::kRefused;
        error.message = fmt::format("no folder can be made in {}: {}",
                                    base::quoted(parent.string()), std::strerror(errno));
        error.hint = "choose a folder on the disk to be measured by --folder";
        throw Failure(error);
    }
    folder_ = path;
}

Scratch::~Scratch() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
}

std::string Scratch::new_database() {
    return (folder_ / fmt::format("{}.db", ++databases_)).string();
}

void Scratch::drop(const std::string& database) const {
    const std::string name = fs::path(database).filename().string();
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder_)) {
        if (entry.path().filename().string().starts_with(name)) fs::remove(entry, ignored);
    }
}

}  // namespace sekali::bench
