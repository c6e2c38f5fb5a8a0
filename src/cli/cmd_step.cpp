#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "base/faults.hpp"
#include "base/ids.hpp"
#include "base/limits.hpp"
#include "base/shell_words.hpp"
#include "base/text.hpp"
#include "cli/command_table.hpp"
#include "cli/context.hpp"
#include "client/backend.hpp"
#include "client/blocking.hpp"
#include "client/child_env.hpp"
#include "client/outcomes.hpp"
#include "client/step_key.hpp"
#include "process/run_command.hpp"
#include "process/signals.hpp"

namespace sekali::cli {
namespace {

using engine::StepIntentReply;
using engine::StoreReply;

/// A probe's exit status for "it did not happen"; 0 is "it happened".
constexpr int kExitDidNotHappen = 4;
/// How long a store that does not answer is asked again: about the lease, behind which the worker
/// has stopped this process anyway.
constexpr std::chrono::milliseconds kPatience{std::chrono::seconds{15}};
constexpr std::chrono::milliseconds kPause{200};

constexpr OptionSpec kOptions[] = {
    {.name = "probe",
     .value = "CMD",
     .help = "asked when an earlier run left the step open: exits 0 and prints the result when it "
             "happened, 4 when it did not"},
};
constexpr PositionalSpec kPositionals[] = {
    {.name = "NAME", .help = "of the step, unique in its handler", .kind = ValueKind::kKey},
};

Error conflict(std::string message) {
    Error error;
    error.code = ErrorCode::kConflict;
    error.message = std::move(message);
    return error;
}

/// One step of the run that this process is a child of.
class DurableStep {
 public:
    DurableStep(CommandContext& context, engine::RunRef run, client::Backend& backend)
        : context_(context),
          run_(std::move(run)),
          name_(*context.args.positional(0)),
          probe_(context.args.text("probe")),
          backend_(backend),
          stop_(process::CommandStop::create().value()),
          signals_(process::SignalSource::install({SIGTERM, SIGINT, SIGHUP}).value()) {}

    int run();

 private:
    StepIntentReply begin(bool probe_said_no);
    StoreReply ask(const engine::StoreCommand& command);
    process::CommandResult execute(std::vector<std::string> argv);
    bool ask_probe();
    int perform();
    void record(const process::CommandResult& command);

    CommandContext& context_;
    engine::RunRef run_;
    std::string name_;
    std::optional<std::string> probe_;
    client::Backend& backend_;
    process::CommandStop stop_;
    process::SignalSource signals_;
};

int DurableStep::run() {
    StepIntentReply answer = begin(false);
    if (answer.kind == StepIntentReply::Kind::kAsk) {
        if (ask_probe()) return kExitDone;
        answer = begin(true);
    }
    switch (answer.kind) {
        case StepIntentReply::Kind::kRun:
            return perform();
        case StepIntentReply::Kind::kDone:
            context_.out.bytes(answer.result);
            return kExitDone;
        case StepIntentReply::Kind::kUsedTwice:
            throw Failure(base::usage_error(
                fmt::format("step {} was used twice in one run", base::quoted(name_)),
                "give each step of a handler a name of its own"));
        case StepIntentReply::Kind::kSuperseded:
            throw Failure(conflict("this run is over: another one has taken its key over"));
        case StepIntentReply::Kind::kAsk:
        case StepIntentReply::Kind::kHold:
            break;
    }
    throw Failure(conflict(fmt::format("nobody can tell whether step {} happened in an earlier run",
                                       base::quoted(name_))));
}

StepIntentReply DurableStep::begin(bool probe_said_no) {
    const engine::StepIntent intent{.run = run_,
                                    .name = name_,
                                    .call = base::new_uuid7(),
                                    .has_probe = probe_.has_value(),
                                    .probe_said_no = probe_said_no};
    const auto answer = std::get<StepIntentReply>(ask(intent));
    static_cast<void>(SEKALI_FAULT("step.intent.after"));
    return answer;
}

StoreReply DurableStep::ask(const engine::StoreCommand& command) {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (true) {
        auto reply = client::ask<engine::StorePort, StoreReply>(backend_.ports(), command);
        if (reply.ok()) return *std::move(reply);
        const bool again = reply.error().retryable && std::chrono::steady_clock::now() < until;
        if (!again) throw Failure(reply.error());
        backend_.executor().wait_for_change(kPause);
    }
}

process::CommandResult DurableStep::execute(std::vector<std::string> argv) {
    process::CommandOptions options;
    options.argv = std::move(argv);
    for (char** entry = environ; *entry != nullptr; ++entry)
        options.env.emplace_back(*entry);
    options.env.push_back("SEKALI_STEP=" + name_);
    options.env.push_back("SEKALI_STEP_KEY=" + client::step_key(run_.record, name_));
    options.capture_stdout = true;
    options.stdout_cap = base::kMaxResultBytes;
    context_.out.flush();
    return process::run_command(options, stop_, signals_).value();
}

/// True when the step had happened; then its result is recorded and printed.
bool DurableStep::ask_probe() {
    const auto answer = execute(base::split_command(*probe_).value());
    if (answer.started && answer.exit_status == 0) {
        record(answer);
        return true;
    }
    if (answer.started && answer.exit_status == kExitDidNotHappen) return false;
    throw Failure(conflict(fmt::format("the probe of step {} could not tell: exit status {}",
                                       base::quoted(name_), answer.exit_status)));
}

int DurableStep::perform() {
    const auto command = execute(context_.args.tail());
    if (!command.started) context_.out.note(command.error);
    if (command.exit_status != 0) return command.exit_status;
    static_cast<void>(SEKALI_FAULT("step.effect.after"));
    record(command);
    static_cast<void>(SEKALI_FAULT("step.result.after"));
    return kExitDone;
}

void DurableStep::record(const process::CommandResult& command) {
    ask(engine::StepResult{
        .run = run_,
        .name = name_,
        .result = client::capped_result(command.stdout_bytes, command.stdout_total)});
}

int run(CommandContext& context) {
    const auto run = client::run_of_environment().value();
    if (!run) {
        throw Failure(base::usage_error("sekali step runs inside a handler only",
                                        "call it from a command of sekali work or sekali once"));
    }
    const auto backend = client::open_backend(client::store_of_environment().url).value();
    return DurableStep(context, *run, *backend).run();
}

}  // namespace

const CommandSpec kStepCommand = {
    .name = "step",
    .summary = "a durable step of a handler",
    .about =
        "Inside a command of `sekali work` or `sekali once`: runs CMD and records its standard\n"
        "output. A later attempt prints the recorded output and runs nothing. The intent is\n"
        "recorded before CMD runs; SEKALI_STEP_KEY is the same in every attempt and is to be sent\n"
        "to the outside system. When CMD fails, its status is passed on and the step stays open.",
    .positionals = kPositionals,
    .options = kOptions,
    .examples =
        "  sekali step charge -- curl -f -H \"Idempotency-Key: $SEKALI_STEP_KEY\" …\n"
        "  sekali step mail --probe './was-sent.sh' -- ./send.sh",
    .run = run,
    .tail = Tail::kCommand,
};

}  // namespace sekali::cli
