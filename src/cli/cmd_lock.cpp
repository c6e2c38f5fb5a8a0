#include <fmt/format.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "base/durations.hpp"
#include "base/errors.hpp"
#include "base/json_writer.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "cli/address.hpp"
#include "cli/command_table.hpp"
#include "cli/connect.hpp"
#include "cli/foreground.hpp"
#include "cli/outside_locks.hpp"
#include "sekali/lock.hpp"

namespace sekali::cli {
namespace {

using enum ValueKind;
using std::chrono::milliseconds;

constexpr int kExitSignalBase = 128;
constexpr std::uint64_t kLeastTtlMs = 500;
constexpr milliseconds kDefaultGrace{25'000};

constexpr PositionalSpec kPositionals[] = {
    {.name = "NAME", .help = "what must not happen twice at once", .kind = kKey}};
constexpr OptionSpec kOptions[] = {
    {.name = "ttl",
     .value = "D",
     .help = "life of the lock after its last renewal; default 30s, at least 500ms",
     .kind = kDuration,
     .min = kLeastTtlMs},
    {.name = "wait",
     .value = "D",
     .help = "waits no longer than this; default is without end",
     .kind = kDurationOrZero},
    {.name = "no-wait", .help = "asks once", .kind = kFlag},
    {.name = "no-renew", .help = "lets the lock lapse after its life", .kind = kFlag},
    {.name = "conflict-status",
     .value = "N",
     .help = "exit status for busy and lost, instead of 5",
     .kind = kInteger,
     .min = 1,
     .max = 255},
    {.name = "grace",
     .value = "D",
     .help = "from SIGTERM to SIGKILL once the lock is lost; default 25s",
     .kind = kDuration,
     .origin = Origin::kSetting},
    {.name = "mode",
     .value = "MODE",
     .help = "write: alone, the default and the only mode of sqlite; permits=N: one of N at the "
             "same time, on redis",
     .kind = kText},
};

/// The N of `--mode permits=N`; 0 for a lock.
std::uint32_t permits_of(const Arguments& args, bool on_redis) {
    constexpr std::string_view kPermits = "permits=";
    constexpr std::uint64_t kMostPermits = 1'000'000;
    const std::string mode = args.text_or("mode", "write");
    if (mode == "write") return 0;
    if (!on_redis || !mode.starts_with(kPermits)) {
        throw Failure(base::usage_error(
            fmt::format("--mode {} is not to be had on {}", base::quoted(mode),
                        on_redis ? "redis" : "sqlite"),
            on_redis ? "redis has --mode write and permits=N" : "sqlite has --mode write"));
    }
    const std::string_view count = std::string_view(mode).substr(kPermits.size());
    return static_cast<std::uint32_t>(
        base::parse_count("--mode permits", count, 1, kMostPermits).value());
}

LockOptions lock_options(const Arguments& args, bool on_redis) {
    LockOptions options;
    options.permits = permits_of(args, on_redis);
    if (args.flag("no-wait") && args.has("wait")) {
        throw Failure(base::usage_error("--wait and --no-wait are both given"));
    }
    options.ttl = args.duration("ttl").value_or(options.ttl);
    options.wait = args.flag("no-wait") ? milliseconds{0} : args.duration("wait");
    options.renew = !args.flag("no-renew");
    return options;
}

/// Tells once whom it waits for, where somebody may be looking.
class WaitingNote {
 public:
    WaitingNote(CommandContext& context, std::string name)
        : context_(context), name_(std::move(name)) {}

    void look(milliseconds waited) {
        constexpr milliseconds kPatience{1000};
        if (told_ || waited < kPatience || !Output::is_terminal(STDERR_FILENO)) return;
        told_ = true;
        const std::string holder = holder_now();
        const std::string held = holder.empty() ? "" : fmt::format(", held by {}", holder);
        context_.out.note(fmt::format("waiting for lock {}{}", base::quoted(name_), held));
    }

 private:
    [[nodiscard]] std::string holder_now() {
        if (outside_locks(context_)) return {};  // `locks show` tells; this must not wait for it
        std::optional<Store> store = open_if_exists(context_);
        if (!store) return {};
        const auto lock =
            store->read([&](engine::Tables& tables) { return tables.lock(context_.ns(), name_); });
        return lock ? lock->owner : "";
    }

    CommandContext& context_;
    std::string name_;
    bool told_ = false;
};

LockClient open_client(CommandContext& context, const std::optional<OutsideLocks>& outside) {
    if (outside) return LockClient::open(outside->url, outside->options).value();
    return LockClient::open(prepare_store(context).full_url(), context.ns()).value();
}

std::optional<Result<LockHandle>> acquire(CommandContext& context, Foreground& foreground,
                                          const std::string& name) {
    const auto outside = outside_locks(context);
    LockOptions options = lock_options(context.args, outside.has_value());
    LockClient client = open_client(context, outside);
    std::optional<Result<LockHandle>> handle;
    WaitingNote note(context, name);
    foreground.wait(
        [&](std::stop_token stop) {
            options.stop = std::move(stop);
            handle.emplace(client.acquire(name, options));
        },
        [&](milliseconds waited) { note.look(waited); });
    return handle;
}

void print_end(CommandContext& context, const LockHandle& handle, int status) {
    if (!context.out.json()) return;
    std::string document;
    base::JsonWriter json(document);
    json.begin_object().field("name", handle.name()).field("token", handle.token());
    json.field("fence", handle.fence()).field("status", status).end_object();
    context.out.line(document);
}

/// Runs the command under the lock; returns its status, or throws `kConflict` when the lock was
/// lost under it.
int run_locked(CommandContext& context, Foreground& foreground, LockHandle& handle) {
    process::CommandOptions command;
    command.argv = context.args.tail();
    command.env = environment_with({"SEKALI_LOCK_NAME=" + handle.name(),
                                    "SEKALI_LOCK_TOKEN=" + handle.token(),
                                    "SEKALI_LOCK_FENCE=" + std::to_string(handle.fence())});
    command.grace = context.args.duration("grace").value_or(kDefaultGrace);
    const process::CommandResult result = foreground.run(std::move(command), handle.stop_token());
    const bool lost = handle.stop_token().stop_requested();
    const Result<void> released = handle.release();
    if (lost || (!released && released.error().code == ErrorCode::kConflict)) {
        throw Failure({.code = ErrorCode::kConflict,
                       .message = fmt::format(
                           "lock lost: {} was taken, broken or not renewed in time; the command {}",
                           base::quoted(handle.name()),
                           result.stopped ? "was stopped" : "had ended before it was told"),
                       .hint = "what it did meanwhile another may have done too"});
    }
    if (!result.started) context.out.note(result.error);
    if (!released) {
        context.out.note(fmt::format("the lock could not be released and lapses by itself: {}",
                                     released.error().message));
    }
    return result.exit_status;
}

int run(CommandContext& context) {
    const std::string name = *context.args.positional(0);
    int status = 0;
    std::optional<Result<LockHandle>> handle;
    try {
        Foreground foreground(context.out.json());
        handle = acquire(context, foreground, name);
        if (foreground.interrupted_by() != 0) return kExitSignalBase + foreground.interrupted_by();
        status = run_locked(context, foreground, handle->value());
    } catch (const Failure& failure) {
        const bool conflict = failure.error().code == ErrorCode::kConflict;
        const auto chosen = context.args.integer("conflict-status");
        if (!conflict || !chosen) throw;
        context.out.fail(failure.error());
        return static_cast<int>(*chosen);
    }
    print_end(context, handle->value(), status);
    return status;
}

}  // namespace

constinit const CommandSpec kLockCommand = {
    .name = "lock",
    .summary = "run a command under a lock",
    .about =
        "Waits for the lock, without end unless told, runs CMD while it holds it, and exits with\n"
        "CMD's status: 126 when it cannot be run, 127 when it is not found, 128+n when signal n\n"
        "ended it. The lock is renewed every third of its life; when it is lost CMD gets SIGTERM,\n"
        "then SIGKILL, and the exit status is 5. The names are those of jobs' lock keys. CMD "
        "finds\n"
        "SEKALI_LOCK_NAME, SEKALI_LOCK_TOKEN and SEKALI_LOCK_FENCE, a number that grows with "
        "every\n"
        "grant. The lock excludes others; it does not undo what CMD did before it was lost.",
    .positionals = kPositionals,
    .options = kOptions,
    .examples =
        "  sekali lock deploy -- ./deploy.sh\n"
        "  sekali lock deploy --lock-url redis://db1 -- ./deploy.sh\n"
        "  sekali lock nightly --no-wait --conflict-status 75 -- ./backup.sh",
    .run = run,
    .tail = Tail::kCommand,
};

}  // namespace sekali::cli
