#include "backends/sqlite/memory_statistics.hpp"
#include "cli/commands.hpp"

int main(int argc, char** argv) {
    using namespace sekali::cli;
    sekali::sqlite::forgo_memory_statistics();
    return run_app(sekali_app(), {argv + (argc > 0 ? 1 : 0), argv + argc}, process_environment());
}
