#include "cli/app.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <new>
#include <optional>
#include <utility>

#include "base/errors.hpp"
#include "base/faults.hpp"
#include "base/json_writer.hpp"
#include "base/text.hpp"
#include "cli/context.hpp"
#include "cli/help.hpp"
#include "cli/nearest.hpp"
#include "cli/parser.hpp"
#include "cli/version.hpp"

namespace sekali::cli {
namespace {

constexpr OptionSpec kGlobals[] = {
    {.name = "config",
     .value = "FILE",
     .help = "settings, in TOML: keys are flags with _",
     .origin = Origin::kSetting},
    {.name = "url",
     .value = "URL",
     .help = "queue, store and locks: sqlite:PATH or postgres://HOST/DATABASE",
     .origin = Origin::kSetting},
    {.name = "queue-url", .value = "URL", .help = "the queue alone", .origin = Origin::kSetting},
    {.name = "store-url", .value = "URL", .help = "the store alone", .origin = Origin::kSetting},
    {.name = "lock-url",
     .value = "URL",
     .help = "the locks alone, e.g. redis://db1",
     .origin = Origin::kSetting},
    {.name = "lock-prefix",
     .value = "TEXT",
     .help =
         "before the names of locks on redis; default is `sekali:NS:lock:`, an empty one shares "
         "names with other programs",
     .origin = Origin::kSetting},
    {.name = "lock-profile",
     .value = "PROFILE",
     .help =
         "how locks on redis are written: as Redisson does, which is the default, or as Laravel "
         "and others do",
     .kind = ValueKind::kChoice,
     .origin = Origin::kSetting,
     .choices = "redisson|string"},
    {.name = "namespace",
     .value = "NS",
     .help = "keeps tenants and tests apart; default is `default`",
     .kind = ValueKind::kName,
     .origin = Origin::kSetting},
    {.name = "json",
     .help = "prints JSON and nothing else on stdout",
     .kind = ValueKind::kFlag,
     .origin = Origin::kSetting},
};

using Words = std::vector<std::string>;

struct Invocation {
    Words words;  ///< Up to the first `--`.
    Words tail;
};

Invocation split_at_dashes(Words words) {
    Invocation invocation;
    const auto dashes = std::find(words.begin(), words.end(), "--");
    if (dashes != words.end()) {
        invocation.tail.assign(std::make_move_iterator(dashes + 1),
                               std::make_move_iterator(words.end()));
    }
    words.erase(dashes, words.end());
    invocation.words = std::move(words);
    return invocation;
}

/// Where the first word is that is neither a global flag nor its value; the size when there is
/// none.
std::size_t find_word(const Words& words) {
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string& word = words[i];
        const auto global = std::find_if(std::begin(kGlobals), std::end(kGlobals), [&](auto& g) {
            return word.starts_with("--") && std::string_view(word).substr(2) == g.name;
        });
        if (global != std::end(kGlobals)) {
            if (global->kind != ValueKind::kFlag) ++i;
        } else if (!word.starts_with('-') || word == "-") {
            return i;
        }
    }
    return words.size();
}

std::string take_word(Words& words) {
    const std::size_t at = find_word(words);
    if (at == words.size()) return "";
    std::string word = std::move(words[at]);
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(at));
    return word;
}

std::vector<const OptionSpec*> options_of(const CommandSpec* command) {
    std::vector<const OptionSpec*> options;
    for (const OptionSpec& option : kGlobals)
        options.push_back(&option);
    if (command == nullptr) return options;
    for (const OptionSpec& option : command->options)
        options.push_back(&option);
    return options;
}

std::vector<const OptionSpec*> settings_of(const AppSpec& app) {
    std::vector<const OptionSpec*> settings;
    for (const OptionSpec& option : kGlobals) {
        if (option.name != "config") settings.push_back(&option);
    }
    for (const CommandSpec* command : app.commands) {
        for (const OptionSpec& option : command->options) {
            if (option.origin != Origin::kCall) settings.push_back(&option);
        }
    }
    return settings;
}

