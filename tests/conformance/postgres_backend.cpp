#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "backends/postgres/postgres_store.hpp"
#include "conformance/backend.hpp"
#include "conformance/ports_of.hpp"
#include "postgres/test_server.hpp"

namespace sekali::conformance {
namespace {

/// A schema of its own on a real server; clock and deaths are the test's.
class PostgresBackend final : public Backend {
 public:
    engine::Executor& executor() override { return *store_; }
    void pump() override {
        // Tasks are taken in order, so what was submitted before these has been answered.
        std::vector<engine::Task> tasks;
        std::vector<std::future<void>> answers;
        for (const bool urgent : {false, true}) {
            auto answered = std::make_shared<std::promise<void>>();
            answers.push_back(answered->get_future());
            tasks.push_back({.work = [](engine::Tables&) {},
                             .done = [answered](const Result<void>&) { answered->set_value(); },
                             .urgent = urgent});
        }
        store_->submit(std::move(tasks));
        for (const auto& answer : answers)
            answer.wait_for(kPatience);
    }
    void advance(engine::Millis by) override { clock_ += by.count(); }
    void set_fate(const std::string& worker, engine::OwnerFate fate) override {
        const std::lock_guard guard(mutex_);
        fates_[worker] = fate;
    }

 private:
    [[nodiscard]] std::unique_ptr<postgres::PostgresStore> open() {
        postgres::PostgresOptions options = schema_.options();
        options.connections = 1;  // `pump` relies on the order
        options.clock = [this] { return engine::StoreTime{engine::Millis{clock_.load()}}; };
        options.fate = [this](std::string_view worker) {
            const std::lock_guard guard(mutex_);
            const auto known = fates_.find(worker);
            return known == fates_.end() ? engine::OwnerFate::kUnknown : known->second;
        };
        return postgres::PostgresStore::open(std::move(options)).value();
    }

    postgres::TestSchema schema_;
    std::atomic<std::int64_t> clock_{1'700'000'000'000};
    std::mutex mutex_;
    std::map<std::string, engine::OwnerFate, std::less<>> fates_;
    std::unique_ptr<postgres::PostgresStore> store_ = open();
};

}  // namespace

std::unique_ptr<Backend> make_postgres_backend() {
    return std::make_unique<PostgresBackend>();
}

}  // namespace sekali::conformance
