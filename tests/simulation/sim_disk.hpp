#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <sqlite3.h>

#include "simulation/sim_random.hpp"

namespace sekali::sim {

/// A disk under SQLite that keeps what was not synced apart: when the power fails, each such write
/// is kept, lost or torn by sectors, in any order. While one lives it is SQLite's default VFS, for
/// one connection at a time on one thread.
class SimDisk {
 public:
    explicit SimDisk(std::uint64_t seed);
    ~SimDisk();
    SimDisk(const SimDisk&) = delete;
    SimDisk& operator=(const SimDisk&) = delete;

    /// The power fails at this write or sync from now on; everything after it is an error.
    void fail_after(std::size_t operations) { operations_left_ = operations; }
    [[nodiscard]] bool has_failed() const { return failed_; }
    /// What a new start finds. Every connection must have been closed.
    void restart();
    [[nodiscard]] std::size_t lost() const { return lost_; }
    [[nodiscard]] std::size_t torn() const { return torn_; }

 private:
    struct Write {
        std::size_t offset = 0;
        std::string bytes{};
        bool cuts = false;  ///< A truncation at `offset`.
    };
    struct Content {
        std::string durable;
        std::string now;
        std::vector<Write> unsynced;
        std::vector<std::unique_ptr<unsigned char[]>> shared_memory;
    };
    struct Handle {
        sqlite3_file base;  ///< First: SQLite knows only this.
        SimDisk* disk;
        Content* content;
    };
    static void apply(std::string& bytes, const Write& write);
    void apply_torn(std::string& bytes, const Write& write);
    [[nodiscard]] bool fails();
    static const sqlite3_io_methods& methods();
    static Handle& handle(sqlite3_file* file) { return *reinterpret_cast<Handle*>(file); }

    static int open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out);
    static int remove(sqlite3_vfs* vfs, const char* name, int sync);
    static int access(sqlite3_vfs* vfs, const char* name, int flags, int* out);
    static int full_path(sqlite3_vfs* vfs, const char* name, int size, char* out);
    static int randomness(sqlite3_vfs* vfs, int size, char* out);
    static int read(sqlite3_file* file, void* out, int size, sqlite3_int64 offset);
    static int write(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 offset);
    static int truncate(sqlite3_file* file, sqlite3_int64 size);
    static int sync(sqlite3_file* file, int flags);
    static int map_shared(sqlite3_file* file, int region, int size, int extend,
                          void volatile** out);
    static int unmap_shared(sqlite3_file* file, int erase);

    SimRandom random_;
    sqlite3_vfs vfs_{};
    sqlite3_vfs* former_;
    std::map<std::string, Content> files_;
    std::size_t operations_left_ = 0;  ///< 0: the power does not fail.
    bool failed_ = false;
    std::size_t lost_ = 0;
    std::size_t torn_ = 0;
};

}  // namespace sekali::sim
