#include "backends/sqlite/liveness.hpp"

#include <array>
#include <cerrno>
#include <charconv>

#include <fcntl.h>
#include <unistd.h>

#include "backends/sqlite/errors.hpp"
#include "base/ids.hpp"

namespace sekali::sqlite {
namespace {

constexpr std::size_t kNameBytes = 16;
constexpr std::size_t kNameLength = 2 * kNameBytes;
constexpr mode_t kPrivate = 0600;

/// A byte far behind the file's name, in the first half of what a lock can address.
std::int64_t random_place() {
    const std::string digits = base::random_hex(7);
    std::int64_t place = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), place, 16);
    return place + static_cast<std::int64_t>(kNameLength);
}

struct flock byte_lock(std::int64_t place) {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = place;
    lock.l_len = 1;
    return lock;
}

std::string read_name(int fd) {
    std::array<char, kNameLength> bytes{};
    const ssize_t size = ::pread(fd, bytes.data(), bytes.size(), 0);
    if (size != static_cast<ssize_t>(bytes.size())) return {};
    return {bytes.data(), bytes.size()};
}

/// Makes the file whole or not at all: a reader must never see it without its name.
Result<void> create(const std::string& path) {
    const std::string name = base::random_hex(kNameBytes);
    const std::string draft = path + "." + name;
    const Fd fd(::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kPrivate));
    if (!fd.valid()) return system_error(errno, "create", draft);
    const bool written =
        ::write(fd.get(), name.data(), name.size()) == static_cast<ssize_t>(name.size());
    const bool linked = written && (::link(draft.c_str(), path.c_str()) == 0 || errno == EEXIST);
    const int number = errno;
    ::unlink(draft.c_str());
    if (!linked) return system_error(number, "create", path);
    return {};
}

}  // namespace

Result<LivenessFile> LivenessFile::open(std::string path, bool read_only) {
    LivenessFile file;
    file.path_ = std::move(path);
    const auto open_existing = [&] { return Fd(::open(file.path_.c_str(), O_RDONLY | O_CLOEXEC)); };
    file.probe_ = open_existing();
    if (!file.probe_.valid() && errno == ENOENT && !read_only) {
        if (auto created = create(file.path_); !created) return created.error();
        file.probe_ = open_existing();
    }
    if (!file.probe_.valid()) {
        if (read_only) return file;
        return system_error(errno, "open", file.path_);
    }
    file.name_ = read_name(file.probe_.get());
    return file;
}

engine::OwnerFate LivenessFile::fate(const std::string& file, std::int64_t place) const {
    using engine::OwnerFate;
    if (name_.empty() || file != name_) return OwnerFate::kUnknown;
    struct flock lock = byte_lock(place);
    if (::fcntl(probe_.get(), F_OFD_GETLK, &lock) != 0) return OwnerFate::kUnknown;
    return lock.l_type == F_UNLCK ? OwnerFate::kDead : OwnerFate::kAlive;
}

Result<LivenessHandle> LivenessFile::hold(std::int64_t& place) const {
    Fd fd(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
    if (!fd.valid()) return system_error(errno, "open", path_);
    if (read_name(fd.get()) != name_) {
        return refused("sqlite: " + path_ + " was replaced while the database was open",
                       "start again");
    }
    for (;;) {
        place = random_place();
        struct flock lock = byte_lock(place);
        if (::fcntl(fd.get(), F_OFD_SETLK, &lock) == 0) return LivenessHandle(std::move(fd));
        if (errno != EAGAIN && errno != EACCES) return system_error(errno, "lock", path_);
    }
}

}  // namespace sekali::sqlite
