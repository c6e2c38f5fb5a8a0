#include <atomic>
#include <map>

#include "backends/sqlite/sqlite_store.hpp"
#include "conformance/backend.hpp"
#include "unit/sqlite/temp_database.hpp"

namespace sekali::conformance {
namespace {

/// Clock and boot are the test's, the deaths of processes are real: a worker lives while its byte
/// of the liveness file is locked.
class SqliteBackend final : public Backend {
 public:
    engine::Executor& executor() override { return *store_; }
    void pump() override {
        // Tasks are taken in order, so what was submitted before this has been answered.
        store_->write_sync([](engine::Tables&) {}, std::chrono::seconds{60}).value();
    }
    void advance(engine::Millis by) override { clock_ += by.count(); }
    void set_fate(const std::string& worker, engine::OwnerFate fate) override {
        handles_.erase(worker);
        if (fate == engine::OwnerFate::kUnknown) return;
        auto handle = store_->hold_liveness(worker).value();
        if (fate == engine::OwnerFate::kAlive) handles_.insert_or_assign(worker, std::move(handle));
    }

 private:
    [[nodiscard]] std::unique_ptr<sqlite::SqliteStore> open() {
        sqlite::SqliteOptions options = database_.options();
        // What a power cut would take is not the subject here.
        options.synchronous = sqlite::Synchronous::kNormal;
        options.clock.boot_ms = [this] { return clock_.load(); };
        return sqlite::SqliteStore::open(std::move(options)).value();
    }

    sqlite::TempDatabase database_;
    std::atomic<std::int64_t> clock_{1'000'000};
    std::map<std::string, sqlite::LivenessHandle> handles_;
    std::unique_ptr<sqlite::SqliteStore> store_ = open();
};

}  // namespace

std::unique_ptr<Backend> make_sqlite_backend() {
    return std::make_unique<SqliteBackend>();
}

}  // namespace sekali::conformance
