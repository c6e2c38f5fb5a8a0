#include "client/child_env.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <limits>
#include <utility>

#include "base/errors.hpp"
#include "base/limits.hpp"
#include "client/environment.hpp"
#include "client/step_key.hpp"

namespace sekali::client {
namespace {

constexpr std::string_view kOwnPrefix = "SEKALI_";
/// Worker, delivery and fence: what guards the writes of a run beside its job and epoch.
constexpr std::string_view kRunToken = "SEKALI_RUN";

std::string variable(std::string_view name) {
    return environment_variable(name).value_or("");
}

Error damaged(std::string_view name) {
    return base::usage_error(fmt::format("{} is damaged", name),
                             "run sekali step from the handler itself, with its environment");
}

/// `worker:delivery:fence`; a worker's name holds no colon.
bool read_token(std::string_view token, engine::RunRef& run) {
    std::array<std::string_view, 3> parts;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const bool last = i + 1 == parts.size();
        const std::size_t end = last ? token.size() : token.find(':');
        if (end == std::string_view::npos) return false;
        parts.at(i) = token.substr(0, end);
        token.remove_prefix(last ? end : end + 1);
    }
    constexpr auto kAny = std::numeric_limits<std::uint64_t>::max();
    const auto delivery = base::parse_count("delivery", parts[1], 0, kAny);
    const auto fence = base::parse_count("fence", parts[2], 0, kAny);
    if (parts[0].empty() || !delivery.ok() || !fence.ok()) return false;
    run.worker = parts[0];
    run.delivery = *delivery;
    run.fence = *fence;
    return true;
}

}  // namespace

std::vector<std::string> child_environment(const ChildRun& run, const StoreAddress& store) {
    std::vector<std::string> env;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        if (!std::string_view(*entry).starts_with(kOwnPrefix)) env.emplace_back(*entry);
    }
    const engine::RunRef& ref = run.ref;
    const auto set = [&env](std::string_view name, std::string_view value) {
        env.push_back(fmt::format("{}={}", name, value));
    };
    set("SEKALI_JOB_ID", ref.job_id);
    set("SEKALI_KIND", ref.record.kind);
    set("SEKALI_QUEUE", run.queue);
    set("SEKALI_KEY", ref.record.key);
    set("SEKALI_LOCK_KEY", ref.lock_key);
    set("SEKALI_ATTEMPT", std::to_string(run.attempt));
    set("SEKALI_EPOCH", std::to_string(ref.epoch));
    set("SEKALI_STEP_KEY_PREFIX", step_key_prefix(ref.record));
    set("SEKALI_DEADLINE_MS", std::to_string(run.deadline_ms));
    set("SEKALI_URL", store.url);
    set("SEKALI_NAMESPACE", store.ns);
    set(kRunToken, fmt::format("{}:{}:{}", ref.worker, ref.delivery, ref.fence));
    return env;
}

Result<std::optional<engine::RunRef>> run_of_environment() {
    const std::string token = variable(kRunToken);
    if (token.empty()) return std::optional<engine::RunRef>();
    engine::RunRef run;
    if (!read_token(token, run)) return damaged(kRunToken);
    const auto epoch = base::parse_count("SEKALI_EPOCH", variable("SEKALI_EPOCH"), 1,
                                         std::numeric_limits<std::uint64_t>::max());
    if (!epoch.ok()) return damaged("SEKALI_EPOCH");
    run.epoch = *epoch;
    run.job_id = variable("SEKALI_JOB_ID");
    run.record = {variable("SEKALI_NAMESPACE"), variable("SEKALI_KIND"), variable("SEKALI_KEY")};
    run.lock_key = variable("SEKALI_LOCK_KEY");
    return std::optional(std::move(run));
}

StoreAddress store_of_environment() {
    return {variable("SEKALI_URL"), variable("SEKALI_NAMESPACE")};
}

}  // namespace sekali::client
