#include "backends/sqlite/files.hpp"

#include <fstream>
#include <thread>

#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "backends/sqlite/schema.hpp"
#include "unit/sqlite/child.hpp"
#include "unit/sqlite/temp_database.hpp"

// Files: how they are made, and what is said when they cannot be used.
namespace sekali::sqlite {
namespace {

using engine::JobRow;
using engine::Tables;
using namespace std::chrono_literals;

JobRow job(const std::string& id, std::size_t payload_bytes = 2) {
    JobRow row;
    row.job.id = row.job.key = id;
    row.job.kind = "k";
    row.job.payload = std::string(payload_bytes, ' ');
    return row;
}

void insert(Tables& tables, JobRow row) {
    tables.insert_job(row);
}

Error error_of(SqliteOptions options) {
    const auto store = SqliteStore::open(std::move(options));
    return store.ok() ? Error{.message = "it was opened"} : store.error();
}

void run_sql(const std::string& path, const std::string& sql) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(db);
    sqlite3_close(db);
}

mode_t mode_of(const std::filesystem::path& path) {
    struct stat found {};
    EXPECT_EQ(::stat(path.c_str(), &found), 0) << path;
    return found.st_mode & 0777;
}

class SqliteFilesTest : public testing::Test {
 protected:
    TempDatabase database_;
};

TEST_F(SqliteFilesTest, FilesAndFoldersAreTheirOwnersOnly) {
    SqliteOptions options = database_.options();
    options.path = database_.folder() / "new" / "folders" / "jobs.db";
    const auto store = SqliteStore::open(options).value();
    const auto handle = store->hold_liveness("w").value();
    write(*store, [](Tables& tables) { insert(tables, job("a")); });
    EXPECT_EQ(mode_of(database_.folder() / "new"), 0700U);
    EXPECT_EQ(mode_of(database_.folder() / "new" / "folders"), 0700U);
    for (const char* beside : {"", "-wal", "-shm", "-gate", "-wake", "-alive"})
        EXPECT_EQ(mode_of(options.path + beside), 0600U) << beside;
}

TEST_F(SqliteFilesTest, WhatLiesBesideASymbolicLinkLiesBesideItsTarget) {
    std::filesystem::create_directory(database_.folder() / "real");
    static_cast<void>(database_.open());
    const auto link = database_.folder() / "real" / "link.db";
    std::filesystem::create_symlink(database_.path(), link);
    SqliteOptions options = database_.options();
    options.path = link;
    const auto store = SqliteStore::open(options).value();
    EXPECT_EQ(std::filesystem::canonical(store->path()), std::filesystem::canonical(link));
    EXPECT_FALSE(std::filesystem::exists(link.string() + "-gate"));
}

TEST_F(SqliteFilesTest, AMissingFileIsOnlyMadeWhereThatIsWanted) {
    SqliteOptions options = database_.options();
    options.create = false;
    EXPECT_EQ(error_of(options).code, ErrorCode::kNotFound);
    options.create = true;
    options.read_only = true;
    EXPECT_EQ(error_of(options).code, ErrorCode::kNotFound);
    EXPECT_FALSE(std::filesystem::exists(database_.path()));
    options.path.clear();
    EXPECT_EQ(error_of(options).code, ErrorCode::kUsage);
    options.path = database_.folder();
    EXPECT_EQ(error_of(options).code, ErrorCode::kUsage);
}

TEST_F(SqliteFilesTest, NetworkFileSystemsAreKnown) {
    EXPECT_EQ(network_file_system(NFS_SUPER_MAGIC), "NFS");
    EXPECT_EQ(network_file_system(FUSE_SUPER_MAGIC), "FUSE");
    EXPECT_EQ(network_file_system(V9FS_MAGIC), "9p");
    EXPECT_EQ(network_file_system(0xFE534D42), "SMB2");
    for (const std::uint32_t local :
         std::initializer_list<std::uint32_t>{EXT4_SUPER_MAGIC, BTRFS_SUPER_MAGIC, XFS_SUPER_MAGIC,
                                              TMPFS_MAGIC, OVERLAYFS_SUPER_MAGIC})
        EXPECT_EQ(network_file_system(local), std::nullopt);
}

TEST_F(SqliteFilesTest, WhatIsNoDatabaseIsLeftAlone) {
    std::ofstream(database_.path()) << std::string(5000, 'x');
    const Error error = error_of(database_.options());
    EXPECT_EQ(error.code, ErrorCode::kRefused);
    EXPECT_EQ(error.backend_code, "SQLITE_NOTADB");
    EXPECT_EQ(std::filesystem::file_size(database_.path()), 5000U);
}

TEST_F(SqliteFilesTest, ADamagedDatabaseIsNamedSo) {
    static_cast<void>(database_.open());
    run_sql(database_.path(), "PRAGMA wal_checkpoint(TRUNCATE)");
    {
        std::fstream file(database_.path(), std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(4096);
        file << std::string(200'000, '\x5a');
    }
    const Error error = error_of(database_.options());
    EXPECT_EQ(error.code, ErrorCode::kRefused);
    EXPECT_EQ(error.backend_code.substr(0, 14), "SQLITE_CORRUPT");
    EXPECT_FALSE(error.hint.empty());
}

TEST_F(SqliteFilesTest, ANewerSchemaIsRefusedByNumber) {
    static_cast<void>(database_.open());
    run_sql(database_.path(), "UPDATE sekali_meta SET value = 4711 WHERE name = 'schema'");
    for (const bool read_only : {false, true}) {
        SqliteOptions options = database_.options();
        options.read_only = read_only;
        const Error error = error_of(options);
        EXPECT_EQ(error.code, ErrorCode::kRefused);
        EXPECT_NE(error.message.find("schema 4711"), std::string::npos) << error.message;
        EXPECT_NE(error.message.find("up to " + std::to_string(newest_schema())),
                  std::string::npos);
    }
}

TEST_F(SqliteFilesTest, AUsersOwnDatabaseIsJoinedAndKeepsItsVersion) {
    run_sql(database_.path(),
            "CREATE TABLE jobs(id); INSERT INTO jobs VALUES(1); PRAGMA user_version = 17");
    write(*database_.open(), [](Tables& tables) { insert(tables, job("a")); });
    run_sql(database_.path(),
            "INSERT INTO jobs SELECT user_version FROM pragma_user_version "
            "WHERE user_version = 17; CREATE UNIQUE INDEX i ON jobs(id)");
}

TEST_F(SqliteFilesTest, EveryEarlierSchemaIsUpgraded) {
    for (std::int64_t version = 1; version <= newest_schema(); ++version) {
        const TempDatabase old;
        const std::string name = "/v" + std::to_string(version) + ".sql";
        std::ifstream file(SEKALI_SQLITE_FIXTURES + name);
        ASSERT_TRUE(file) << "there is no fixture " << name;
        const std::string sql(std::istreambuf_iterator<char>(file), {});
        run_sql(old.path(), sql);
        const auto store = old.open();
        read(*store, [](Tables& tables) {
            const auto live = tables.job("live-1");
            ASSERT_TRUE(live);
            EXPECT_EQ(live->job.key, "payment:1");
            EXPECT_EQ(live->job.lock_key, "order:1");
            EXPECT_EQ(tables.payload("live-1"), "{\"order\":1}");
            EXPECT_EQ(tables.finished_job("dead-1")->state, engine::JobState::kDead);
            EXPECT_EQ(tables.payload("dead-1"), "{\"order\":2}");
            const engine::RecordKey key{"default", "payment.charge", "payment:2"};
            EXPECT_EQ(tables.record(key)->epoch, 3U);
            EXPECT_EQ(tables.steps(key).size(), 1U);
            EXPECT_EQ(tables.attempts_of_key(key).size(), 1U);
            EXPECT_EQ(tables.events_of_key(key).size(), 1U);
            EXPECT_EQ(tables.lock("default", "order:1")->fence, 5U);
            EXPECT_EQ(tables.worker("worker-1")->kinds, std::vector<std::string>{"payment.charge"});
            EXPECT_TRUE(tables.queue("default", "slow")->paused);
            EXPECT_EQ(tables.epoch_floor(), 7U);
        });
        write(*store, [](Tables& tables) { insert(tables, job("new")); });
    }
}

// ---- no write access

/// The rest of the test without the rights of root, which no file mode stops.
std::string opened_by_nobody(const std::string& path, const std::string& command) {
    Child child({SEKALI_SQLITE_PROBE, "as-nobody", command, path});
    std::string output;
    for (const std::string& line : child.read_lines())
        output += line + "\n";
    return output;
}

TEST_F(SqliteFilesTest, AFileThatMayNotBeWrittenIsRefusedForWritingAndReadForReading) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs to be another user for a moment";
    {
        const auto store = database_.open();
        write(*store, [](Tables& tables) { insert(tables, job("a")); });
        // Everybody may read; the log's shared memory is there while somebody has it open.
        ::chmod(database_.path().c_str(), 0644);
        ::chmod((database_.path() + "-wal").c_str(), 0644);
        ::chmod((database_.path() + "-shm").c_str(), 0644);
        const std::string refused = opened_by_nobody(database_.path(), "try-open");
        EXPECT_NE(refused.find("refused"), std::string::npos) << refused;
        EXPECT_NE(refused.find("mode of the file"), std::string::npos) << refused;
        EXPECT_EQ(opened_by_nobody(database_.path(), "try-read"), "1 jobs\n");
    }
}

TEST_F(SqliteFilesTest, AFolderThatMayNotBeWrittenIsNamed) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs to be another user for a moment";
    const std::string refused = opened_by_nobody(database_.path(), "try-open");
    EXPECT_NE(refused.find("refused"), std::string::npos) << refused;
    EXPECT_NE(refused.find(database_.path()), std::string::npos) << refused;
}

// ---- a full disk

class SqliteFullDiskTest : public SqliteFilesTest {
 protected:
    void SetUp() override {
        if (::mount("tmpfs", database_.folder().c_str(), "tmpfs", 0, "size=4m") != 0) {
            GTEST_SKIP() << "needs the right to mount a small file system";
        }
        mounted_ = true;
    }
    void TearDown() override {
        store_.reset();
        if (mounted_) ::umount2(database_.folder().c_str(), MNT_DETACH);
    }
    void fill_disk() {
        std::ofstream ballast(ballast_, std::ios::binary);
        const std::string block(4096, 'x');
        while (ballast.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
        }
    }

