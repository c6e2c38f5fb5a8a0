#include "cli/bulk_report.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "base/json_writer.hpp"
#include "base/text.hpp"
#include "cli/bulk_line.hpp"
#include "cli/enqueue_reply.hpp"
#include "observe/job_view.hpp"

namespace sekali::cli {

bool read_bulk_line(LineReader& reader, JobMaker& maker, std::uint64_t& number,
                    std::vector<BulkLine>& lines, std::vector<engine::EnqueueRequest>& requests) {
    while (true) {
        const LineReader::Next next = reader.next();
        if (next == LineReader::Next::kEnd) return false;
        BulkLine line;
        line.number = number++;
        if (next == LineReader::Next::kTooLong) {
            line.error = fmt::format("the line has more than {} bytes",
                                     maker.max_payload() + kBulkLineOverhead);
            lines.push_back(std::move(line));
            return true;
        }
        if (reader.line().find_first_not_of(" \t\r") == std::string_view::npos) continue;
        try {
            requests.push_back(maker.make(parse_bulk_line(reader.line())));
            line.request = requests.size() - 1;
        } catch (const Failure& failure) {
            const Error& error = failure.error();
            line.error = error.message;
            if (!error.hint.empty()) line.error += " (" + error.hint + ")";
        }
        lines.push_back(std::move(line));
        return true;
    }
}

std::string bulk_answer(std::uint64_t line, const engine::EnqueueReply& reply) {
    std::string document;
    base::JsonWriter json(document);
    json.begin_object().field("line", line);
    write_enqueue_reply(json, reply);
    json.end_object();
    return document;
}

std::string bulk_refusal(std::uint64_t line, std::string_view error) {
    std::string document;
    base::JsonWriter json(document);
    json.begin_object().field("line", line).field("status", "error").field("error", error);
    json.end_object();
    return document;
}

BulkReport::BulkReport(CommandContext& context)
    : context_(context), progress_(Output::is_terminal(STDERR_FILENO)) {}

void BulkReport::answer(std::uint64_t line, const engine::EnqueueReply& reply,
                        const engine::Envelope& job) {
    if (const auto refusal = enqueue_refusal(reply, job)) return refuse(line, refusal->message);
    constexpr std::size_t kKindsKept = 100;
    if (reply.kind == engine::EnqueueReply::Kind::kDuplicate) {
        ++duplicates_;
    } else {
        ++made_;
        if (kinds_.size() < kKindsKept) kinds_.emplace(job.queue, job.kind);
    }
    context_.out.line(context_.out.json() ? bulk_answer(line, reply) : useful_id(reply));
}

void BulkReport::refuse(std::uint64_t line, const std::string& error) {
    ++refused_;
    if (context_.out.json()) return context_.out.line(bulk_refusal(line, error));
    context_.out.flush();
    context_.out.note(fmt::format("line {}: {}", line, error));
}

void BulkReport::flush() {
    context_.out.flush();
    if (progress_) show_progress();
}

void BulkReport::show_progress() {
    constexpr std::chrono::milliseconds kShownEvery{250};
    const Clock::time_point now = Clock::now();
    if (now - shown_ < kShownEvery) return;
    shown_ = now;
    const double seconds = std::chrono::duration<double>(now - begun_).count();
    std::fputs(fmt::format("\rsekali: {} lines, {:.0f} a second ", next_line_ - 1,
                           static_cast<double>(next_line_ - 1) / seconds)
                   .c_str(),
               stderr);
}

void BulkReport::note_unserved(Store& store) {
    std::set<std::string> queues;
    store.read([&](engine::Tables& tables) {
        const observe::Surroundings surroundings(tables, context_.ns());
        for (const auto& [queue, kind] : kinds_) {
            if (!surroundings.is_served(queue)) queues.insert(queue);
        }
    });
    for (const std::string& queue : queues)
        context_.out.note(fmt::format("no live worker serves queue {}", base::quoted(queue)));
}

int BulkReport::finish(Store& store) {
    flush();
    if (progress_ && shown_ != begun_) std::fputs("\n", stderr);
    std::string text = fmt::format("enqueued {} jobs", made_);
    if (duplicates_ > 0) text += fmt::format("; {} were queued already", duplicates_);
    if (refused_ > 0) text += fmt::format("; {} lines were refused", refused_);
    context_.out.note(text);
    note_unserved(store);
    if (refused_ > 0) return kExitCheckFailed;
    return duplicates_ > 0 && context_.args.flag("strict") ? kExitConflict : kExitDone;
}

}  // namespace sekali::cli