ConfigFile load_config(const AppSpec& app, const ParsedLine& line,
                       const Arguments::Environment& environment) {
    std::optional<std::string> path = environment(env_name("config"));
    if (const auto flag = line.flags.find("config"); flag != line.flags.end()) {
        path = flag->second.front();
    }
    if (!path) return {};
    ConfigFile config = read_config(*path);
    check_config(config, settings_of(app));
    return config;
}

int run_command_words(const AppSpec& app, const CommandSpec& command, Invocation invocation,
                      const Arguments::Environment& environment, Output& out) {
    ParsedLine line = parse_words(invocation.words, options_of(&command));
    if (line.help) {
        out.bytes(command_help(command));
        out.flush();
        return kExitDone;
    }
    ConfigFile config = load_config(app, line, environment);
    Arguments arguments(command, kGlobals, std::move(line), std::move(invocation.tail),
                        std::move(config), environment);
    out.set_json(arguments.flag("json"));
    base::load_faults();
    CommandContext context(std::move(arguments), environment, out);
    const int status = command.run(context);
    out.flush();
    return status;
}

void print_version(Output& out) {
    if (!out.json()) return out.line(fmt::format("sekali {}", kVersion));
    std::string document;
    base::JsonWriter(document).begin_object().field("version", kVersion).end_object();
    out.line(document);
}

void print_faults(Output& out) {
    if (!out.json()) {
        for (const base::FaultPoint& point : base::kFaultPoints)
            out.line(point.name);
        return;
    }
    std::string document;
    base::JsonWriter writer(document);
    writer.begin_object().field("items").begin_array();
    for (const base::FaultPoint& point : base::kFaultPoints) {
        writer.begin_object().field("name", point.name);
        writer.field("stands_for", point.stands_for).end_object();
    }
    writer.end_array().end_object();
    out.line(document);
}

/// What is asked of the program itself, without a command.
int run_root(const AppSpec& app, const Words& words, Output& out) {
    constexpr OptionSpec kVersionFlag{.name = "version", .help = "", .kind = ValueKind::kFlag};
    constexpr OptionSpec kFaultsFlag{.name = "list-faults", .help = "", .kind = ValueKind::kFlag};
    std::vector<const OptionSpec*> options = options_of(nullptr);
    options.push_back(&kVersionFlag);
    options.push_back(&kFaultsFlag);
    const ParsedLine line = parse_words(words, options);
    if (line.flags.contains("version")) {
        print_version(out);
    } else if (line.flags.contains("list-faults")) {
        print_faults(out);
    } else if (line.help) {
        out.bytes(app_help(app));
    } else {
        throw Failure(base::usage_error("no command is given", "sekali --help lists them"));
    }
    out.flush();
    return kExitDone;
}

const CommandSpec* find_command(const AppSpec& app, std::string_view name) {
    const auto found = std::find_if(app.commands.begin(), app.commands.end(),
                                    [&](const CommandSpec* c) { return c->name == name; });
    return found == app.commands.end() ? nullptr : *found;
}

const GroupSpec* find_group(const AppSpec& app, std::string_view name) {
    const auto found = std::find_if(app.groups.begin(), app.groups.end(),
                                    [&](const GroupSpec& g) { return g.name == name; });
    return found == app.groups.end() ? nullptr : &*found;
}

[[noreturn]] void refuse_command(const AppSpec& app, std::string_view word) {
    std::vector<std::string_view> names;
    for (const CommandSpec* command : app.commands) {
        if (command->name.find(' ') == std::string_view::npos) names.push_back(command->name);
    }
    for (const GroupSpec& group : app.groups)
        names.push_back(group.name);
    const std::string hint = did_you_mean(word, names, "sekali ");
    throw Failure(base::usage_error(fmt::format("there is no command {}", base::quoted(word)),
                                    hint.empty() ? "sekali --help lists the commands" : hint));
}

