// What an exec handler writes on its control descriptor, cut at any byte.

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/assert.hpp"
#include "base/durations.hpp"
#include "base/utf8.hpp"
#include "fuzz/fuzz_input.hpp"
#include "process/exec_control.hpp"

namespace {

using namespace sekali::process;

std::vector<ControlLine> parse(std::string_view bytes, std::size_t piece) {
    std::vector<ControlLine> lines;
    const auto sink = [&](ControlLine line) { lines.push_back(std::move(line)); };
    ControlParser parser;
    for (std::size_t at = 0; at < bytes.size(); at += piece)
        parser.feed(bytes.substr(at, piece), sink);
    parser.finish(sink);
    return lines;
}

bool is_text(std::string_view bytes) {
    for (std::size_t at = 0; at < bytes.size();) {
        const auto step = sekali::base::decode_utf8(bytes, at);
        if (!step.valid) return false;
        at += step.length;
    }
    return true;
}

struct Check {
    void operator()(const Snooze& line) const { check_delay(line.delay); }
    void operator()(const RetryIn& line) const { check_delay(line.delay); }
    void operator()(const CancelJob& line) const { check_text(line.reason); }
    void operator()(const BadLine& line) const { check_text(line.text); }
    void operator()(const Progress& line) const {
        SEKALI_ASSERT(line.done <= line.total, "no more is done than there is");
    }

 private:
    static void check_delay(std::chrono::milliseconds delay) {
        SEKALI_ASSERT(delay.count() > 0 && delay <= sekali::base::kMaxDuration, "in range");
    }
    static void check_text(std::string_view text) {
        SEKALI_ASSERT(is_text(text), "what is kept can be stored");
        // A byte that is not text becomes the three of a replacement character.
        SEKALI_ASSERT(text.size() <= 3 * kControlLineLimit, "what is kept is bounded");
    }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes = sekali::testing::fuzz_text(data, size);
    const std::vector<ControlLine> lines = parse(bytes, size + 1);
    for (const std::size_t piece : {1, 2, 7, 1024})
        SEKALI_ASSERT(parse(bytes, piece) == lines, "the cuts of a stream do not matter");
    ControlReport report;
    for (const ControlLine& line : lines) {
        std::visit(Check{}, line);
        report.add(line);
    }
    SEKALI_ASSERT(report.bad_lines.size() <= ControlReport::kBadLinesKept, "reports are bounded");
    SEKALI_ASSERT(report.bad_line_count <= lines.size(), "bad lines are lines");
    return 0;
}
