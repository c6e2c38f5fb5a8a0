#pragma once

#include "cli/spec.hpp"

// Every command's table, each defined in a file of its own.
namespace sekali::cli {

extern const CommandSpec kBackoffCommand;
extern const CommandSpec kBenchCommand;
extern const CommandSpec kCheckCommand;
extern const CommandSpec kDeadDropCommand;
extern const CommandSpec kDeadListCommand;
extern const CommandSpec kDeadRetryCommand;
extern const CommandSpec kDeadShowCommand;
extern const CommandSpec kDemoCommand;
extern const CommandSpec kDoctorCommand;
extern const CommandSpec kEnqueueCommand;
extern const CommandSpec kExplainCommand;
extern const CommandSpec kHeldListCommand;
extern const CommandSpec kHeldResolveCommand;
extern const CommandSpec kJobCancelCommand;
extern const CommandSpec kJobListCommand;
extern const CommandSpec kJobRetryCommand;
extern const CommandSpec kJobShowCommand;
extern const CommandSpec kLockCommand;
extern const CommandSpec kLocksBreakCommand;
extern const CommandSpec kLocksListCommand;
extern const CommandSpec kLocksShowCommand;
extern const CommandSpec kMigrateCommand;
extern const CommandSpec kOnceCommand;
extern const CommandSpec kPruneCommand;
extern const CommandSpec kQueueListCommand;
extern const CommandSpec kQueuePauseCommand;
extern const CommandSpec kQueuePurgeCommand;
extern const CommandSpec kQueueResumeCommand;
extern const CommandSpec kReconcileCommand;
extern const CommandSpec kStatusCommand;
extern const CommandSpec kStepCommand;
extern const CommandSpec kUniqueFreeCommand;
extern const CommandSpec kUniqueListCommand;
extern const CommandSpec kWorkCommand;
extern const CommandSpec kWorkerListCommand;

}  // namespace sekali::cli
