// Enqueues one job for each id in its arguments: crash_producer URL KIND ID…

#include <cstdio>
#include <string>

#include "sekali/client.hpp"

int main(int argc, char** argv) {
    if (argc < 4) return 2;
    auto client = sekali::Client::open(argv[1]).value();
    for (int i = 3; i < argc; ++i) {
        const std::string id = argv[i];
        const auto enqueued =
            client.enqueue(sekali::RawJob{argv[2], "{}"}, {.key = "key-" + id, .id = id}).value();
        std::puts(enqueued.id.c_str());
    }
    return 0;
}
