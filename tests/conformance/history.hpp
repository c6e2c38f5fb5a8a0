#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "conformance/backend.hpp"
#include "conformance/witness.hpp"
#include "engine/operations.hpp"

namespace sekali::conformance {

/// What happens next. The numbers choose among few names, so that histories meet themselves.
struct Op {
    enum class What : std::uint8_t {
        kEnqueue,
        kClaim,
        kBegin,
        kSettle,
        kRenew,
        kStep,
        kStepDone,
        kAnswer,
        kGiveBack,
        kRecover,
        kHeartbeat,
        kKill,
        kAdvance,
        kLock,
        kPeople,
        kPrune,
    } what{};
    int a = 0;
    int b = 0;
    int c = 0;
};

void showValue(const Op& op, std::ostream& out);

/// A claim, and where it has got to by the answers so far.
struct Claimed {
    engine::Begin request;
    engine::RunRef ref;
};

/// One history, played on several stores in lock step in a namespace of its own.
class History {
 public:
    History(std::vector<std::unique_ptr<Backend>>& stores, int number)
        : stores_(stores),
          ns_("case-" + std::to_string(number)),
          prefix_(std::to_string(number) + "/"),
          witness_(ns_) {}

    /// Fails the property where the stores disagree or the rows break a promise.
    void play(const Op& op);
    void compare_rows();
    /// Lets an untroubled worker and an operator who answers everything finish what is left. Fails
    /// the property when something never ends.
    void finish();

 private:
    /// Runs `work` on every store; its answer must be the same everywhere.
    void everywhere(const std::function<std::string(engine::Tables&)>& work);

    void play_enqueue(const Op& op);
    void play_claim(const Op& op);
    void play_begin(Claimed& claimed, const Op& op);
    void play_settle(const Claimed& claimed, const Op& op);
    void play_lock(const Op& op);
    void play_people(const Op& op);
    void play_run(const Op& op);
    void play_store(const Op& op);
    void finish_round();
    [[nodiscard]] bool all_ended();

    [[nodiscard]] engine::KindPolicy policy(const Op& op) const;
    [[nodiscard]] std::string job_id(int number) const;
    [[nodiscard]] std::string worker(int number) const;

    std::vector<std::unique_ptr<Backend>>& stores_;
    std::string ns_;
    std::string prefix_;
    int jobs_ = 0;
    int deaths_ = 0;
    std::vector<Claimed> claims_;
    Witness witness_;
};

}  // namespace sekali::conformance
