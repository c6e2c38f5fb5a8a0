#include <fmt/format.h>
#include <unistd.h>

#include <optional>
#include <utility>
#include <variant>

#include "base/clock.hpp"
#include "base/durations.hpp"
#include "base/errors.hpp"
#include "base/faults.hpp"
#include "base/json_writer.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "cli/command_table.hpp"
#include "cli/connect.hpp"
#include "cli/foreground.hpp"
#include "cli/once_result.hpp"
#include "cli/once_run.hpp"
#include "client/child_env.hpp"
#include "observe/job_view.hpp"

namespace sekali::cli {
namespace {

using enum ValueKind;
using engine::BeginReply;
using std::chrono::milliseconds;

constexpr int kExitSignalBase = 128;
constexpr milliseconds kDefaultGrace{25'000};

constexpr OptionSpec kOptions[] = {
    {.name = "key",
     .value = "KEY",
     .help = "what is to be done once",
     .kind = kKey,
     .required = true},
    {.name = "wait",
     .value = "D",
     .help = "waits no longer than this for another caller's run; default is without end",
     .kind = kDurationOrZero},
    {.name = "keep",
     .value = "D",
     .help = "how long the answer is kept; behind that CMD runs again; default 30d",
     .kind = kDuration},
    {.name = "store-failure", .help = "keeps the answer of a CMD that failed, too", .kind = kFlag},
    {.name = "on-unknown",
     .value = "hold|rerun",
     .help = "when an earlier CMD ended without an answer: hold it for a person (default), or run "
             "CMD again",
     .kind = kChoice,
     .choices = "hold|rerun"},
    {.name = "grace",
     .value = "D",
     .help = "from SIGTERM to SIGKILL once the lease is lost; default 25s",
     .kind = kDuration,
     .origin = Origin::kSetting},
};

OncePlan plan_of(const CommandContext& context) {
    const Arguments& args = context.args;
    OncePlan plan;
    plan.ns = context.ns();
    plan.key = *args.text("key");
    base::JsonWriter json(plan.payload);
    json.begin_array();
    for (const std::string& word : args.tail())
        json.value(word);
    json.end_array();
    engine::KindPolicy& policy = plan.policy;
    policy.on_unknown = args.text_or("on-unknown", "hold") == "hold" ? engine::OnUnknown::kHold
                                                                     : engine::OnUnknown::kRerun;
    policy.whole_answer = true;
    policy.keep = args.duration("keep").value_or(policy.keep);
    // The next caller decides when to try again.
    policy.retry.base = policy.retry.cap = milliseconds{1};
    return plan;
}

/// What a caller that does not run the command itself has to say.
class Once {
 public:
    explicit Once(CommandContext& context)
        : context_(context),
          key_(*context.args.text("key")),
          store_(open_store(context, OpenMode::kCreate)),
          caller_(store_, plan_of(context)) {}

    int run() {
        Foreground foreground(context_.out.json());
        BeginReply reply;
        foreground.wait([&](const std::stop_token& stop) { reply = ask(stop); },
                        [&](milliseconds waited) { tell_waiting(waited); });
        const int signal = foreground.interrupted_by();
        if (const auto* started = std::get_if<engine::Started>(&reply)) {
            caller_.enter(*started);
            if (signal == 0) return execute(foreground, *started);
            static_cast<void>(caller_.settle({.kind = engine::Outcome::Kind::kCancel,
                                              .result = "",
                                              .error = "",
                                              .reason = "interrupted before it began",
                                              .delay = std::nullopt}));
        }
        if (signal != 0) return kExitSignalBase + signal;
        if (const auto* ended = std::get_if<engine::Ended>(&reply)) return replay(*ended);
        if (std::holds_alternative<engine::HeldBack>(reply)) throw Failure(held());
        throw Failure(busy());
    }

    void print() {
        if (!context_.out.json()) return;
        std::string document;
        base::JsonWriter json(document);
        json.begin_object().field("key", key_).field("job_id", job_id_).field("ran", ran_);
        json.field("status", answer_.status).field("stdout", answer_.output).end_object();
        context_.out.line(document);
    }

 private:
    BeginReply ask(const std::stop_token& stop) {
        using Clock = std::chrono::steady_clock;
        constexpr milliseconds kLook{100};
        const auto wait = context_.args.duration("wait");
        const Clock::time_point begun = Clock::now();
        while (true) {
            BeginReply reply = caller_.begin();
            const bool waits = std::holds_alternative<engine::Parked>(reply);
            const bool out_of_time = wait && Clock::now() - begun >= *wait;
            if (!waits || out_of_time || stop.stop_requested()) return reply;
            store_.executor().wait_for_change(kLook);
        }
    }

    std::optional<engine::RecordRow> read_record() {
        return store_.read([&](engine::Tables& tables) {
            return tables.record({context_.ns(), std::string(kOnceKind), key_});
        });
    }

    void tell_waiting(milliseconds waited) {
        constexpr milliseconds kPatience{1000};
        if (told_ || waited < kPatience || !Output::is_terminal(STDERR_FILENO)) return;
        told_ = true;
        const auto record = read_record();
        const std::string where = record ? fmt::format(" (job {})", record->job_id) : "";
        context_.out.note(fmt::format("another caller runs {}{}; waiting for its answer",
                                      base::quoted(key_), where));
    }

    /// Another caller has done it.
    int replay(const engine::Ended& ended) {
        if (ended.state == engine::JobState::kDead || ended.state == engine::JobState::kCancelled) {
            throw Failure({.code = ErrorCode::kConflict,
                           .message = fmt::format("{} ended as {}: {}", base::quoted(key_),
                                                  engine::to_string(ended.state), ended.reason),
                           .hint = "call again to run it"});
        }
        answer_ = decode_answer(ended.result);
        std::string when;
        if (const auto record = read_record(); record && record->finished_at) {
            job_id_ = record->job_id;
            when = fmt::format(" at {} (job {})", observe::shown_time(*record->finished_at),
                               record->job_id);
        }
        context_.out.note(
            fmt::format("{} was done{}; printing its output", base::quoted(key_), when));
        if (!context_.out.json()) context_.out.bytes(answer_.output);
        return answer_.status;
    }

    int execute(Foreground& foreground, const engine::Started& started) {
        process::CommandOptions command;
        command.argv = context_.args.tail();
        command.env =
            client::child_environment({.ref = caller_.run(),
                                       .queue = std::string(kOnceKind),
                                       .attempt = started.attempt,
                                       .deadline_ms = base::wall_ms() + base::kMaxDuration.count()},
                                      {.url = store_.url(), .ns = context_.ns()});
        command.capture_stdout = true;
        command.stdout_cap = base::kMaxResultBytes + 1;
        command.grace = context_.args.duration("grace").value_or(kDefaultGrace);
        job_id_ = caller_.run().job_id;
        ran_ = true;
        static_cast<void>(SEKALI_FAULT("handler.before"));
        std::string lost;
        process::CommandResult result;
        {
            const LeaseKeeper keeper(store_, caller_);
            result = foreground.run(std::move(command), keeper.lost());
            lost = keeper.reason();
        }
        static_cast<void>(SEKALI_FAULT("handler.after"));
        if (!result.started) context_.out.note(result.error);
        answer_ = {result.exit_status,
                   base::make_storable(result.stdout_bytes, base::kMaxResultBytes)};
        const engine::Settled settled = caller_.settle(outcome_of(result, lost));
        judge(settled, lost);
        return result.exit_status;
    }

    engine::Outcome outcome_of(const process::CommandResult& result, const std::string& lost) {
        using Kind = engine::Outcome::Kind;
        engine::Outcome outcome;
        if (!lost.empty()) {
            outcome.kind = Kind::kInterrupted;
            outcome.reason = lost;
            outcome.error = "the command was stopped: " + lost;
        } else if (!result.started) {
            outcome.kind = Kind::kCancel;
            outcome.error = result.error;
            outcome.reason = "not_started";
        } else if (result.ended_by_signal != 0) {
            outcome.kind = Kind::kCrashed;
            outcome.error = fmt::format("killed by signal {}", result.ended_by_signal);
        } else if (result.exit_status == 0 || context_.args.flag("store-failure")) {
            outcome.result = encode_answer(result.exit_status, result.stdout_bytes);
        } else {
            // An answer, but not one that is kept: the next caller runs the command.
            outcome.kind = Kind::kCancel;
            outcome.reason = fmt::format("exit status {}", result.exit_status);
            outcome.error = outcome.reason;
        }
        return outcome;
    }

    void judge(const engine::Settled& settled, const std::string& lost) {
        if (settled.kind == engine::Settled::Kind::kSuperseded || lost == "lease_lost") {
            throw Failure({.code = ErrorCode::kConflict,
                           .message = fmt::format(
                               "the lease of {} was lost while CMD ran, so its answer does not "
                               "count",
                               base::quoted(key_)),
                           .hint = fmt::format("sekali explain {} tells what became of it",
                                               caller_.run().job_id)});
        }
        if (settled.state == engine::JobState::kHeld) {
            const Error error = held();
            context_.out.note(error.message);
            context_.out.note("  " + error.hint);
        }
    }

    Error held() {
        const auto record = read_record();
        const std::string id = record ? record->job_id : "ID";
        const std::string cause =
            record && !record->mark_cause.empty() ? record->mark_cause : "unknown";
        return {
            .code = ErrorCode::kConflict,
            .message = fmt::format("{} is held: an earlier run ended without an answer ({}), so "
                                   "nobody knows whether it happened",
                                   base::quoted(key_), base::printable(cause)),
            .hint = fmt::format("look, then type: sekali held resolve {} --succeeded RESULT | "
                                "--rerun | --dead",
                                id)};
    }

    Error busy() {
        return {.code = ErrorCode::kConflict,
                .message = fmt::format("another caller still runs {}", base::quoted(key_)),
                .hint = "wait longer with --wait, or see sekali explain"};
    }

    CommandContext& context_;
    std::string key_;
    Store store_;
    OnceCaller caller_;
    bool told_ = false;
    bool ran_ = false;
    std::string job_id_;
    OnceAnswer answer_;
};

int run(CommandContext& context) {
    Once once(context);
    const int status = once.run();
    once.print();
    return status;
}

}  // namespace

constinit const CommandSpec kOnceCommand = {
    .name = "once",
    .summary = "run a command once for a key, however often it is called",
    .about =
        "One caller runs CMD; the others wait, print its stored output and exit with its stored\n"
        "status. Only status 0 is stored (see --store-failure): behind a CMD that failed the next\n"
        "caller runs it. A CMD that was killed, or whose caller died, is held: nobody knows\n"
        "whether it happened, and exit status 5 names the `held resolve` line to type. The key is\n"
        "all that counts; CMD may change. Without --url every caller of this user shares one\n"
        "database, wherever it stands.",
    .options = kOptions,
    .examples =
        "  sekali once --key nightly:2026-11-30 -- ./backup.sh\n"
        "  sekali once --key report --keep 1h --wait 30s -- make report",
    .run = run,
    .tail = Tail::kCommand,
};

}  // namespace sekali::cli
