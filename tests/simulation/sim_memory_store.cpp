#include <utility>

#include "backends/memory/memory_store.hpp"
#include "simulation/sim_store.hpp"

namespace sekali::sim {
namespace {

class MemorySimStore final : public SimStore {
 public:
    explicit MemorySimStore(Clock clock) : clock_(std::move(clock)), start_(store_.now()) {}

    void submit(std::vector<engine::Task> tasks) override { store_.submit(std::move(tasks)); }
    Result<void> read(const std::function<void(engine::Tables&)>& work) override {
        return store_.read(work);
    }
    void run_all() override {
        store_.set_now(now());
        store_.run_all();
    }
    StoreTime now() const override { return start_ + clock_(); }
    void set_fate(const std::string& worker, engine::OwnerFate fate) override {
        store_.set_fate(worker, fate);
    }

 private:
    memory::MemoryStore store_;
    Clock clock_;
    StoreTime start_;
};

}  // namespace

std::unique_ptr<SimStore> make_memory_store(SimStore::Clock clock) {
    return std::make_unique<MemorySimStore>(std::move(clock));
}

}  // namespace sekali::sim
