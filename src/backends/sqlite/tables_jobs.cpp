#include "backends/rows/refusals.hpp"
#include "backends/sqlite/rows.hpp"
#include "backends/sqlite/tables.hpp"

// Single job rows: reading, writing, moving between the live and the final table.
namespace sekali::sqlite {
namespace {

using engine::JobRow;
using engine::JobState;

}  // namespace

std::optional<JobRow> SqliteTables::one_job(Query& query) {
    if (!query.next()) return std::nullopt;
    JobRow row = take_job(query);
    known_.put(row);
    return row;
}

void SqliteTables::note_wait(const JobRow& row) {
    if (row.state == JobState::kWaiting) somebody_waits_ = true;
}

std::int64_t SqliteTables::next_seq() {
    if (!last_seq_) {
        Query query(statements_, Sql::kLastSeq);
        last_seq_ = query.next() ? query.take<std::int64_t>() : 0;
    }
    return ++*last_seq_;
}

std::optional<JobRow> SqliteTables::job(std::string_view id) {
    if (const JobRow* known = known_.job(id)) return *known;
    Query query(statements_, Sql::kJob, id);
    return one_job(query);
}

bool SqliteTables::insert_job(JobRow& row) {
    const bool known_new = !row.job.id.empty() && not_finished_ == row.job.id;
    if (!known_new && Query(statements_, Sql::kHasFinished, row.job.id).next()) return false;
    row.seq = next_seq();
    Query query(statements_, Sql::kInsertJob);
    bind_frozen(query, row);
    bind_changing(query, row);
    query.bind_blob(row.job.payload);
    if (query.run() == 0) return false;
    note_wait(row);
    made_news_ = true;
    return true;
}

void SqliteTables::update_job(const JobRow& row) {
    const JobRow* known = known_.job(row.job.id);
    const ColumnSet changed =
        known == nullptr ? job_updates_.all() : differing(kJobChangingFields, *known, row);
    if (changed == 0) return;
    {
        Query query(connection_, job_updates_.use(changed));
        query.bind(row.seq);
        bind_fields(query, kJobChangingFields, row, changed);
        if (query.run() == 0) rows::throw_no_job("live", row.job.id);
    }
    known_.change(row);
    note_wait(row);
    const bool moved = (changed & kJobPlacedColumns) != 0;
    if (moved && row.state != JobState::kRunning) made_news_ = true;
}

void SqliteTables::finish_job(const JobRow& row) {
    {
        Query query(statements_, Sql::kFinishJob, row.seq);
        query.skip(19);
        query.bind(row.state).bind(row.waiting_for).bind(row.waiting_name).bind(row.run_at);
        query.bind(false).bind(row.deliveries).bind(row.owner);
        bind_fields(query, kJobChangingFields, row, ~kJobPlacedColumns);
        query.bind(row.finished_at).bind(keeps_payload(row.state));
        if (query.run() == 0) rows::throw_no_job("live", row.job.id);
    }
    Query(statements_, Sql::kDeleteJob, row.seq).run();
    known_.forget_job(row.job.id);
    not_finished_.clear();
    made_news_ = true;
}

std::optional<JobRow> SqliteTables::finished_job(std::string_view id) {
    Query query(statements_, Sql::kFinished, id);
    if (query.next()) return take_job(query);
    not_finished_ = id;
    return std::nullopt;
}

void SqliteTables::insert_finished(const JobRow& row) {
    if (Query(statements_, Sql::kHasJob, row.job.id).next() ||
        Query(statements_, Sql::kHasFinished, row.job.id).next()) {
        rows::throw_job_exists(row.job.id);
    }
    JobRow final_row = row;
    if (final_row.seq == 0) final_row.seq = next_seq();
    Query query(statements_, Sql::kInsertFinished);
    bind_frozen(query, final_row);
    bind_changing(query, final_row);
    query.bind(final_row.finished_at);
    if (keeps_payload(row.state)) {
        query.bind_blob(row.job.payload);
    } else {
        query.bind_null();
    }
    query.run();
    not_finished_.clear();
    made_news_ = true;
}

void SqliteTables::revive_job(const JobRow& row) {
    {
        Query query(statements_, Sql::kReviveJob);
        bind_frozen(query, row);
        bind_changing(query, row);
        if (query.run() == 0) rows::throw_no_job("final", row.job.id);
    }
    erase_finished(row.job.id);
    note_wait(row);
    made_news_ = true;
}

void SqliteTables::erase_finished(std::string_view id) {
    if (Query(statements_, Sql::kDeleteFinished, id).run() == 0) rows::throw_no_job("final", id);
}

std::string SqliteTables::payload(std::string_view job_id) {
    {
        Query live(statements_, Sql::kPayload, job_id);
        if (live.next()) return live.take<std::string>();
    }
    Query final_row(statements_, Sql::kFinishedPayload, job_id);
    return final_row.next() ? final_row.take<std::string>() : std::string{};
}

}  // namespace sekali::sqlite
