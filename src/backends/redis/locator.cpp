#include "backends/redis/locator.hpp"

#include <chrono>
#include <utility>

#include "backends/redis/sentinel.hpp"

namespace sekali::redis {

Locator::Locator(Loop& loop, Address address) : loop_(loop), address_(std::move(address)) {}

Locator::~Locator() = default;

void Locator::locate(Found found) {
    if (address_.topology == Topology::kSentinel) {
        return ask(
            [address = address_]() -> Result<std::vector<Endpoint>> {
                const auto primary = find_primary(address);
                if (!primary.ok()) return primary.error();
                return resolve(*primary);
            },
            std::move(found));
    }
    const HostPort host = address_.hosts.empty() ? HostPort{} : address_.hosts.front();
    auto at_once = endpoints_at_once(address_.unix_path, host);
    if (!at_once.ok() || at_once->has_value()) {
        loop_.post([found = std::move(found), at_once = std::move(at_once)]() mutable {
            if (!at_once.ok()) return found(at_once.error());
            found(**std::move(at_once));
        });
        return;
    }
    ask([host] { return resolve(host); }, std::move(found));
}

void Locator::ask(std::function<Result<std::vector<Endpoint>>()> question, Found found) {
    std::erase_if(asking_, [](const auto& asked) {
        return asked.wait_for(std::chrono::seconds{0}) == std::future_status::ready;
    });
    asking_.push_back(std::async(std::launch::async, [this, question = std::move(question),
                                                      found = std::move(found)]() mutable {
        auto answer = question();
        loop_.post([found = std::move(found), answer = std::move(answer)]() mutable {
            found(std::move(answer));
        });
    }));
}

}  // namespace sekali::redis
