#pragma once

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "backends/rows/row_ports.hpp"
#include "engine/tables.hpp"
#include "sekali/result.hpp"

namespace sekali::sqlite {
struct SqliteOptions;
}
namespace sekali::postgres {
struct PostgresOptions;
}

namespace sekali::client {

/// While it lives a worker is provably alive; afterwards it is provably dead, where the store can
/// tell. Move-only.
struct Liveness {
    int descriptor = -1;  ///< To be inherited by the worker's guard; -1: the store cannot tell.
    std::shared_ptr<void> hold{};
};

/// An opened store with its ports. Thread-safe.
class Backend {
 public:
    using HoldLiveness = std::function<Result<Liveness>(std::string_view worker)>;

    Backend(
        std::string url, std::unique_ptr<engine::Executor> executor,
        HoldLiveness hold = [](std::string_view) -> Result<Liveness> { return Liveness{}; })
        : url_(std::move(url)),
          executor_(std::move(executor)),
          ports_(*executor_),
          hold_liveness_(std::move(hold)) {}

    /// For people to read: it holds no secret.
    [[nodiscard]] const std::string& url() const { return url_; }
    [[nodiscard]] engine::Executor& executor() { return *executor_; }
    [[nodiscard]] rows::RowPorts& ports() { return ports_; }

    /// Runs one piece of work in a transaction and waits until it is durable. Not to be called from
    /// the executor's own thread.
    [[nodiscard]] Result<void> run(std::function<void(engine::Tables&)> work);
    /// As above, without the waiting: the answer comes when it is durable. What `work` uses must
    /// outlive that.
    [[nodiscard]] std::future<Result<void>> start(std::function<void(engine::Tables&)> work);
    /// To be called before the worker's first claim.
    [[nodiscard]] Result<Liveness> hold_liveness(std::string_view worker) const {
        return hold_liveness_(worker);
    }

 private:
    std::string url_;
    std::unique_ptr<engine::Executor> executor_;
    rows::RowPorts ports_;
    HoldLiveness hold_liveness_;
};

/// Opens a store by its URL: `sqlite:PATH`, `sqlite:PATH?synchronous=normal`, `postgres://…`, whose
/// schema must be there, `memory:`; that in the user's state folder when it is empty. Errors:
/// `kUsage` for what is not built in, else what the store says.
[[nodiscard]] Result<std::shared_ptr<Backend>> open_backend(std::string_view url);

/// The same for options that are known; `url` is for people to read. Errors: what the store says.
[[nodiscard]] Result<std::shared_ptr<Backend>> open_sqlite(std::string url,
                                                           sqlite::SqliteOptions options);
[[nodiscard]] Result<std::shared_ptr<Backend>> open_postgres(std::string url,
                                                             postgres::PostgresOptions options);

}  // namespace sekali::client
