#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/context.hpp"
#include "cli/job_draft.hpp"
#include "cli/line_reader.hpp"
#include "cli/store.hpp"
#include "engine/operations.hpp"

namespace sekali::cli {

/// What a line may have besides its payload.
inline constexpr std::size_t kBulkLineOverhead = 16 * 1024;

/// One line of a bulk file: a request, by its index, or why there is none.
struct BulkLine {
    std::uint64_t number = 0;
    std::optional<std::size_t> request;
    std::string error;
};

/// Reads the next line that is not blank, numbered from `number` on, which is raised. False at the
/// end of the input.
bool read_bulk_line(LineReader& reader, JobMaker& maker, std::uint64_t& number,
                    std::vector<BulkLine>& lines, std::vector<engine::EnqueueRequest>& requests);

/// The answer to a line, as JSON.
[[nodiscard]] std::string bulk_answer(std::uint64_t line, const engine::EnqueueReply& reply);
[[nodiscard]] std::string bulk_refusal(std::uint64_t line, std::string_view error);

/// The answers to the lines of a bulk file, and what they come to.
class BulkReport {
 public:
    explicit BulkReport(CommandContext& context);

    /// Number of the line that is read next.
    [[nodiscard]] std::uint64_t& next_line() { return next_line_; }
    void answer(std::uint64_t line, const engine::EnqueueReply& reply, const engine::Envelope& job);
    void refuse(std::uint64_t line, const std::string& error);
    /// Hands the answers over, and shows on a terminal how far it is.
    void flush();
    /// Says who serves the queues, and returns the exit status.
    int finish(Store& store);

 private:
    using Clock = std::chrono::steady_clock;
    void show_progress();
    void note_unserved(Store& store);

    CommandContext& context_;
    bool progress_;
    std::uint64_t next_line_ = 1;
    std::uint64_t made_ = 0;
    std::uint64_t duplicates_ = 0;
    std::uint64_t refused_ = 0;
    std::set<std::pair<std::string, std::string>> kinds_;  ///< (queue, kind), some of them.
    Clock::time_point begun_ = Clock::now();
    Clock::time_point shown_ = begun_;
};

}  // namespace sekali::cli
