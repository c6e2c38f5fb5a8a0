#pragma once

#include "engine/model.hpp"
#include "engine/worker_machine.hpp"
#include "sekali/policy.hpp"

namespace sekali::client {

// The public names of policies and the engine's are the same in the same order, which is checked
// here.
namespace policies {
template <typename To, typename From>
constexpr bool same(To to, From from) {
    return static_cast<int>(to) == static_cast<int>(from);
}
static_assert(same(engine::Effects::kOutside, Effects::kOutside) &&
              same(engine::Effects::kSteps, Effects::kSteps) &&
              same(engine::Effects::kCommit, Effects::kCommit));
static_assert(same(engine::OnUnknown::kRerun, OnUnknown::kRerun) &&
              same(engine::OnUnknown::kProbe, OnUnknown::kProbe) &&
              same(engine::OnUnknown::kHold, OnUnknown::kHold));
static_assert(same(engine::OnBusy::kWait, OnBusy::kWait) &&
              same(engine::OnBusy::kSkip, OnBusy::kSkip) &&
              same(engine::OnBusy::kFail, OnBusy::kFail));
static_assert(same(engine::OnLockUnavailable::kWait, OnLockUnavailable::kWait) &&
              same(engine::OnLockUnavailable::kFail, OnLockUnavailable::kFail) &&
              same(engine::OnLockUnavailable::kProceed, OnLockUnavailable::kProceed));
static_assert(same(engine::RecordMode::kKept, Record::kKept) &&
              same(engine::RecordMode::kNone, Record::kNone));
static_assert(same(engine::UniqueUntil::kEnd, UniqueUntil::kEnd) &&
              same(engine::UniqueUntil::kStart, UniqueUntil::kStart));
static_assert(same(engine::OnDuplicate::kKeep, OnDuplicate::kKeep) &&
              same(engine::OnDuplicate::kReplace, OnDuplicate::kReplace));
}  // namespace policies

[[nodiscard]] constexpr engine::Effects to_engine(Effects value) {
    return static_cast<engine::Effects>(value);
}
[[nodiscard]] constexpr engine::OnUnknown to_engine(OnUnknown value) {
    return static_cast<engine::OnUnknown>(value);
}
[[nodiscard]] constexpr engine::OnBusy to_engine(OnBusy value) {
    return static_cast<engine::OnBusy>(value);
}
[[nodiscard]] constexpr engine::OnLockUnavailable to_engine(OnLockUnavailable value) {
    return static_cast<engine::OnLockUnavailable>(value);
}
[[nodiscard]] constexpr engine::RecordMode to_engine(Record value) {
    return static_cast<engine::RecordMode>(value);
}
[[nodiscard]] constexpr engine::UniqueUntil to_engine(UniqueUntil value) {
    return static_cast<engine::UniqueUntil>(value);
}
[[nodiscard]] constexpr engine::OnDuplicate to_engine(OnDuplicate value) {
    return static_cast<engine::OnDuplicate>(value);
}

}  // namespace sekali::client
