#include <exception>

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
    // What earlier tasks changed is written before the savepoint, so that going back to it undoes
    // nothing of theirs.
    query_begins();
    const Command enter[] = {{&sql_.savepoint, {}}, {&sql_.plan_freely, {}}};
    channel_->run(enter);
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
    if (session.was_in_conflict()) {
        throw SqlFailure(Trouble::kConflict,
                         result ? refused("another transaction was in the way") : result.error());
    }
    if (PQtransactionStatus(channel_->handle()) == PQTRANS_INERROR && result) {
        result = refused("an effect went on after a statement had failed");
    }
    if (!result) {
        const Command leave[] = {{&sql_.savepoint_roll_back, {}}, {&sql_.savepoint_release, {}}};
        channel_->run(leave);
        forget_rows();
        return result;
    }
    writes();
    const Command leave[] = {{&sql_.savepoint_release, {}}, {&sql_.plan_by_index, {}}};
    channel_->run(leave);
    return result;
}

}  // namespace sekali::postgres
