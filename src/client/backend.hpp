#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "backends/rows/row_ports.hpp"
#include "engine/tables.hpp"
#include "sekali/result.hpp"

namespace sekali::client {

/// An opened store with its ports. Thread-safe.
class Backend {
 public:
    Backend(std::string url, std::unique_ptr<engine::Executor> executor)
        : url_(std::move(url)), executor_(std::move(executor)), ports_(*executor_) {}

    [[nodiscard]] const std::string& url() const { return url_; }
    [[nodiscard]] engine::Executor& executor() { return *executor_; }
    [[nodiscard]] rows::RowPorts& ports() { return ports_; }

    /// Runs one piece of work in a transaction and waits until it is durable. Not to be called from
    /// the executor's own thread.
    [[nodiscard]] Result<void> run(std::function<void(engine::Tables&)> work);

 private:
    std::string url_;
    std::unique_ptr<engine::Executor> executor_;
    rows::RowPorts ports_;
};

/// The store that is used without a URL: `sqlite:` in the user's state folder, never in the current
/// one.
[[nodiscard]] std::string default_url();

/// Opens a store by its URL; the default one when it is empty. Errors: `kUsage` for a scheme that
/// is not built in, else what the store says.
[[nodiscard]] Result<std::shared_ptr<Backend>> open_backend(std::string_view url);

}  // namespace sekali::client
