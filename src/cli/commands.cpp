#include "cli/commands.hpp"

#include "cli/command_table.hpp"

namespace sekali::cli {
namespace {

// In the order of the help; the commands of a group stand together.
constexpr const CommandSpec* kCommands[] = {
    &kEnqueueCommand,    &kWorkCommand,        &kOnceCommand,        &kLockCommand,        //
    &kStepCommand,                                                                         //
    &kJobShowCommand,    &kJobListCommand,     &kJobCancelCommand,   &kJobRetryCommand,    //
    &kDeadListCommand,   &kDeadShowCommand,    &kDeadRetryCommand,   &kDeadDropCommand,    //
    &kHeldListCommand,   &kHeldResolveCommand,                                             //
    &kQueueListCommand,  &kQueuePauseCommand,  &kQueueResumeCommand, &kQueuePurgeCommand,  //
    &kUniqueListCommand, &kUniqueFreeCommand,                                              //
    &kWorkerListCommand,                                                                   //
    &kLocksListCommand,  &kLocksShowCommand,   &kLocksBreakCommand,                        //
    &kExplainCommand,    &kDoctorCommand,      &kStatusCommand,      &kCheckCommand,
    &kReconcileCommand,                                                               //
    &kPruneCommand,      &kMigrateCommand,     &kBackoffCommand,     &kBenchCommand,  //
    &kDemoCommand,                                                                    //
};

constexpr GroupSpec kGroups[] = {
    {"job", "look at jobs, cancel them, run a waiting retry now"},
    {"dead", "dead letters: look, retry, drop"},
    {"held", "jobs that wait for an answer: look, resolve"},
    {"queue", "queues: look, pause, resume, purge"},
    {"unique", "slots of unique keys: look, free"},
    {"worker", "who is alive"},
    {"locks", "locks by name: look, break"},
};

}  // namespace

AppSpec sekali_app() {
    return {.commands = kCommands, .groups = kGroups};
}

}  // namespace sekali::cli
