#include "process/exec_control.hpp"

#include <gtest/gtest.h>

#include <random>

namespace sekali::process {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

std::vector<ControlLine> parse_in_chunks(std::string_view bytes, std::size_t chunk) {
    std::vector<ControlLine> lines;
    const auto keep = [&](ControlLine line) { lines.push_back(std::move(line)); };
    ControlParser parser;
    for (std::size_t at = 0; at < bytes.size(); at += chunk) {
        parser.feed(bytes.substr(at, chunk), keep);
    }
    parser.finish(keep);
    return lines;
}

TEST(ControlLine, ReadsTheFourWords) {
    EXPECT_EQ(parse_control_line("snooze 250ms"), ControlLine(Snooze{250ms}));
    EXPECT_EQ(parse_control_line("retry-in 5m"), ControlLine(RetryIn{5min}));
    EXPECT_EQ(parse_control_line("cancel order was withdrawn"),
              ControlLine(CancelJob{"order was withdrawn"}));
    EXPECT_EQ(parse_control_line("cancel"), ControlLine(CancelJob{""}));
    EXPECT_EQ(parse_control_line("progress 3/10"), ControlLine(Progress{3, 10}));
    EXPECT_EQ(parse_control_line("\t snooze   2h \r"), ControlLine(Snooze{2h}));
    EXPECT_EQ(parse_control_line("snooze 1d"), ControlLine(Snooze{24h}));
    EXPECT_EQ(parse_control_line("progress 0/0"), ControlLine(Progress{0, 0}));
}

TEST(ControlLine, ReportsWhatItCannotReadAsText) {
    for (const std::string& line :
         {"snooze"s, "snooze 5"s, "snooze 0s"s, "snooze -1s"s, "snooze 1.5s"s, "snooze 1 s"s,
          "snooze 36501d"s, "snooze 99999999999999999999s"s, "snooze 18446744073709551615ms"s,
          "retry-in soon"s, "progress 1"s, "progress 2/1"s, "progress 1/2/3"s, "progress /2"s,
          "progress -1/2"s, "Snooze 1s"s, "snoozed 1s"s, "hello"s}) {
        EXPECT_EQ(parse_control_line(line), ControlLine(BadLine{line})) << line;
    }
    EXPECT_EQ(parse_control_line("\xFF\x00"s), ControlLine(BadLine{"\xEF\xBF\xBD\xEF\xBF\xBD"}));
}

TEST(ControlLine, CutsALongCancelAndRefusesOtherLongLines) {
    const std::string text(5000, 'x');
    const auto cancel = parse_control_line("cancel " + text);
    EXPECT_EQ(std::get<CancelJob>(cancel).reason.size(), kControlLineLimit - 7);
    const std::string padded = "snooze 5s" + std::string(kControlLineLimit, ' ');
    EXPECT_TRUE(std::holds_alternative<BadLine>(parse_control_line(padded)));
}

TEST(ControlParser, GivesTheSameLinesForAnyChunks) {
    const std::string stream = "progress 1/2\n\n  \nsnooze 3s\njunk\xFF\n" +
                               std::string(3000, 'y') + "\ncancel no newline";
    const auto whole = parse_in_chunks(stream, stream.size());
    ASSERT_EQ(whole.size(), 5U);
    EXPECT_EQ(whole[0], ControlLine(Progress{1, 2}));
    EXPECT_EQ(whole[1], ControlLine(Snooze{3s}));
    EXPECT_EQ(whole[3], ControlLine(BadLine{std::string(kControlLineLimit, 'y')}));
    EXPECT_EQ(whole[4], ControlLine(CancelJob{"no newline"}));
    for (const std::size_t chunk : {1U, 2U, 7U, 1023U, 1024U, 1025U}) {
        EXPECT_EQ(parse_in_chunks(stream, chunk), whole) << chunk;
    }
}

TEST(ControlParser, SurvivesAnyBytes) {
    std::mt19937 random(20240601);
    const std::string alphabet =
        "snoze retry-in cancel progress 0123456789/msh\n\n\t\r\xC3\xFF"s + '\0';
    for (int round = 0; round < 300; ++round) {
        std::string stream(random() % 4000, ' ');
        for (char& byte : stream)
            byte = alphabet[random() % alphabet.size()];
        const auto whole = parse_in_chunks(stream, stream.size() + 1);
        EXPECT_EQ(parse_in_chunks(stream, 1 + random() % 97), whole);
    }
}

TEST(ControlReport, LastDirectiveRulesAndBadLinesAreBounded) {
    ControlReport report;
    report.add(Snooze{1s});
    report.add(CancelJob{"stop"});
    report.add(RetryIn{2s});
    report.add(Progress{1, 9});
    report.add(Progress{2, 9});
    for (int i = 0; i < 1000; ++i)
        report.add(BadLine{std::to_string(i)});
    ASSERT_TRUE(report.directive);
    EXPECT_EQ(std::get<RetryIn>(*report.directive), RetryIn{2s});
    EXPECT_EQ(report.progress, (Progress{2, 9}));
    EXPECT_EQ(report.bad_lines.size(), ControlReport::kBadLinesKept);
    EXPECT_EQ(report.bad_lines.front(), "0");
    EXPECT_EQ(report.bad_line_count, 1000U);
}

}  // namespace
}  // namespace sekali::process
