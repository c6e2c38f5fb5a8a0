#include <exception>
#include <utility>

#include "backends/postgres/session.hpp"
#include "backends/postgres/tables.hpp"
#include "sekali/transaction.hpp"

// Handlers' own writes.
namespace sekali::postgres {
namespace {

Error refused(std::string message) {
    return {.code = ErrorCode::kRefused, .message = std::move(message)};
}

}  // namespace

Result<void> PostgresTables::run_effects(const std::function<Result<void>(Transaction&)>& effects) {
    if (keeps_apart_ && !is_alone_) throw Apart{};
    has_effects_ = true;
    if (mode_ == Mode::kRehearse || !has_looked_) query_begins();
    // From here on nothing of the task may run twice in this transaction.
    mode_ = mode_ == Mode::kForesee ? Mode::kDirect : mode_;
    // What earlier tasks changed is still to be written when the savepoint is undone, and rows that
    // are read behind it are no longer locked then. So a failure ends the transaction, and this
    // task runs again by itself: only then there is nothing of others.
    if (is_alone_) flush();
    const bool has_company = !is_alone_ && is_dirty();
    if (!std::exchange(plans_freely_, true)) channel_->run_with_next({&sql_.plan_freely, {}});
    channel_->run_with_next({&sql_.savepoint, {}});
    in_savepoint_ = true;
    Session session(*channel_, *this);
    Result<void> result;
    try {
        Transaction transaction(session);
        result = effects(transaction);
    } catch (const SqlFailure& failure) {
        if (failure.trouble() == Trouble::kLost) throw;
        result = failure.error();
    } catch (const Failure& failure) {
        result = failure.error();
    } catch (const std::exception& thrown) {
        result = refused(thrown.what());
    } catch (...) {
        result = refused("an effect threw something unknown");
    }
    in_savepoint_ = false;
    if (session.conflict()) throw SqlFailure(Trouble::kConflict, *session.conflict());
    if (PQtransactionStatus(channel_->handle()) == PQTRANS_INERROR && result) {
        result = refused("an effect went on after a statement had failed");
    }
    if (!result && has_company) {
        writes();
        throw Failure(result.error());
    }
    if (!result) {
        const Command leave[] = {{&sql_.savepoint_roll_back, {}}, {&sql_.savepoint_release, {}}};
        channel_->run(leave);
        forget_rows();
        return result;
    }
    writes();
    channel_->run_with_next({&sql_.savepoint_release, {}});
    return result;
}

}  // namespace sekali::postgres
