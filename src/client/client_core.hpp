#pragma once

#include <memory>
#include <utility>

#include "client/backend.hpp"
#include "client/prepare.hpp"
#include "engine/transaction_access.hpp"
#include "sekali/client.hpp"

namespace sekali::internal {

/// What the copies of one `Client` share.
class ClientCore {
 public:
    ClientCore(std::shared_ptr<client::Backend> backend, client::EnqueueScope scope)
        : backend_(std::move(backend)), scope_(std::move(scope)) {}

    [[nodiscard]] client::Backend& backend() const { return *backend_; }
    [[nodiscard]] const std::shared_ptr<client::Backend>& shared_backend() const {
        return backend_;
    }
    [[nodiscard]] const client::EnqueueScope& scope() const { return scope_; }

 private:
    std::shared_ptr<client::Backend> backend_;
    client::EnqueueScope scope_;
};

/// The way from the rooms below to a `Client` and back.
class ClientAccess {
 public:
    [[nodiscard]] static Client make(std::shared_ptr<ClientCore> core) {
        return Client(std::move(core));
    }
    [[nodiscard]] static ClientCore& core(const Client& client) { return *client.core_; }
};

}  // namespace sekali::internal
