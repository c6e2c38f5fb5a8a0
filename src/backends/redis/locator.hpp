#pragma once

#include <functional>
#include <future>
#include <memory>
#include <vector>

#include "backends/redis/address.hpp"
#include "backends/redis/endpoints.hpp"
#include "backends/redis/loop.hpp"

namespace sekali::redis {

/// Finds where the server of an address is now. Names and Sentinels are asked on a thread of its
/// own, because a resolver blocks. Only on the loop's thread.
class Locator {
 public:
    using Found = std::function<void(Result<std::vector<Endpoint>>)>;

    Locator(Loop& loop, Address address);
    /// Waits for what is still being asked.
    ~Locator();
    Locator(const Locator&) = delete;
    Locator& operator=(const Locator&) = delete;

    /// `found` is called later, on the loop's thread.
    void locate(Found found);

 private:
    void ask(std::function<Result<std::vector<Endpoint>>()> question, Found found);

    Loop& loop_;
    const Address address_;
    std::vector<std::future<void>> asking_;
};

}  // namespace sekali::redis
