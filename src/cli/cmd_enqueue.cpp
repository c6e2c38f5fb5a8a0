#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/durations.hpp"
#include "base/errors.hpp"
#include "base/faults.hpp"
#include "base/json_writer.hpp"
#include "base/text.hpp"
#include "cli/bulk.hpp"
#include "cli/command_table.hpp"
#include "cli/connect.hpp"
#include "cli/enqueue_reply.hpp"
#include "cli/job_draft.hpp"
#include "cli/shared_options.hpp"
#include "observe/job_view.hpp"

namespace sekali::cli {
namespace {

using enum ValueKind;

constexpr PositionalSpec kPositionals[] = {
    {.name = "KIND", .help = "what to do, e.g. payment.charge", .kind = kName, .required = false},
    {.name = "PAYLOAD",
     .help = "JSON for the handler, byte for byte; - reads it from stdin; default is null",
     .required = false},
};
constexpr std::uint64_t kLargestPayload = std::uint64_t{256} << 20;
constexpr std::array<OptionSpec, 4> kOwnOptions{{
    {.name = "strict", .help = "exit 5 for a unique duplicate", .kind = kFlag},
    {.name = "bulk",
     .value = "FILE",
     .help = "enqueues each line of a file, or of stdin for -; fields are named like the flags"},
    {.name = "atomic", .help = "all lines of a bulk file or none", .kind = kFlag},
    {.name = "max-payload",
     .value = "BYTES",
     .help = "largest payload; default 1048576",
     .kind = kInteger,
     .origin = Origin::kSetting,
     .min = 1,
     .max = kLargestPayload},
}};

/// Reads no more than one byte beyond the limit, however much comes.
std::string read_stdin(std::size_t limit) {
    std::string bytes;
    constexpr std::size_t kStep = 64 * 1024;
    while (bytes.size() <= limit) {
        const std::size_t had = bytes.size();
        bytes.resize(had + std::min(kStep, limit + 1 - had));
        const ssize_t got = ::read(STDIN_FILENO, bytes.data() + had, bytes.size() - had);
        if (got < 0 && errno != EINTR) {
            throw Failure({.code = ErrorCode::kRefused,
                           .message = fmt::format("the payload cannot be read from stdin: {}",
                                                  std::strerror(errno)),
                           .hint = ""});
        }
        bytes.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        if (got == 0) return bytes;
    }
    throw Failure(base::usage_error(
        fmt::format("the payload on stdin has more than {} bytes", limit),
        "store what is large elsewhere and send its address, or raise --max-payload"));
}

JobDraft draft_of(const Arguments& args, std::size_t limit) {
    JobDraft draft;
    draft.kind = *args.positional(0);
    draft.payload = args.positional(1).value_or("null");
    if (draft.payload == "-") draft.payload = read_stdin(limit);
    for (std::size_t i = 0; i < kJobFieldCount; ++i) {
        const std::string_view name = kJobFieldOptions[i].name;
        if (args.from_call(name)) draft.fields[i] = args.text(name);
    }
    return draft;
}

/// Who takes the job, when nobody does.
std::string served_text(observe::Surroundings& surroundings, const engine::Envelope& job) {
    if (surroundings.is_paused(job.queue)) return "; the queue is paused";
    if (!surroundings.is_served(job.queue)) return "; no live worker serves it";
    if (surroundings.is_handled(job.queue, job.kind)) return "";
    return "; no live worker there handles this kind";
}

std::string sentence_of(engine::Tables& tables, const engine::EnqueueRequest& request,
                        const engine::EnqueueReply& reply) {
    const engine::Envelope& job = request.job;
    observe::Surroundings surroundings(tables, job.ns);
    if (reply.kind == engine::EnqueueReply::Kind::kDuplicate) {
        const observe::JobView winner = observe::view_job(*reply.winner, surroundings);
        std::string text = fmt::format("already queued as {}, {}", winner.row.job.id,
                                       engine::to_string(winner.state));
        if (!winner.waiting_for.empty()) {
            text += fmt::format(" for {}", base::printable(winner.waiting_for));
        }
        return text;
    }
    std::string text = fmt::format("enqueued {} on queue {}", job.kind, base::quoted(job.queue));
    if (request.delay && *request.delay > engine::Millis{0}) {
        text += fmt::format(", to run at {}", observe::shown_time(tables.now() + *request.delay));
    }
    if (reply.kind == engine::EnqueueReply::Kind::kReplaced) {
        text += fmt::format(" in place of {}", reply.winner->job.id);
    }
    return text + served_text(surroundings, job);
}

Error lost(Applied applied) {
    return {.code = ErrorCode::kUnreachable,
            .message = "the answer of the store was lost",
            .hint = "repeat the call with the same --id: it is one job then",
            .applied = applied,
            .retryable = true};
}

int enqueue_one(CommandContext& context) {
    JobMaker maker(context.args, context.ns(), true);
    const engine::EnqueueRequest request = maker.make(draft_of(context.args, maker.max_payload()));
    if (context.args.has("at") && request.delay == engine::Millis{0}) {
        context.out.note("--at has passed: the job may run now");
    }
    Store store = open_store(context, OpenMode::kCreate);
    if (SEKALI_FAULT("enqueue.before")) throw Failure(lost(Applied::kNo));
    std::string sentence;
    const engine::EnqueueReply reply = store.transact([&](engine::Tables& tables) {
        engine::EnqueueReply out = engine::enqueue(tables, request);
        sentence = sentence_of(tables, request, out);
        return out;
    });
    if (SEKALI_FAULT("enqueue.after")) throw Failure(lost(Applied::kMaybe));
    if (const auto refusal = enqueue_refusal(reply, request.job)) throw Failure(*refusal);
    if (context.out.json()) {
        std::string document;
        base::JsonWriter json(document);
        json.begin_object();
        write_enqueue_reply(json, reply);
        json.end_object();
        context.out.line(document);
    } else {
        context.out.line(useful_id(reply));
    }
    context.out.flush();
    context.out.note(sentence);
    const bool duplicate = reply.kind == engine::EnqueueReply::Kind::kDuplicate;
    return duplicate && context.args.flag("strict") ? kExitConflict : kExitDone;
}

void refuse_flags_of_one(const Arguments& args) {
    for (const OptionSpec& option : kJobFieldOptions) {
        if (!args.from_call(option.name)) continue;
        throw Failure(base::usage_error(
            fmt::format("--{} does not go with --bulk", option.name),
            fmt::format("write it into the lines, as the field {}", file_key(option.name))));
    }
    if (args.positional(0)) {
        throw Failure(base::usage_error("KIND does not go with --bulk",
                                        "write it into the lines, as the field kind"));
    }
}

int run(CommandContext& context) {
    const Arguments& args = context.args;
    if (const auto file = args.text("bulk")) {
        refuse_flags_of_one(args);
        return enqueue_bulk(context, *file);
    }
    if (args.flag("atomic")) {
        throw Failure(base::usage_error("--atomic goes with --bulk", "one job is always atomic"));
    }
    if (!args.positional(0)) {
        throw Failure(base::usage_error("KIND is missing: what to do, e.g. payment.charge",
                                        "sekali enqueue --help"));
    }
    return enqueue_one(context);
}

constexpr auto kOptions = join_options(kJobFieldOptions, kOwnOptions);

}  // namespace

constinit const CommandSpec kEnqueueCommand = {
    .name = "enqueue",
    .summary = "put a job on a queue",
    .about =
        "Prints the job's id once the job is durable. With --unique, a second job of the same\n"
        "unique key is not made; the id of the one that is there is printed instead.\n\n"
        "A bulk file has one JSON object a line, with the fields kind, payload and those named\n"
        "like the flags (unique_key is `unique`, with _ for -). It is read with bounded memory\n"
        "and answered line by line; a bad line is told and the others go in. With --atomic the\n"
        "file is one transaction, which holds up the other writers of the database meanwhile.",
    .positionals = kPositionals,
    .options = kOptions,
    .examples =
        "  sekali enqueue payment.charge '{\"order\":1001}' --key payment:1001 --lock order:1001\n"
        "  id=$(sekali enqueue report.build --unique report:daily --delay 5m)\n"
        "  jq -c . big.json | sekali enqueue import.row -\n"
        "  sekali enqueue --bulk jobs.jsonl --json",
    .run = run,
};

}  // namespace sekali::cli