    std::filesystem::path ballast_ = database_.folder() / "ballast";
    std::unique_ptr<SqliteStore> store_;
    bool mounted_ = false;
};

TEST_F(SqliteFullDiskTest, WorkContinuesWhenThereIsSpaceAgain) {
    store_ = database_.open();
    write(*store_, [](Tables& tables) { insert(tables, job("before")); });
    fill_disk();
    // Some pages may still fit into what the log has room for.
    Result<void> full;
    for (int i = 0; full.ok() && i < 100; ++i) {
        full = store_->write_sync(
            [i](Tables& tables) { insert(tables, job("full-" + std::to_string(i), 20'000)); }, 20s);
    }
    ASSERT_FALSE(full.ok());
    EXPECT_EQ(full.error().code, ErrorCode::kRefused);
    EXPECT_EQ(full.error().backend_code.substr(0, 11), "SQLITE_FULL");
    EXPECT_EQ(full.error().applied, Applied::kNo);
    EXPECT_TRUE(full.error().retryable);
    EXPECT_NE(full.error().hint.find("free space"), std::string::npos);
    read(*store_, [](Tables& tables) { EXPECT_TRUE(tables.job("before")); });

    std::filesystem::remove(ballast_);
    write(*store_, [](Tables& tables) { insert(tables, job("after")); });
    read(*store_, [](Tables& tables) {
        EXPECT_TRUE(tables.job("before"));
        EXPECT_TRUE(tables.job("after"));
    });
}

TEST_F(SqliteFullDiskTest, AFullDiskIsNamedAtTheFirstStart) {
    fill_disk();
    const Error error = error_of(database_.options());
    EXPECT_EQ(error.code, ErrorCode::kRefused) << error.message;
    std::filesystem::remove(ballast_);
    store_ = database_.open();
    write(*store_, [](Tables& tables) { insert(tables, job("after")); });
}

}  // namespace
}  // namespace sekali::sqlite
