#include "simulation/sim_broker.hpp"

#include <algorithm>
#include <utility>

namespace sekali::sim {
namespace {

/// The store counts on from the token of a delivery that it has taken over.
constexpr std::uint64_t kTokenStep = 1 << 20;

}  // namespace

engine::Claimed Broker::deliver(const engine::Claim& claim) {
    engine::Claimed claimed;
    while (!ready_.empty() && claimed.deliveries.size() < claim.spec.limit) {
        engine::JobRow row;
        row.job = std::move(ready_.front());
        ready_.pop_front();
        row.state = engine::JobState::kRunning;
        row.owner = claim.worker;
        row.deliveries = ++deliveries_ * kTokenStep;
        ++delivered_[row.job.id];
        unacknowledged_[row.deliveries] = {claim.worker, row.job};
        claimed.deliveries.push_back({std::move(row)});
    }
    claimed.more = !ready_.empty();
    return claimed;
}

bool Broker::give_back(const engine::RunRef& run) {
    auto job = take(run);
    const bool known = job.has_value();
    if (known) deliver_again(*std::move(job));
    return known;
}

void Broker::deliver_again(engine::Envelope job) {
    const bool dead = delivery_limit_ != 0 && delivered_.at(job.id) >= delivery_limit_;
    (dead ? dead_letters_ : ready_).push_back(std::move(job));
}

std::size_t Broker::publish_dead_letters() {
    delivery_limit_ = 0;
    const std::size_t count = dead_letters_.size();
    for (engine::Envelope& job : std::exchange(dead_letters_, {}))
        ready_.push_back(std::move(job));
    return count;
}

bool Broker::knows(const engine::RunRef& run) const {
    const auto found = unacknowledged_.find(run.delivery);
    return found != unacknowledged_.end() && found->second.worker == run.worker;
}

void Broker::disconnect(const std::string& worker) {
    for (auto& [token, delivery] : unacknowledged_) {
        if (delivery.worker == worker) deliver_again(delivery.job);
    }
    std::erase_if(unacknowledged_,
                  [&](const auto& entry) { return entry.second.worker == worker; });
}

bool Broker::has(const std::string& job) const {
    const auto is_it = [&](const auto& envelope) { return envelope.id == job; };
    return std::any_of(ready_.begin(), ready_.end(), is_it) ||
           std::any_of(dead_letters_.begin(), dead_letters_.end(), is_it) ||
           std::any_of(unacknowledged_.begin(), unacknowledged_.end(),
                       [&](const auto& entry) { return entry.second.job.id == job; });
}

std::optional<engine::Envelope> Broker::take(const engine::RunRef& run) {
    if (!knows(run)) return std::nullopt;
    const auto found = unacknowledged_.find(run.delivery);
    engine::Envelope job = std::move(found->second.job);
    unacknowledged_.erase(found);
    return job;
}

}  // namespace sekali::sim
