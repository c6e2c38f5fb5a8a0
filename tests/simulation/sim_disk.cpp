#include "simulation/sim_disk.hpp"

#include <algorithm>
#include <cstring>

namespace sekali::sim {
namespace {

constexpr std::size_t kSector = 512;
constexpr int kLongestName = 512;

int succeed(sqlite3_file* /*file*/) {
    return SQLITE_OK;
}
int succeed_with(sqlite3_file* /*file*/, int /*value*/) {
    return SQLITE_OK;
}

}  // namespace

SimDisk::SimDisk(std::uint64_t seed) : random_(seed), former_(sqlite3_vfs_find(nullptr)) {
    // What is not about files, time and sleep, stays the system's.
    vfs_ = *former_;
    vfs_.iVersion = 1;
    vfs_.zName = "sim";
    vfs_.szOsFile = sizeof(Handle);
    vfs_.mxPathname = kLongestName;
    vfs_.pNext = nullptr;
    vfs_.pAppData = this;
    vfs_.xOpen = &SimDisk::open;
    vfs_.xDelete = &SimDisk::remove;
    vfs_.xAccess = &SimDisk::access;
    vfs_.xFullPathname = &SimDisk::full_path;
    vfs_.xRandomness = &SimDisk::randomness;
    sqlite3_vfs_register(&vfs_, 1);
    sqlite3_randomness(0, nullptr);  // seeded anew, from here
}

SimDisk::~SimDisk() {
    sqlite3_vfs_unregister(&vfs_);
    sqlite3_vfs_register(former_, 1);
}

void SimDisk::apply(std::string& bytes, const Write& write) {
    if (write.cuts) {
        bytes.resize(write.offset);
        return;
    }
    bytes.resize(std::max(bytes.size(), write.offset + write.bytes.size()));
    bytes.replace(write.offset, write.bytes.size(), write.bytes);
}

void SimDisk::apply_torn(std::string& bytes, const Write& write) {
    for (std::size_t from = 0; from < write.bytes.size(); from += kSector) {
        if (random_.chance(0.5)) continue;
        apply(bytes, {.offset = write.offset + from, .bytes = write.bytes.substr(from, kSector)});
    }
}

void SimDisk::restart() {
    for (auto& [name, content] : files_) {
        // Some losses take all or nothing, most take a part.
        const double kept = random_.chance(0.2) ? 0.0 : random_.next();
        auto& writes = content.unsynced;
        for (std::size_t left = writes.size(); left > 1; --left)
            std::swap(writes[left - 1], writes[random_.below(left)]);
        content.now = content.durable;
        for (const Write& write : writes) {
            const bool is_torn = !write.cuts && random_.chance(0.1);
            if (is_torn) {
                ++torn_;
                apply_torn(content.now, write);
            } else if (random_.chance(kept)) {
                apply(content.now, write);
            } else {
                ++lost_;
            }
        }
        writes.clear();
        content.durable = content.now;
        content.shared_memory.clear();
    }
    operations_left_ = 0;
    failed_ = false;
}

bool SimDisk::fails() {
    if (operations_left_ > 0 && --operations_left_ == 0) failed_ = true;
    return failed_;
}

const sqlite3_io_methods& SimDisk::methods() {
    static const sqlite3_io_methods kMethods = [] {
        sqlite3_io_methods methods{};
        methods.iVersion = 2;
        methods.xClose = &succeed;
        methods.xRead = &SimDisk::read;
        methods.xWrite = &SimDisk::write;
        methods.xTruncate = &SimDisk::truncate;
        methods.xSync = &SimDisk::sync;
        methods.xFileSize = [](sqlite3_file* file, sqlite3_int64* size) {
            *size = static_cast<sqlite3_int64>(handle(file).content->now.size());
            return SQLITE_OK;
        };
        methods.xLock = &succeed_with;
        methods.xUnlock = &succeed_with;
        methods.xCheckReservedLock = [](sqlite3_file*, int* taken) { return *taken = SQLITE_OK; };
        methods.xFileControl = [](sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; };
        methods.xSectorSize = [](sqlite3_file*) { return static_cast<int>(kSector); };
        methods.xDeviceCharacteristics = [](sqlite3_file*) {
            return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
        };
        methods.xShmMap = &SimDisk::map_shared;
        // One connection: nobody else is there who could hold one of these.
        methods.xShmLock = [](sqlite3_file*, int, int, int) { return SQLITE_OK; };
        methods.xShmBarrier = [](sqlite3_file*) {};
        methods.xShmUnmap = &SimDisk::unmap_shared;
        return methods;
    }();
    return kMethods;
}

int SimDisk::open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out) {
    auto* disk = static_cast<SimDisk*>(vfs->pAppData);
    const std::string path = name == nullptr ? "unnamed" : name;
    handle(file).base.pMethods = nullptr;
    if (disk->failed_) return SQLITE_IOERR;
    if (!disk->files_.contains(path) && (flags & SQLITE_OPEN_CREATE) == 0) return SQLITE_CANTOPEN;
    handle(file) = {{&methods()}, disk, &disk->files_[path]};
    if (out != nullptr) *out = flags;
    return SQLITE_OK;
}

