#include "cli/arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "base/durations.hpp"
#include "base/errors.hpp"
#include "base/ids.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "cli/nearest.hpp"

namespace sekali::cli {
namespace {

using base::usage_error;

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    while (true) {
        const std::size_t at = text.find(separator);
        parts.emplace_back(text.substr(0, at));
        if (at == std::string_view::npos) return parts;
        text.remove_prefix(at + 1);
    }
}

double parse_decimal(const OptionSpec& option, std::string_view field, std::string_view value) {
    double number = 0;
    const char* end = value.data() + value.size();
    const auto [rest, problem] = std::from_chars(value.data(), end, number);
    const bool fits = std::isfinite(number) && number >= static_cast<double>(option.min) &&
                      number <= static_cast<double>(option.max);
    if (problem != std::errc{} || rest != end || !fits) {
        throw Failure(usage_error(fmt::format("{} must be a number from {} to {}, not {}", field,
                                              option.min, option.max, base::quoted(value))));
    }
    return number;
}

void check_duration(const OptionSpec& option, std::string_view field, std::string_view value) {
    const auto rule = option.kind == ValueKind::kDuration ? base::DurationRule::kPositive
                                                          : base::DurationRule::kZeroAllowed;
    const std::chrono::milliseconds duration = base::parse_duration(field, value, rule).value();
    const std::chrono::milliseconds least(option.min);
    if (duration < least) {
        throw Failure(usage_error(fmt::format("{} is {}, and must be at least {}", field, value,
                                              base::format_duration(least))));
    }
}

void check_choice(const OptionSpec& option, std::string_view field, std::string_view value) {
    const std::vector<std::string> choices = split(option.choices, '|');
    if (std::find(choices.begin(), choices.end(), value) != choices.end()) return;
    throw Failure(usage_error(fmt::format("{} must be one of {}, not {}", field,
                                          fmt::join(choices, ", "), base::quoted(value))));
}

bool is_true(std::string_view value) {
    return value.empty() || value == "true" || value == "1";
}

void check_switch(std::string_view field, std::string_view value) {
    if (is_true(value) || value == "false" || value == "0") return;
    throw Failure(usage_error(
        fmt::format("{} must be true, false, 1 or 0, not {}", field, base::quoted(value))));
}

}  // namespace

void check_value(const OptionSpec& option, std::string_view field, std::string_view value) {
    switch (option.kind) {
        case ValueKind::kFlag:
            return check_switch(field, value);
        case ValueKind::kText:
            return;
        case ValueKind::kName:
            return base::check_name(field, value).value();
        case ValueKind::kNames:
            for (const std::string& name : split(value, ','))
                base::check_name(field, name).value();
            return;
        case ValueKind::kKey:
            return base::check_key(field, value).value();
        case ValueKind::kUuid:
            if (base::is_uuid(value)) return;
            throw Failure(usage_error(fmt::format("{} must be a UUID in lower case, not {}", field,
                                                  base::quoted(value))));
        case ValueKind::kInteger:
            static_cast<void>(base::parse_count(field, value, option.min, option.max).value());
            return;
        case ValueKind::kDecimal:
            parse_decimal(option, field, value);
            return;
        case ValueKind::kDuration:
        case ValueKind::kDurationOrZero:
            return check_duration(option, field, value);
        case ValueKind::kChoice:
            return check_choice(option, field, value);
    }
}

Arguments::Arguments(const CommandSpec& command, std::span<const OptionSpec> globals,
                     ParsedLine line, std::vector<std::string> tail, ConfigFile config,
                     const Environment& environment)
    : positionals_(std::move(line.positionals)), config_(std::move(config)) {
    for (const OptionSpec& option : globals)
        take(option, line, environment);
    for (const OptionSpec& option : command.options)
        take(option, line, environment);
    if (command.tail == Tail::kCommand) {
        tail_ = std::move(tail);
    } else {
        std::move(tail.begin(), tail.end(), std::back_inserter(positionals_));
    }
    take_positionals(command);
    if (command.tail == Tail::kCommand && tail_.empty()) {
        throw Failure(usage_error(fmt::format("{} needs a command to run", command.name),
                                  fmt::format("sekali {} … -- CMD ARGS…", command.name)));
    }
}

void Arguments::take(const OptionSpec& option, const ParsedLine& line,
                     const Environment& environment) {
    std::string field = fmt::format("--{}", option.name);
    std::vector<std::string> found;
    if (const auto given = line.flags.find(option.name); given != line.flags.end()) {
        found = given->second;
        called_[option.name] = true;
    } else if (option.origin != Origin::kCall) {
        std::optional<std::string> variable;
        if (option.origin == Origin::kSetting) variable = environment(env_name(option.name));
        const auto setting = config_.settings.find(file_key(option.name));
        if (variable) {
            field = env_name(option.name);
            found.push_back(*std::move(variable));
        } else if (setting != config_.settings.end()) {
            field = fmt::format("{}: {}", base::printable(config_.path), setting->first);
            found = setting->second;
        }
    }
    if (option.kind == ValueKind::kNames && found.size() > 1 && !called_.contains(option.name)) {
        found = {fmt::format("{}", fmt::join(found, ","))};
    }
    if (found.size() > 1 && !option.repeated) {
        throw Failure(usage_error(
            fmt::format("{} is given {} times, and takes one value", field, found.size())));
    }
    for (const std::string& value : found)
        check_value(option, field, value);
    if (option.kind == ValueKind::kFlag && !found.empty() && !is_true(found.front())) found.clear();
    if (found.empty() && option.required) {
        throw Failure(
            usage_error(fmt::format("{} {} is missing: {}", field, option.value, option.help)));
    }
    if (!found.empty()) values_[option.name] = std::move(found);
}

