#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "client/local_runner.hpp"
#include "engine/worker_machine.hpp"
#include "sekali/worker.hpp"

namespace sekali::client {

/// A kind that is handled in this process.
struct LocalHandler {
    std::function<Outcome(Context&)> handler;
    LocalProbe probe;
    HandlerOptions options;  ///< What its code says.
};

/// What flags, environment and configuration file say of one kind.
struct KindSettings {
    HandlerOptions options;
    std::vector<std::string> exec;   ///< Command that handles it; empty: none.
    std::vector<std::string> probe;  ///< Command that is asked about unknown runs; empty: none.
    std::string http;                ///< Address that handles it; empty: none.
};

/// Makes what runs HTTP handlers, by kind and URL. Programs without HTTP handlers need not link it.
using MakeHttpRunner = std::function<std::unique_ptr<Runner>(
    const std::map<std::string, std::string, std::less<>>& urls, std::shared_ptr<Inbox> inbox,
    std::size_t requests)>;

/// `over` where it says something, else `under`.
[[nodiscard]] HandlerOptions merged(const HandlerOptions& over, const HandlerOptions& under);

/// Refuses options out of range, naming the kind. Errors: `kUsage`.
[[nodiscard]] Result<void> check_handler_options(std::string_view kind,
                                                 const HandlerOptions& options);
[[nodiscard]] Result<void> check_worker_options(const WorkerOptions& options);

/// How a kind is handled; decides what can be asked about its runs and whether they can be killed.
enum class HandledBy : std::uint8_t { kLocal, kExec, kHttp };
[[nodiscard]] engine::KindSetup kind_setup(const HandlerOptions& options, HandledBy by,
                                           bool has_probe);

/// The handler inside all middleware, the first one outermost.
[[nodiscard]] std::function<Outcome(Context&)> wrapped(std::function<Outcome(Context&)> handler,
                                                       const std::vector<Middleware>& middleware);

/// What `concurrency = 0` means on this machine.
[[nodiscard]] std::size_t default_concurrency();

}  // namespace sekali::client