int SimDisk::remove(sqlite3_vfs* vfs, const char* name, int /*sync*/) {
    auto* disk = static_cast<SimDisk*>(vfs->pAppData);
    if (disk->fails()) return SQLITE_IOERR;
    const auto found = disk->files_.find(name);
    if (found == disk->files_.end()) return SQLITE_IOERR_DELETE_NOENT;
    found->second = {};
    return SQLITE_OK;
}

int SimDisk::access(sqlite3_vfs* vfs, const char* name, int flags, int* out) {
    auto* disk = static_cast<SimDisk*>(vfs->pAppData);
    const auto found = disk->files_.find(name);
    const bool exists = found != disk->files_.end();
    // As the system's: an empty file counts as missing where it is asked whether there is one.
    *out = exists && (flags != SQLITE_ACCESS_EXISTS || !found->second.now.empty()) ? 1 : 0;
    return SQLITE_OK;
}

int SimDisk::full_path(sqlite3_vfs* /*vfs*/, const char* name, int size, char* out) {
    sqlite3_snprintf(size, out, "%s", name);
    return SQLITE_OK;
}

int SimDisk::randomness(sqlite3_vfs* vfs, int size, char* out) {
    auto* disk = static_cast<SimDisk*>(vfs->pAppData);
    std::generate_n(out, size, [disk] { return static_cast<char>(disk->random_.bits()); });
    return size;
}

int SimDisk::read(sqlite3_file* file, void* out, int size, sqlite3_int64 offset) {
    const Handle& from = handle(file);
    if (from.disk->failed_) return SQLITE_IOERR_READ;
    const auto wanted = static_cast<std::size_t>(size);
    const auto begin = std::min(static_cast<std::size_t>(offset), from.content->now.size());
    const std::size_t there = std::min(wanted, from.content->now.size() - begin);
    std::memcpy(out, from.content->now.data() + begin, there);
    std::memset(static_cast<char*>(out) + there, 0, wanted - there);
    return there == wanted ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

int SimDisk::write(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 offset) {
    const Handle& to = handle(file);
    if (to.disk->failed_) return SQLITE_IOERR_WRITE;
    Write write{.offset = static_cast<std::size_t>(offset),
                .bytes = {static_cast<const char*>(bytes), static_cast<std::size_t>(size)}};
    apply(to.content->now, write);
    to.content->unsynced.push_back(std::move(write));
    return to.disk->fails() ? SQLITE_IOERR_WRITE : SQLITE_OK;
}

int SimDisk::truncate(sqlite3_file* file, sqlite3_int64 size) {
    const Handle& to = handle(file);
    if (to.disk->failed_) return SQLITE_IOERR_TRUNCATE;
    Write write{.offset = static_cast<std::size_t>(size), .cuts = true};
    apply(to.content->now, write);
    to.content->unsynced.push_back(std::move(write));
    return to.disk->fails() ? SQLITE_IOERR_TRUNCATE : SQLITE_OK;
}

int SimDisk::sync(sqlite3_file* file, int /*flags*/) {
    const Handle& of = handle(file);
    if (of.disk->fails()) return SQLITE_IOERR_FSYNC;
    of.content->durable = of.content->now;
    of.content->unsynced.clear();
    return SQLITE_OK;
}

int SimDisk::map_shared(sqlite3_file* file, int region, int size, int extend, void volatile** out) {
    auto& regions = handle(file).content->shared_memory;
    const auto index = static_cast<std::size_t>(region);
    *out = nullptr;
    if (index >= regions.size() && extend == 0) return SQLITE_OK;
    while (regions.size() <= index)
        regions.push_back(std::make_unique<unsigned char[]>(static_cast<std::size_t>(size)));
    *out = regions[index].get();
    return SQLITE_OK;
}

int SimDisk::unmap_shared(sqlite3_file* file, int erase) {
    if (erase != 0) handle(file).content->shared_memory.clear();
    return SQLITE_OK;
}

}  // namespace sekali::sim