void Arguments::take_positionals(const CommandSpec& command) {
    const auto& specs = command.positionals;
    const bool open_ended = !specs.empty() && specs.back().repeated;
    if (positionals_.size() > specs.size() && !open_ended) {
        throw Failure(
            usage_error(fmt::format("{} does not take {}: it is one word too many", command.name,
                                    base::quoted(positionals_[specs.size()])),
                        fmt::format("sekali {} --help", command.name)));
    }
    for (std::size_t i = 0; i < std::max(specs.size(), positionals_.size()); ++i) {
        const PositionalSpec& spec = specs[std::min(i, specs.size() - 1)];
        if (i < positionals_.size()) {
            check_value({.name = spec.name, .help = "", .kind = spec.kind}, spec.name,
                        positionals_[i]);
        } else if (spec.required) {
            throw Failure(usage_error(fmt::format("{} is missing: {}", spec.name, spec.help),
                                      fmt::format("sekali {} --help", command.name)));
        }
    }
}

bool Arguments::flag(std::string_view option) const {
    return has(option);
}

std::optional<std::string> Arguments::text(std::string_view option) const {
    const auto found = values_.find(option);
    if (found == values_.end()) return std::nullopt;
    return found->second.front();
}

std::string Arguments::text_or(std::string_view option, std::string_view fallback) const {
    return text(option).value_or(std::string(fallback));
}

std::vector<std::string> Arguments::all(std::string_view option) const {
    const auto found = values_.find(option);
    return found == values_.end() ? std::vector<std::string>{} : found->second;
}

std::vector<std::string> Arguments::names(std::string_view option) const {
    const std::optional<std::string> value = text(option);
    return value ? split(*value, ',') : std::vector<std::string>{};
}

std::optional<std::chrono::milliseconds> Arguments::duration(std::string_view option) const {
    const std::optional<std::string> value = text(option);
    if (!value) return std::nullopt;
    return base::parse_duration(option, *value, base::DurationRule::kZeroAllowed).value();
}

std::optional<std::uint64_t> Arguments::integer(std::string_view option) const {
    const std::optional<std::string> value = text(option);
    if (!value) return std::nullopt;
    return base::parse_count(option, *value, 0, std::numeric_limits<std::uint64_t>::max()).value();
}

std::optional<double> Arguments::decimal(std::string_view option) const {
    const std::optional<std::string> value = text(option);
    if (!value) return std::nullopt;
    return parse_decimal({.name = option, .help = ""}, option, *value);
}

std::optional<std::string> Arguments::positional(std::size_t index) const {
    if (index >= positionals_.size()) return std::nullopt;
    return positionals_[index];
}

std::optional<std::string> Arguments::of_kind(std::string_view kind, std::string_view key) const {
    const auto section = config_.kinds.find(kind);
    if (section == config_.kinds.end()) return std::nullopt;
    const auto setting = section->second.find(key);
    if (setting == section->second.end()) return std::nullopt;
    return setting->second.front();
}

std::string env_name(std::string_view option) {
    std::string name = "SEKALI_";
    for (const char c : option) {
        const bool lower = c >= 'a' && c <= 'z';
        name += c == '-' ? '_' : (lower ? static_cast<char>(c - 'a' + 'A') : c);
    }
    return name;
}

std::string file_key(std::string_view option) {
    std::string key(option);
    std::replace(key.begin(), key.end(), '-', '_');
    return key;
}

namespace {

void check_section(const std::string& path, std::string_view where,
                   const ConfigFile::Section& section,
                   const std::vector<const OptionSpec*>& known) {
    for (const auto& [key, values] : section) {
        const auto option = std::find_if(known.begin(), known.end(), [&](const OptionSpec* o) {
            return file_key(o->name) == key;
        });
        const std::string field =
            fmt::format("{}: {}{}", base::printable(path), where, base::printable(key));
        if (option == known.end()) {
            std::vector<std::string> keys;
            for (const OptionSpec* o : known)
                keys.push_back(file_key(o->name));
            const std::vector<std::string_view> names(keys.begin(), keys.end());
            throw Failure(
                usage_error(fmt::format("{} is no setting", field), did_you_mean(key, names)));
        }
        const bool list = (*option)->repeated || (*option)->kind == ValueKind::kNames;
        if (values.size() != 1 && !list) {
            throw Failure(usage_error(fmt::format("{} takes one value, not a list", field)));
        }
        for (const std::string& value : values)
            check_value(**option, field, value);
    }
}

}  // namespace

void check_config(const ConfigFile& config, const std::vector<const OptionSpec*>& known) {
    check_section(config.path, "", config.settings, known);
    std::vector<const OptionSpec*> of_kind;
    for (const OptionSpec& option : kind_settings())
        of_kind.push_back(&option);
    for (const auto& [kind, section] : config.kinds) {
        const std::string where = fmt::format("kinds.{}", base::quoted(kind));
        base::check_name(fmt::format("{}: kinds", base::printable(config.path)), kind).value();
        check_section(config.path, where + ".", section, of_kind);
    }
}

}  // namespace sekali::cli
