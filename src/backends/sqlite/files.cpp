#include "backends/sqlite/files.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <string_view>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "backends/sqlite/errors.hpp"
#include "backends/sqlite/fd.hpp"
#include "base/errors.hpp"

namespace sekali::sqlite {
namespace {

namespace fs = std::filesystem;

struct FileSystem {
    std::uint32_t magic;
    std::string_view name;
};

// Numbers of statfs(2), and of the kernel's sources where linux/magic.h leaves them out.
constexpr std::array kRefused{
    FileSystem{NFS_SUPER_MAGIC, "NFS"},
    FileSystem{SMB_SUPER_MAGIC, "SMB"},
    FileSystem{CIFS_SUPER_MAGIC, "CIFS"},
    FileSystem{SMB2_SUPER_MAGIC, "SMB2"},
    FileSystem{FUSE_SUPER_MAGIC, "FUSE"},
    FileSystem{V9FS_MAGIC, "9p"},
    FileSystem{AFS_SUPER_MAGIC, "AFS"},
    FileSystem{CODA_SUPER_MAGIC, "Coda"},
    FileSystem{CEPH_SUPER_MAGIC, "Ceph"},
    FileSystem{OCFS2_SUPER_MAGIC, "OCFS2"},
    FileSystem{0x01161970, "GFS2"},
    FileSystem{0x0BD00BD0, "Lustre"},
    FileSystem{0x786F4256, "a VirtualBox share"},
};

Result<void> make_folder(const fs::path& folder) {
    if (folder.empty() || fs::exists(folder)) return {};
    if (auto made = make_folder(folder.parent_path()); !made) return made;
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
        return system_error(errno, "create the folder", folder.string());
    }
    return {};
}

Result<void> check_file_system(const fs::path& folder) {
    struct statfs found {};
    if (::statfs(folder.c_str(), &found) != 0) {
        return system_error(errno, "look at the folder", folder.string());
    }
    const auto name = network_file_system(static_cast<std::uint32_t>(found.f_type));
    if (!name) return {};
    return refused("sqlite: " + folder.string() + " lies on " + std::string(*name) +
                       ", where the locks and the shared memory of SQLite cannot be relied on",
                   "put the database on a local disk; share work between hosts through postgres:");
}

}  // namespace

std::optional<std::string_view> network_file_system(std::uint32_t magic) {
    const auto found = std::find_if(kRefused.begin(), kRefused.end(),
                                    [&](const FileSystem& row) { return row.magic == magic; });
    if (found == kRefused.end()) return std::nullopt;
    return found->name;
}

Result<void> prepare_file(const SqliteOptions& options) {
    if (options.path.empty()) return base::usage_error("sqlite: needs the path of a file");
    std::error_code failure;
    const fs::path path = fs::absolute(options.path, failure);
    const fs::path folder = path.parent_path();
    const bool exists = fs::exists(path, failure);
    const bool create = options.create && !options.read_only;
    if (!exists && !create) {
        Error error = refused("sqlite: there is no database " + path.string(), "check the path");
        error.code = ErrorCode::kNotFound;
        return error;
    }
    if (exists && fs::is_directory(path, failure)) {
        return base::usage_error("sqlite: " + path.string() + " is a folder");
    }
    if (create) {
        if (auto made = make_folder(folder); !made) return made;
    }
    if (!options.allow_network_file_system) {
        if (auto local = check_file_system(folder); !local) return local;
    }
    if (exists) return {};
    // Made here and not by SQLite, which would let everybody read it. Only a file that did not
    // exist may be closed again: that of an open database would lose its locks.
    const Fd made(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!made.valid() && errno != EEXIST) return system_error(errno, "create", path.string());
    return {};
}

}  // namespace sekali::sqlite