[[noreturn]] void refuse_verb(const AppSpec& app, const GroupSpec& group, std::string_view verb) {
    std::vector<std::string_view> verbs;
    const std::string prefix = std::string(group.name) + " ";
    for (const CommandSpec* command : app.commands) {
        if (command->name.starts_with(prefix)) verbs.push_back(command->name.substr(prefix.size()));
    }
    const std::string known =
        fmt::format("{} takes one of: {}", group.name, fmt::join(verbs, ", "));
    if (verb.empty()) throw Failure(base::usage_error(known, ""));
    throw Failure(base::usage_error(
        fmt::format("there is no command {} {}; {}", group.name, base::quoted(verb), known),
        did_you_mean(verb, verbs, "sekali " + prefix)));
}

bool asks_for_help(const Words& words) {
    return std::any_of(words.begin(), words.end(),
                       [](const std::string& word) { return word == "--help" || word == "-h"; });
}

int dispatch(const AppSpec& app, Invocation invocation, const Arguments::Environment& environment,
             Output& out) {
    std::string word = take_word(invocation.words);
    if (word.empty()) return run_root(app, invocation.words, out);
    if (word == "help") {
        word = take_word(invocation.words);
        invocation.words.emplace_back("--help");
        if (word.empty()) return run_root(app, invocation.words, out);
    }
    if (const CommandSpec* command = find_command(app, word)) {
        return run_command_words(app, *command, std::move(invocation), environment, out);
    }
    const GroupSpec* group = find_group(app, word);
    if (group == nullptr) refuse_command(app, word);
    const std::string verb = take_word(invocation.words);
    if (verb.empty() && asks_for_help(invocation.words)) {
        out.bytes(group_help(app, *group));
        out.flush();
        return kExitDone;
    }
    const CommandSpec* command = find_command(app, word + " " + verb);
    if (command == nullptr) refuse_verb(app, *group, verb);
    return run_command_words(app, *command, std::move(invocation), environment, out);
}

template <typename Run>
int report_failures(const Words& words, const Arguments::Environment& environment, Run&& run) {
    const bool asked = std::find(words.begin(), words.end(), "--json") != words.end();
    const std::string variable = environment(env_name("json")).value_or("");
    Output out(asked || variable == "1" || variable == "true");
    try {
        return run(out);
    } catch (const Failure& failure) {
        return out.fail(failure.error());
    } catch (const std::bad_alloc&) {
        return out.fail({.code = ErrorCode::kRefused, .message = "out of memory"});
    } catch (const std::exception& error) {
        return out.fail({.code = ErrorCode::kInternal,
                         .message = fmt::format("a fault in sekali: {}", error.what()),
                         .hint = "please report it",
                         .applied = Applied::kMaybe});
    }
}

}  // namespace

std::span<const OptionSpec> global_options() {
    return kGlobals;
}

int run_app(const AppSpec& app, Words words, const Arguments::Environment& environment) {
    Invocation invocation = split_at_dashes(std::move(words));
    return report_failures(invocation.words, environment, [&](Output& out) {
        return dispatch(app, invocation, environment, out);
    });
}

int run_single(const CommandSpec& command, Words words, const Arguments::Environment& environment) {
    const CommandSpec* const commands[] = {&command};
    Invocation invocation = split_at_dashes(std::move(words));
    return report_failures(invocation.words, environment, [&](Output& out) {
        return run_command_words({.commands = commands, .groups = {}}, command, invocation,
                                 environment, out);
    });
}

Arguments::Environment process_environment() {
    return [](const std::string& name) -> std::optional<std::string> {
        for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
            const std::string_view text(*variable);
            if (text.starts_with(name) && text.substr(name.size()).starts_with('=')) {
                return std::string(text.substr(name.size() + 1));
            }
        }
        return std::nullopt;
    };
}

}  // namespace sekali::cli
