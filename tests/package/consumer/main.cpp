// A user's program: one job enqueued twice under one key takes effect once.
#include <atomic>
#include <cstdio>
#include <string>

#include <sekali/worker.hpp>

namespace {

struct Greet {
    std::string name;
    static constexpr std::string_view kKind = "greet";
    static constexpr auto kFields = sekali::fields(sekali::field("name", &Greet::name));
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    sekali::WorkerOptions options;
    options.drain = true;
    auto worker = sekali::Worker::open("sqlite:" + std::string(argv[1]), options).value();
    std::atomic<int> greetings = 0;
    worker.handle<Greet>([&greetings](sekali::Context&, const Greet&) { ++greetings; });
    for (int copy = 0; copy < 2; ++copy)
        worker.client().enqueue(Greet{"you"}, {.key = sekali::key("greet", "you")}).value();
    const bool drained = worker.run().value().drained;
    std::printf("consumer: %d greeting\n", greetings.load());
    return drained && greetings == 1 ? 0 : 1;
}
