#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/config.hpp"
#include "cli/parser.hpp"
#include "cli/spec.hpp"

namespace sekali::cli {

/// Refuses a value that the option does not take; `field` is what the user wrote it behind. Throws
/// `Failure` with `kUsage`.
void check_value(const OptionSpec& option, std::string_view field, std::string_view value);

/// What a command was asked for: each value from the flag, else the environment, else the
/// configuration file. All values have been checked, so that the typed readings cannot fail.
class Arguments {
 public:
    /// Reads one variable of the environment.
    using Environment = std::function<std::optional<std::string>(const std::string& name)>;

    Arguments() = default;
    /// Throws `Failure` with `kUsage` for a value that is refused, given twice, missing or too
    /// much.
    Arguments(const CommandSpec& command, std::span<const OptionSpec> globals, ParsedLine line,
              std::vector<std::string> tail, ConfigFile config, const Environment& environment);

    [[nodiscard]] bool has(std::string_view option) const { return values_.contains(option); }
    [[nodiscard]] bool flag(std::string_view option) const;
    [[nodiscard]] std::optional<std::string> text(std::string_view option) const;
    [[nodiscard]] std::string text_or(std::string_view option, std::string_view fallback) const;
    [[nodiscard]] std::vector<std::string> all(std::string_view option) const;
    /// The parts of a `kNames` value.
    [[nodiscard]] std::vector<std::string> names(std::string_view option) const;
    [[nodiscard]] std::optional<std::chrono::milliseconds> duration(std::string_view option) const;
    [[nodiscard]] std::optional<std::uint64_t> integer(std::string_view option) const;
    [[nodiscard]] std::optional<double> decimal(std::string_view option) const;
    /// Whether the value stands on the command line itself.
    [[nodiscard]] bool from_call(std::string_view option) const { return called_.contains(option); }

    /// Empty where an optional positional was left out.
    [[nodiscard]] std::optional<std::string> positional(std::size_t index) const;
    [[nodiscard]] const std::vector<std::string>& positionals() const { return positionals_; }
    /// The program and its arguments behind `--`.
    [[nodiscard]] const std::vector<std::string>& tail() const { return tail_; }

    /// What the configuration file says of one kind, by key as written there; checked.
    [[nodiscard]] std::optional<std::string> of_kind(std::string_view kind,
                                                     std::string_view key) const;
    [[nodiscard]] const ConfigFile& config() const { return config_; }

 private:
    void take(const OptionSpec& option, const ParsedLine& line, const Environment& environment);
    void take_positionals(const CommandSpec& command);

    std::map<std::string_view, std::vector<std::string>> values_;
    std::map<std::string_view, bool> called_;
    std::vector<std::string> positionals_;
    std::vector<std::string> tail_;
    ConfigFile config_;
};

/// `lock-ttl` as `SEKALI_LOCK_TTL`, and as `lock_ttl`.
[[nodiscard]] std::string env_name(std::string_view option);
[[nodiscard]] std::string file_key(std::string_view option);

/// Refuses keys and values of the file that no option of `known` and no setting of a kind takes.
/// Throws `Failure` with `kUsage`.
void check_config(const ConfigFile& config, const std::vector<const OptionSpec*>& known);

/// What a file may say of one kind.
[[nodiscard]] std::span<const OptionSpec> kind_settings();

}  // namespace sekali::cli
