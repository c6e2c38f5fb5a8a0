#include <exception>

#include "backends/sqlite/errors.hpp"
#include "backends/sqlite/session.hpp"
#include "backends/sqlite/tables.hpp"
#include "sekali/transaction.hpp"

// Handlers' own writes.
namespace sekali::sqlite {
Result<void> SqliteTables::run_effects(const std::function<Result<void>(Transaction&)>& effects) {
    Query(statements_, Sql::kSavepoint).run();
    Result<void> result;
    try {
        Session session(connection_, user_sql_, *this);
        Transaction transaction(session);
        result = effects(transaction);
    } catch (const Failure& failure) {
        result = failure.error();
    } catch (const std::exception& thrown) {
        result = refused(thrown.what(), {});
    } catch (...) {
        result = refused("an effect threw something unknown", {});
    }
    // Nothing of the group is left: it cannot go on, and each of its tasks runs again alone.
    if (!connection_.in_transaction()) {
        throw Failure(result ? refused("an effect ended the whole transaction", {})
                             : result.error());
    }
    if (!result) {
        Query(statements_, Sql::kSavepointRollBack).run();
        rolled_back();
    }
    Query(statements_, Sql::kSavepointRelease).run();
    return result;
}

}  // namespace sekali::sqlite
