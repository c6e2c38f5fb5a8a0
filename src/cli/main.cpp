#include "cli/commands.hpp"

int main(int argc, char** argv) {
    using namespace sekali::cli;
    return run_app(sekali_app(), {argv + (argc > 0 ? 1 : 0), argv + argc}, process_environment());
}
