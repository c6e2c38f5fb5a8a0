#include "cli/help.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace sekali::cli {
namespace {

constexpr std::size_t kWidth = 96;

/// `text` broken at blanks, each line but the first behind `indent` blanks.
std::string wrap(std::string_view text, std::size_t indent) {
    std::string out;
    std::size_t column = indent;
    while (!text.empty()) {
        const std::size_t blank = text.find(' ');
        const std::string_view word = text.substr(0, blank);
        if (column > indent && column + word.size() + 1 > kWidth) {
            out += '\n' + std::string(indent, ' ');
            column = indent;
        }
        if (column > indent) {
            out += ' ';
            ++column;
        }
        out += word;
        column += word.size();
        text.remove_prefix(blank == std::string_view::npos ? text.size() : blank + 1);
    }
    return out;
}

using Row = std::pair<std::string, std::string>;

std::string two_columns(const std::vector<Row>& rows) {
    constexpr std::size_t kWidestLeft = 26;
    std::size_t left = 0;
    for (const Row& row : rows) {
        if (row.first.size() <= kWidestLeft) left = std::max(left, row.first.size());
    }
    std::string out;
    for (const auto& [name, text] : rows) {
        const bool fits = name.size() <= left;
        out += "  " + name +
               (fits ? std::string(left - name.size(), ' ') : '\n' + std::string(left + 2, ' '));
        out += "  " + wrap(text, left + 4) + '\n';
    }
    return out;
}

std::string option_text(const OptionSpec& option) {
    std::string text(option.help);
    if (option.kind == ValueKind::kChoice && option.value.find('|') == std::string_view::npos) {
        text += fmt::format(" ({})", option.choices);
    }
    if (option.required) text += " (required)";
    if (option.repeated) text += " (may be given again)";
    return text;
}

std::string option_rows(std::span<const OptionSpec> options) {
    std::vector<Row> rows;
    for (const OptionSpec& option : options) {
        const std::string blank = option.value.empty() ? "" : " ";
        rows.emplace_back(fmt::format("--{}{}{}", option.name, blank, option.value),
                          option_text(option));
    }
    return two_columns(rows);
}

std::string positional_usage(const PositionalSpec& positional) {
    const std::string dots = positional.repeated ? "…" : "";
    return positional.required ? fmt::format(" {}{}", positional.name, dots)
                               : fmt::format(" [{}{}]", positional.name, dots);
}

bool belongs_to(const CommandSpec& command, const GroupSpec& group) {
    return command.name.size() > group.name.size() && command.name.starts_with(group.name) &&
           command.name[group.name.size()] == ' ';
}

constexpr std::string_view kExitStatus =
    "Exit status: 0 done, 1 a check failed, 2 usage or configuration, 3 backend unreachable or\n"
    "refused, 4 not found, 5 conflict (busy, lost, key reused, held, wrong state).\n";

}  // namespace

std::string usage_line(const CommandSpec& command) {
    std::string line = command.program.empty() ? fmt::format("sekali {}", command.name)
                                               : std::string(command.program);
    for (const PositionalSpec& positional : command.positionals)
        line += positional_usage(positional);
    for (const OptionSpec& option : command.options) {
        if (option.required) line += fmt::format(" --{} {}", option.name, option.value);
    }
    line += " [flags]";
    if (command.tail == Tail::kCommand) line += " -- CMD ARGS…";
    return line;
}

std::string command_help(const CommandSpec& command) {
    const std::string_view name = command.program.empty() ? command.name : command.program;
    std::string out =
        fmt::format("{}: {}\n\nUsage: {}\n", name, command.summary, usage_line(command));
    if (!command.about.empty()) out += fmt::format("\n{}\n", command.about);
    if (!command.examples.empty()) out += fmt::format("\nExamples:\n{}\n", command.examples);
    if (!command.positionals.empty()) {
        std::vector<Row> rows;
        for (const PositionalSpec& positional : command.positionals)
            rows.emplace_back(positional.name, positional.help);
        out += "\n" + two_columns(rows);
    }
    if (!command.options.empty()) out += "\nFlags:\n" + option_rows(command.options);
    out += "\nFlags of every command:\n" + option_rows(global_options());
    return out + '\n' + std::string(kExitStatus);
}

std::string group_help(const AppSpec& app, const GroupSpec& group) {
    std::vector<Row> rows;
    for (const CommandSpec* command : app.commands) {
        if (belongs_to(*command, group)) rows.emplace_back(command->name, command->summary);
    }
    return fmt::format("{}: {}\n\nUsage: sekali {} COMMAND [flags]\n\n{}\n", group.name,
                       group.summary, group.name, two_columns(rows)) +
           fmt::format("`sekali {} COMMAND --help` tells more.\n", group.name);
}

/// Enough to see a job run.
constexpr std::string_view kFirstSteps =
    "Examples:\n"
    "  sekali enqueue payment.charge '{\"order\":1001}' --key payment:1001 --lock order:1001\n"
    "  sekali work --exec 'payment.charge=./charge.sh' --drain\n"
    "  sekali explain payment:1001\n";

std::string app_help(const AppSpec& app) {
    std::vector<Row> rows;
    for (const CommandSpec* command : app.commands) {
        if (command->name.find(' ') == std::string_view::npos) {
            rows.emplace_back(command->name, command->summary);
            continue;
        }
        const auto group = std::find_if(app.groups.begin(), app.groups.end(),
                                        [&](const auto& g) { return belongs_to(*command, g); });
        const std::string verb(command->name.substr(group->name.size() + 1));
        const std::string name = std::string(group->name) + " ";
        if (!rows.empty() && rows.back().first.starts_with(name)) {
            rows.back().first += "|" + verb;
        } else {
            rows.emplace_back(name + verb, group->summary);
        }
    }
    return "sekali runs background jobs so that each piece of business work takes effect once.\n\n"
           "Usage: sekali [flags] COMMAND [flags] [-- CMD…]\n\n" +
           two_columns(rows) + "\n" + std::string(kFirstSteps) + "\nFlags of every command:\n" +
           option_rows(global_options()) +
           "\n`sekali COMMAND --help` tells more; --version and --list-faults stand alone.\n\n" +
           std::string(kExitStatus);
}

}  // namespace sekali::cli
