#include <exception>
#include <optional>
#include <string>
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

/// Of a user's own key; sekali's tables have none that is checked late.
bool is_unique_violation(const SqlFailure& failure) {
    return failure.error().backend_code == "23505";
}

/// Ends what the user has left open, so that the connection can be used; whether there was any.
bool end_unfinished(PGconn* connection) {
    const bool is_pipeline = PQpipelineStatus(connection) != PQ_PIPELINE_OFF;
    if (!is_pipeline && PQtransactionStatus(connection) != PQTRANS_ACTIVE) return false;
    bool is_synced = !is_pipeline || PQpipelineSync(connection) == 0;
    for (;;) {
        const ResultPtr result(PQgetResult(connection));
        if (result == nullptr && is_synced) break;
        if (PQstatus(connection) != CONNECTION_OK) break;
        const ExecStatusType status = PQresultStatus(result.get());
        if (status == PGRES_PIPELINE_SYNC) is_synced = true;
        if (status == PGRES_COPY_IN) PQputCopyEnd(connection, "it was left unfinished");
        char* row = nullptr;
        while (status == PGRES_COPY_OUT && PQgetCopyData(connection, &row, 0) > 0)
            PQfreemem(row);
    }
    PQexitPipelineMode(connection);
    return true;
}

}  // namespace

std::optional<std::string> PostgresTables::take_back_connection() {
    PGconn* connection = channel_->handle();
    const bool was_unfinished = end_unfinished(connection);
    if (PQstatus(connection) != CONNECTION_OK) throw lost_connection(PQerrorMessage(connection));
    PQsetnonblocking(connection, 1);
    if (was_unfinished) return "an effect left something unfinished on the connection";
    const PGTransactionStatusType status = PQtransactionStatus(connection);
    if (status == PQTRANS_INERROR) return "an effect went on after a statement had failed";
    if (status == PQTRANS_INTRANS) {
        try {
            // It is there only in the transaction in which it was set.
            const Command prove[] = {{&sql_.savepoint_release, {}}, {&sql_.savepoint, {}}};
            channel_->run(prove);
            return std::nullopt;
        } catch (const SqlFailure& failure) {
            if (failure.trouble() != Trouble::kOther) throw;
        }
    }
    return "the transaction is sekali's to begin and to end, and an effect has ended it";
}

void PostgresTables::begin_again() {
    const Command again[] = {{&sql_.roll_back, {}}, {&sql_.begin, {}}};
    channel_->run(again);
    forget_rows();
}

Result<void> PostgresTables::check_constraints() {
    try {
        channel_->run_one({&sql_.check_constraints, {}});
        return {};
    } catch (const SqlFailure& failure) {
        const bool is_users = failure.trouble() == Trouble::kOther || is_unique_violation(failure);
        if (!is_users) throw;
        return failure.error();
    }
}

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
    if (session.is_to_be_apart()) {
        writes();
        throw Apart{};
    }
    if (session.was_handed_over()) {
        if (auto wrong = take_back_connection(); wrong && result) result = refused(*wrong);
    }
    if (session.conflict()) throw SqlFailure(Trouble::kConflict, *session.conflict());
    if (PQtransactionStatus(channel_->handle()) == PQTRANS_INERROR && result) {
        result = refused("an effect went on after a statement had failed");
    }
    if (result && checks_effects_) result = check_constraints();
    if (!result && session.was_handed_over()) {
        writes();
        begin_again();
        return result;
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
