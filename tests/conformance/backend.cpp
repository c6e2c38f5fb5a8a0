#include "conformance/backend.hpp"

#include "backends/memory/memory_store.hpp"

namespace sekali::conformance {
namespace {

class MemoryBackend final : public Backend {
 public:
    engine::Executor& executor() override { return store_; }
    void pump() override { store_.run_all(); }
    void advance(engine::Millis by) override { store_.advance(by); }
    void set_fate(const std::string& worker, engine::OwnerFate fate) override {
        store_.set_fate(worker, fate);
    }

 private:
    memory::MemoryStore store_;
};

}  // namespace

std::unique_ptr<Backend> make_memory_backend() {
    return std::make_unique<MemoryBackend>();
}

const std::vector<BackendKind>& backends() {
    static const std::vector<BackendKind> kinds{{"memory", make_memory_backend},
                                                {"sqlite", make_sqlite_backend},
                                                {"postgres", make_postgres_backend}};
    return kinds;
}

}  // namespace sekali::conformance
