#include "client/backend.hpp"

#include <fmt/format.h>

#include <functional>
#include <future>
#include <optional>
#include <utility>

#include "backends/memory/memory_store.hpp"
#include "backends/postgres/postgres_store.hpp"
#include "backends/sqlite/sqlite_store.hpp"
#include "backends/sqlite/url.hpp"
#include "base/errors.hpp"
#include "base/text.hpp"
#include "client/environment.hpp"

namespace sekali::client {
namespace {

constexpr std::string_view kMemoryUrl = "memory:";

Result<Liveness> hold_liveness(sqlite::SqliteStore& store, std::string_view worker) {
    auto held = store.hold_liveness(worker);
    if (!held.ok()) return held.error();
    auto hold = std::make_shared<sqlite::LivenessHandle>(*std::move(held));
    return Liveness{.descriptor = hold->descriptor(), .hold = hold};
}

}  // namespace

Result<void> Backend::run(std::function<void(engine::Tables&)> work) {
    return start(std::move(work)).get();
}

std::future<Result<void>> Backend::start(std::function<void(engine::Tables&)> work) {
    // Shared, because the answering thread may still be in it when the waiting one is gone.
    const auto durable = std::make_shared<std::promise<Result<void>>>();
    auto answer = durable->get_future();
    std::vector<engine::Task> tasks;
    tasks.push_back(
        {.work = std::move(work),
         .done = [durable](Result<void> result) { durable->set_value(std::move(result)); },
         .in_order = true});
    executor_->submit(std::move(tasks));
    return answer;
}

Result<std::shared_ptr<Backend>> open_sqlite(std::string url, sqlite::SqliteOptions options) {
    auto opened = sqlite::SqliteStore::open(std::move(options));
    if (!opened.ok()) return opened.error();
    sqlite::SqliteStore& store = **opened;
    return std::make_shared<Backend>(
        std::move(url), *std::move(opened),
        [&store](std::string_view worker) { return hold_liveness(store, worker); });
}

Result<std::shared_ptr<Backend>> open_postgres(std::string url, postgres::PostgresOptions options) {
    auto opened = postgres::PostgresStore::open(std::move(options));
    if (!opened.ok()) return opened.error();
    return std::make_shared<Backend>(std::move(url), *std::move(opened));
}

Result<std::shared_ptr<Backend>> open_backend(std::string_view url) {
    std::string chosen(url);
    if (chosen.empty()) {
        auto path = sqlite::default_path(
            [](const std::string& name) { return environment_variable(name); });
        if (!path.ok()) return path.error();
        chosen = std::string(sqlite::kScheme) + *path;
    }
    if (chosen == kMemoryUrl) {
        return std::make_shared<Backend>(
            chosen, std::make_unique<memory::MemoryStore>(memory::MemoryStore::Mode::kThreaded));
    }
    if (chosen.starts_with(sqlite::kScheme)) {
        auto options = sqlite::parse_url("url", chosen);
        if (!options.ok()) return options.error();
        return open_sqlite(std::move(chosen), *std::move(options));
    }
    if (postgres::is_postgres_url(chosen)) {
        try {
            return open_postgres(postgres::without_secrets(chosen), postgres::parse_url(chosen));
        } catch (const Failure& failure) {
            return failure.error();
        }
    }
    return base::usage_error(
        fmt::format("no store is built in for the URL scheme {}",
                    base::quoted(std::string_view(chosen).substr(0, chosen.find(':')))),
        "use sqlite:PATH or postgres://HOST/DATABASE");
}

}  // namespace sekali::client
