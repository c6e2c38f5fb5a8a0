#pragma once

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "client/backend.hpp"
#include "engine/tables.hpp"
#include "sekali/result.hpp"

namespace sekali::cli {

/// An opened store, as commands use it: one transaction at a time, and wait for it.
class Store {
 public:
    Store(std::unique_ptr<engine::Executor> executor, client::Backend::HoldLiveness hold_liveness,
          std::string url)
        : executor_(std::move(executor)),
          hold_liveness_(std::move(hold_liveness)),
          url_(std::move(url)) {}

    /// How another process opens the same store.
    [[nodiscard]] const std::string& url() const { return url_; }
    [[nodiscard]] engine::Executor& executor() { return *executor_; }
    /// Makes this process provably alive as `worker`, where the store can tell.
    [[nodiscard]] Result<client::Liveness> hold_liveness(std::string_view worker) const {
        return hold_liveness_(worker);
    }

    /// Runs `work` on the rows of a transaction and returns what it returned, once that is durable.
    /// `work` may run more than once. Throws `Failure`.
    template <typename Work>
    std::invoke_result_t<Work&, engine::Tables&> transact(Work&& work) {
        using Value = std::invoke_result_t<Work&, engine::Tables&>;
        Outcome<Value> outcome;
        std::promise<Result<void>> done;
        engine::Task task;
        task.work = [&](engine::Tables& tables) { outcome.run(work, tables); };
        task.done = [&](Result<void> result) { done.set_value(std::move(result)); };
        std::vector<engine::Task> tasks;
        tasks.push_back(std::move(task));
        executor_->submit(std::move(tasks));
        done.get_future().get().value();
        return outcome.take();
    }

    /// Runs `work` on a snapshot that nobody changes. Throws `Failure`.
    template <typename Work>
    std::invoke_result_t<Work&, engine::Tables&> read(Work&& work) {
        using Value = std::invoke_result_t<Work&, engine::Tables&>;
        Outcome<Value> outcome;
        executor_->read([&](engine::Tables& tables) { outcome.run(work, tables); }).value();
        return outcome.take();
    }

 private:
    template <typename Value>
    struct Outcome {
        std::optional<Value> value;
        template <typename Work>
        void run(Work& work, engine::Tables& tables) {
            value = work(tables);
        }
        Value take() { return *std::move(value); }
    };

    std::unique_ptr<engine::Executor> executor_;
    client::Backend::HoldLiveness hold_liveness_;
    std::string url_;
};

template <>
struct Store::Outcome<void> {
    template <typename Work>
    void run(Work& work, engine::Tables& tables) {
        work(tables);
    }
    void take() {}
};

}  // namespace sekali::cli
