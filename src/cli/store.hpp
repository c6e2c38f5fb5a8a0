#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "client/backend.hpp"
#include "engine/tables.hpp"
#include "sekali/result.hpp"

namespace sekali::cli {

/// An opened store, as commands use it: one transaction at a time, and wait for it.
class Store {
 public:
    Store(std::shared_ptr<client::Backend> backend, std::string url)
        : backend_(std::move(backend)), url_(std::move(url)) {}

    /// How another process opens the same store.
    [[nodiscard]] const std::string& url() const { return url_; }
    [[nodiscard]] client::Backend& backend() { return *backend_; }
    [[nodiscard]] engine::Executor& executor() { return backend_->executor(); }
    /// Makes this process provably alive as `worker`, where the store can tell.
    [[nodiscard]] Result<client::Liveness> hold_liveness(std::string_view worker) const {
        return backend_->hold_liveness(worker);
    }

    /// Runs `work` on the rows of a transaction and returns what it returned, once that is durable.
    /// `work` may run more than once. Throws `Failure`.
    template <typename Work>
    std::invoke_result_t<Work&, engine::Tables&> transact(Work&& work) {
        using Value = std::invoke_result_t<Work&, engine::Tables&>;
        Outcome<Value> outcome;
        backend_->run([&](engine::Tables& tables) { outcome.run(work, tables); }).value();
        return outcome.take();
    }

    /// Runs `work` on a snapshot that nobody changes. Throws `Failure`.
    template <typename Work>
    std::invoke_result_t<Work&, engine::Tables&> read(Work&& work) {
        using Value = std::invoke_result_t<Work&, engine::Tables&>;
        Outcome<Value> outcome;
        executor().read([&](engine::Tables& tables) { outcome.run(work, tables); }).value();
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

    std::shared_ptr<client::Backend> backend_;
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
