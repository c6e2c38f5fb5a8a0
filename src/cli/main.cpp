#include "backends/sqlite/memory_statistics.hpp"
#include "cli/commands.hpp"

/// Read by jemalloc, where it is linked: what a burst has used goes back to the system soon after.
extern "C" const char* const malloc_conf;
const char* const malloc_conf = "dirty_decay_ms:100";

int main(int argc, char** argv) {
    using namespace sekali::cli;
    sekali::sqlite::forgo_memory_statistics();
    return run_app(sekali_app(), {argv + (argc > 0 ? 1 : 0), argv + argc}, process_environment());
}
