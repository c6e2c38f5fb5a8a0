#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/backoff.hpp"
#include "engine/operations.hpp"

// What the operations share among themselves.
namespace sekali::engine {

/// Starts of one run that nobody ended by an answer, and claims that died before begin, after which
/// a job is held (DESIGN section 3).
inline constexpr std::uint64_t kMaxInterruptions = 20;
inline constexpr std::uint64_t kMaxLostClaims = 20;

/// Clears owner and lease in one place, so that no row is ever left half reset.
void release_claim(JobRow& row);
void requeue(Tables& tables, JobRow& row, Millis delay);
void park(Tables& tables, JobRow& row, WaitFor wait, std::string_view name);
void hold_job(Tables& tables, JobRow& row, std::string reason);

/// Claim and begin at once: `row` is claimed, which the tables do not know yet. Leaves it as
/// claimed.
[[nodiscard]] BeginReply begin_claimed(Tables& tables, Begin request, JobRow& row);

/// Whether the job is running under this very claim.
[[nodiscard]] bool claim_is_mine(const std::optional<JobRow>& row, const RunRef& run);
[[nodiscard]] bool owner_is_gone(Tables& tables, std::string_view owner);
/// Begun runs that a dead worker had when its death was first seen, so that the order in which its
/// jobs are taken from it convicts nobody.
[[nodiscard]] std::uint64_t company_at_death(Tables& tables, std::string_view ns,
                                             std::string_view owner);
[[nodiscard]] bool lock_is_live(Tables& tables, const LockRow& lock);
[[nodiscard]] RecordKey record_key(const Envelope& job);
[[nodiscard]] bool has_open_step(Tables& tables, const RecordKey& key);

/// Puts the record into an ended state; dead and cancelled raise its end counter.
void end_record(Tables& tables, RecordRow& record, RecordState state);
/// Whether a run of this record that ends without an answer now leaves an unknown effect.
[[nodiscard]] bool ends_unknown(Tables& tables, const RecordRow& record);
/// Whether recovery has judged the lapse of this record's run: then its claim is gone for good, and
/// whoever begins next need not judge it again.
[[nodiscard]] bool lapse_is_judged(const RecordRow& record);
void set_lapse_judged(RecordRow& record);
/// Marks the record as unknown where the vanished run may have had an effect. Does not store it.
void mark_lost_run(Tables& tables, RecordRow& record, bool proven);
void add_attempt_of(Tables& tables, const JobRow& row, const RecordRow& record,
                    std::string_view outcome, std::string_view error);

}  // namespace sekali::engine
