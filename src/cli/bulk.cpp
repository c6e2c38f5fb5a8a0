#include "cli/bulk.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "base/text.hpp"
#include "cli/bulk_atomic.hpp"
#include "cli/bulk_line.hpp"
#include "cli/bulk_report.hpp"
#include "cli/connect.hpp"
#include "cli/job_draft.hpp"
#include "cli/line_reader.hpp"

namespace sekali::cli {
namespace {

/// Lines that become durable together: enough that their common fsync costs each of them little,
/// few enough that other writers of the database wait only for milliseconds.
constexpr std::size_t kBatchLines = 1000;
constexpr std::size_t kBatchBytes = 4 * 1024 * 1024;

/// Some lines on their way into the store.
struct Batch {
    std::vector<BulkLine> lines;
    std::vector<engine::EnqueueRequest> requests;
    std::size_t bytes = 0;
    std::vector<engine::EnqueueReply> replies;
    std::future<Result<void>> stored;  ///< Valid from its submission to its answer.

    Batch() = default;
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;
    ~Batch() {
        // The store still works with it.
        if (stored.valid()) stored.wait();
    }
    [[nodiscard]] bool is_full() const {
        return lines.size() >= kBatchLines || bytes >= kBatchBytes;
    }
};

/// Reads a batch while the one before it is being stored.
class BulkRun {
 public:
    BulkRun(CommandContext& context, Store& store, int fd)
        : store_(store),
          maker_(context.args, context.ns(), false),
          reader_(fd, maker_.max_payload() + kBulkLineOverhead),
          report_(context) {}

    int run() {
        std::unique_ptr<Batch> stored;
        bool more = true;
        while (more) {
            auto batch = std::make_unique<Batch>();
            more = fill(*batch);
            if (stored) finish(*stored);
            submit(*batch);
            stored = std::move(batch);
            // Whoever writes the lines slowly wants each answer before the next line.
            if (!more || reader_.would_wait()) finish(*std::exchange(stored, nullptr));
        }
        return report_.finish(store_);
    }

 private:
    /// False at the end of the input.
    bool fill(Batch& batch) {
        while (!batch.is_full()) {
            if (!batch.lines.empty() && reader_.would_wait()) return true;
            if (!read_bulk_line(reader_, maker_, report_.next_line(), batch.lines,
                                batch.requests)) {
                return false;
            }
            batch.bytes += reader_.line().size();
        }
        return true;
    }

    void submit(Batch& batch) {
        batch.stored = store_.backend().start([&batch](engine::Tables& tables) {
            batch.replies.clear();
            engine::foresee(tables, batch.requests);
            for (const engine::EnqueueRequest& request : batch.requests)
                batch.replies.push_back(engine::enqueue(tables, request));
        });
    }

    void finish(Batch& batch) {
        batch.stored.get().value();
        for (const BulkLine& line : batch.lines) {
            if (line.request) {
                report_.answer(line.number, batch.replies[*line.request],
                               batch.requests[*line.request].job);
            } else {
                report_.refuse(line.number, line.error);
            }
        }
        report_.flush();
    }

    Store& store_;
    JobMaker maker_;
    LineReader reader_;
    BulkReport report_;
};

class File {
 public:
    explicit File(const std::string& path) {
        if (path == "-") return;
        fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        if (fd_ >= 0) return;
        throw Failure(base::usage_error(fmt::format("--bulk {} cannot be opened: {}",
                                                    base::quoted(path), std::strerror(errno))));
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File() {
        if (fd_ != STDIN_FILENO) ::close(fd_);
    }
    [[nodiscard]] int fd() const { return fd_; }

 private:
    int fd_ = STDIN_FILENO;
};

}  // namespace

int enqueue_bulk(CommandContext& context, const std::string& path) {
    const File file(path);
    Store store = open_store(context, OpenMode::kCreate);
    if (context.args.flag("atomic")) return enqueue_bulk_atomic(context, store, file.fd());
    return BulkRun(context, store, file.fd()).run();
}

}  // namespace sekali::cli
