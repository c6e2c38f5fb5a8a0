#include "engine/lease_keeper.hpp"

#include <algorithm>

namespace sekali::engine {
namespace {

constexpr int kRenewalsPerLease = 3;
constexpr int kAsksPerFailedRenewal = 4;
// Clocks of two hosts run at slightly different speeds, and the stop has to reach the handler.
constexpr int kMarginShare = 10;

}  // namespace

Lease::Lease(Millis length, LocalTime asked)
    : length_(length), asked_(asked), renew_at_(asked + length / kRenewalsPerLease) {}

LocalTime Lease::deadline() const {
    return asked_ + length_ - length_ / kMarginShare;
}

void Lease::sent(LocalTime now) {
    renew_at_ = now + length_ / kRenewalsPerLease;
}

void Lease::kept(LocalTime sent_at) {
    asked_ = std::max(asked_, sent_at);
}

void Lease::failed(LocalTime now) {
    renew_at_ = std::min(renew_at_, now + length_ / (kRenewalsPerLease * kAsksPerFailedRenewal));
}

void StoreTrust::seen(LocalTime now) {
    if (seen_ && now - *seen_ > lease_ / kRenewalsPerLease) since_.reset();
    seen_ = now;
}

void StoreTrust::answered(LocalTime sent, LocalTime now) {
    if (!since_ || now - last_sent_ > lease_ / kRenewalsPerLease) since_ = now;
    last_sent_ = std::max(last_sent_, sent);
}

void StoreTrust::failed() {
    since_.reset();
}

bool StoreTrust::whole_lease(LocalTime now) const {
    return since_ && now - *since_ >= lease_ && now - last_sent_ <= lease_ / kRenewalsPerLease;
}

LocalTime StoreTrust::whole_lease_until() const {
    if (!seen_ || !whole_lease(*seen_)) return LocalTime{};
    return std::min(last_sent_, *seen_) + lease_ / kRenewalsPerLease;
}

}  // namespace sekali::engine
