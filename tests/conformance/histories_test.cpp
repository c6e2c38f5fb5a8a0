#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <memory>
#include <vector>

#include "conformance/backend.hpp"
#include "conformance/history.hpp"

// Random histories: every store gives the same answers and keeps the same rows, no row breaks a
// promise, and whatever happened, everything ends.
namespace sekali::conformance {
namespace {

rc::Gen<Op> any_op() {
    using What = Op::What;
    const auto what = rc::gen::weightedElement<What>({{8, What::kEnqueue},
                                                      {10, What::kClaim},
                                                      {16, What::kBegin},
                                                      {14, What::kSettle},
                                                      {3, What::kRenew},
                                                      {5, What::kStep},
                                                      {4, What::kStepDone},
                                                      {3, What::kAnswer},
                                                      {2, What::kGiveBack},
                                                      {5, What::kRecover},
                                                      {2, What::kHeartbeat},
                                                      {2, What::kKill},
                                                      {6, What::kAdvance},
                                                      {4, What::kLock},
                                                      {8, What::kPeople},
                                                      {1, What::kPrune}});
    return rc::gen::build<Op>(rc::gen::set(&Op::what, what),
                              rc::gen::set(&Op::a, rc::gen::inRange(0, 60)),
                              rc::gen::set(&Op::b, rc::gen::inRange(0, 60)),
                              rc::gen::set(&Op::c, rc::gen::inRange(0, 60)));
}

TEST(Histories, EveryStoreAnswersAlikeKeepsItsPromisesAndLosesNothing) {
    // Opening a store costs more than a history, so some share one, each in its own namespace.
    constexpr int kShare = 20;
    std::vector<std::unique_ptr<Backend>> stores;
    int cases = 0;
    const bool same = rc::check([&] {
        const auto ops = *rc::gen::resize(150, rc::gen::container<std::vector<Op>>(any_op()));
        if (cases % kShare == 0) {
            stores.clear();
            for (const BackendKind& kind : backends())
                stores.push_back(kind.make());
        }
        History history(stores, ++cases);
        int played = 0;
        for (const Op& op : ops) {
            history.play(op);
            if (++played % 10 == 0) history.compare_rows();
        }
        history.compare_rows();
        history.finish();
        history.compare_rows();
    });
    EXPECT_TRUE(same);
}

}  // namespace
}  // namespace sekali::conformance
