#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "backends/sqlite/column_updates.hpp"

namespace sekali::sqlite {

/// Every statement that a connection keeps prepared.
enum class Sql : std::uint8_t {
    kBegin,
    kBeginRead,
    kCommit,
    kSavepoint,
    kSavepointRelease,
    kSavepointRollBack,
    kDataVersion,
    kMeta,
    kPutMeta,
    kRaiseMeta,

    kLastSeq,
    kJob,
    kJobBySeq,
    kClaimedJob,
    kInsertJob,
    kFinishJob,
    kDeleteJob,
    kFinished,
    kFinishedBySeq,
    kHasFinished,
    kHasJob,
    kInsertFinished,
    kReviveJob,
    kDeleteFinished,
    kPayload,
    kFinishedPayload,
    kPromoteDue,
    kReadyPlaces,
    kReadyJobs,
    kRunning,
    kCountBegun,
    kHasJobsOf,
    kJobsOf,
    kSlotHolder,
    kSomebodyWaits,
    kFirstInLine,
    kHasLiveOfKey,
    kLiveWithKey,
    kNotWaitingWithKey,
    kLiveWithId,
    kHasDeadOfKey,
    kNextRunAt,
    kHasReady,
    kRunningServed,
    kNextLine,
    kLineJobs,
    kJobsOfKey,
    kFinishedOfKey,
    kLiveCounts,

    kRecord,
    kPutRecord,
    kDeleteRecord,
    kPrunableRecords,
    kStaleRecords,
    kSteps,
    kPutStep,
    kDeleteSteps,

    kLock,
    kPutLock,
    kDeleteLock,
    kLocksHeld,
    kLocksIdle,

    kAddAttempt,
    kAddEvent,
    kAttemptsOfKey,
    kEventsOfKey,
    kNextRecordKind,
    kRecordKeysFrom,
    kRecordKeysBefore,
    kKindsOfJobKey,
    kKindsOfFinishedKey,
    kKindOfId,
    kKindOfFinishedId,
    kJobKeysFrom,
    kJobKeysBefore,
    kFinishedKeysFrom,
    kFinishedKeysBefore,
    kPruneFinished,
    kPruneAttempts,
    kPruneEvents,

    kWorker,
    kPutWorker,
    kDeleteWorker,
    kWorkers,
    kLiveness,
    kPutLiveness,
    kDeleteLiveness,
    kOldLiveness,
    kQueue,
    kPutQueue,
    kQueues,

    kCount_,
};

inline constexpr std::size_t kSqlCount = static_cast<std::size_t>(Sql::kCount_);

[[nodiscard]] std::string_view text_of(Sql which);

/// The columns of jobs and of records that change while they live.
[[nodiscard]] UpdateText job_update();
[[nodiscard]] UpdateText record_update();

}  // namespace sekali::sqlite
