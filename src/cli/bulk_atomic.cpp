#include "cli/bulk_atomic.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>

#include "base/json_writer.hpp"
#include "cli/bulk_report.hpp"
#include "cli/enqueue_reply.hpp"

namespace sekali::cli {
namespace {

/// A file without a name, for what does not fit into memory.
class Spool {
 public:
    Spool() : file_(std::tmpfile(), &std::fclose) {
        if (!file_) fail("cannot be made");
    }

    /// Copies everything that is still to be read from `fd`.
    void take_all(int fd) {
        std::array<char, 64 * 1024> bytes{};
        while (true) {
            const ssize_t got = ::read(fd, bytes.data(), bytes.size());
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) fail("cannot be filled");
            if (got == 0) break;
            put({bytes.data(), static_cast<std::size_t>(got)});
        }
    }
    void put(std::string_view bytes) {
        if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) {
            fail("is full");
        }
    }
    /// The descriptor, at the beginning of what was put in.
    [[nodiscard]] int rewound() {
        if (std::fflush(file_.get()) != 0) fail("is full");
        if (::lseek(::fileno(file_.get()), 0, SEEK_SET) != 0) fail("cannot be read again");
        return ::fileno(file_.get());
    }
    void clear() {
        std::rewind(file_.get());
        if (::ftruncate(::fileno(file_.get()), 0) != 0) fail("cannot be emptied");
    }

 private:
    [[noreturn]] static void fail(std::string_view what) {
        throw Failure({.code = ErrorCode::kRefused,
                       .message = fmt::format("the temporary file of --atomic {}: {}", what,
                                              std::strerror(errno)),
                       .hint = "the temporary folder needs room for the input twice"});
    }
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

/// One pass over the spooled lines inside a transaction, which may be run again.
class AtomicPass {
 public:
    AtomicPass(const CommandContext& context, Spool& answers)
        : json_(context.out.json()),
          strict_(context.args.flag("strict")),
          answers_(answers),
          maker_(context.args, context.ns(), false) {}

    void run(engine::Tables& tables, int fd) {
        LineReader reader(fd, maker_.max_payload() + kBulkLineOverhead);
        std::vector<BulkLine> lines;
        std::vector<engine::EnqueueRequest> requests;
        std::uint64_t number = 1;
        while (read_bulk_line(reader, maker_, number, lines, requests)) {
            take(tables, lines.front(), requests);
            lines.clear();
            requests.clear();
        }
    }

    [[nodiscard]] std::uint64_t refused() const { return refused_; }

 private:
    void take(engine::Tables& tables, const BulkLine& line,
              const std::vector<engine::EnqueueRequest>& requests) {
        if (!line.request) return refuse(line.number, line.error);
        // Once a line is refused nothing will be kept; the others are only looked at.
        if (refused_ > 0) return;
        const engine::EnqueueRequest& request = requests.front();
        engine::foresee(tables, std::span(&request, 1));
        const engine::EnqueueReply reply = engine::enqueue(tables, request);
        const bool duplicate = reply.kind == engine::EnqueueReply::Kind::kDuplicate;
        if (const auto refusal = enqueue_refusal(reply, request.job)) {
            refuse(line.number, refusal->message);
        } else if (duplicate && strict_) {
            refuse(line.number, "its unique key is taken by " + reply.winner->job.id);
        } else {
            answers_.put((json_ ? bulk_answer(line.number, reply) : useful_id(reply)) + '\n');
        }
    }

    void refuse(std::uint64_t line, const std::string& error) {
        if (refused_++ == 0) answers_.clear();
        answers_.put(
            (json_ ? bulk_refusal(line, error) : fmt::format("sekali: line {}: {}", line, error)) +
            '\n');
    }

    bool json_;
    bool strict_;
    Spool& answers_;
    JobMaker maker_;
    std::uint64_t refused_ = 0;
};

/// Hands a file's bytes over.
template <typename Sink>
void read_all(int fd, Sink&& sink) {
    std::array<char, 64 * 1024> bytes{};
    ssize_t got = 0;
    while ((got = ::read(fd, bytes.data(), bytes.size())) > 0)
        sink(std::string_view(bytes.data(), static_cast<std::size_t>(got)));
}

}  // namespace

int enqueue_bulk_atomic(CommandContext& context, Store& store, int fd) {
    Spool input;
    Spool answers;
    input.take_all(fd);
    std::uint64_t refused = 0;
    const auto work = [&](engine::Tables& tables) {
        answers.clear();
        AtomicPass pass(context, answers);
        pass.run(tables, input.rewound());
        refused = pass.refused();
        // Undoes the transaction.
        if (refused > 0) throw Failure({.code = ErrorCode::kUsage, .message = "", .hint = ""});
    };
    try {
        store.transact(work);
    } catch (const Failure&) {
        if (refused == 0) throw;
    }
    const bool to_stderr = refused > 0 && !context.out.json();
    read_all(answers.rewound(), [&](std::string_view bytes) {
        to_stderr ? context.out.complaint(bytes) : context.out.bytes(bytes);
    });
    context.out.flush();
    if (refused == 0) return kExitDone;
    context.out.note(fmt::format("{} lines were refused, so none went in", refused));
    return kExitCheckFailed;
}

}  // namespace sekali::cli
