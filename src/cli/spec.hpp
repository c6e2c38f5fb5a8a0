#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

// What a command declares about itself: tables of constants, from which the parser, the help, the
// configuration file and the environment are read. No command holds parser code.
namespace sekali::cli {

class CommandContext;

enum class ValueKind : std::uint8_t {
    kFlag,            ///< No value: given or not.
    kText,            ///< Any bytes.
    kName,            ///< A kind, queue or namespace.
    kNames,           ///< Several names, separated by commas.
    kKey,             ///< An idempotency, lock or unique key, or the name of a lock.
    kUuid,            ///< In lower case.
    kInteger,         ///< `min` to `max`.
    kDecimal,         ///< A decimal number; `min` and `max` are whole.
    kDuration,        ///< With a unit, more than zero, at least `min` milliseconds.
    kDurationOrZero,  ///< With a unit.
    kChoice,          ///< One of `choices`.
};

/// Where a value may come from besides the command line.
enum class Origin : std::uint8_t {
    kCall,     ///< Nowhere: it belongs to this one call.
    kFile,     ///< `name` in the configuration file. What children inherit must not reach it.
    kSetting,  ///< `SEKALI_NAME` in the environment, then the configuration file.
};

struct OptionSpec {
    std::string_view name;     ///< Without dashes.
    std::string_view value{};  ///< What the help calls its value; empty for a flag.
    std::string_view help;
    ValueKind kind = ValueKind::kText;
    Origin origin = Origin::kCall;
    bool required = false;
    bool repeated = false;
    std::uint64_t min = 0;
    std::uint64_t max = std::numeric_limits<std::uint64_t>::max();
    std::string_view choices{};  ///< Separated by `|`.
};

struct PositionalSpec {
    std::string_view name;
    std::string_view help;
    ValueKind kind = ValueKind::kText;
    bool required = true;
    bool repeated = false;  ///< Only the last one of a command.
};

/// What the words behind `--` are to a command.
enum class Tail : std::uint8_t {
    kPositionals,  ///< More positionals, even when they begin with `-`.
    kCommand,      ///< A program and its arguments; there must be one.
};

struct CommandSpec {
    std::string_view name;  ///< One word, or two: `job show`.
    std::string_view summary;
    std::string_view about{};  ///< Paragraphs for `--help`.
    std::span<const PositionalSpec> positionals{};
    std::span<const OptionSpec> options{};
    std::string_view examples{};
    int (*run)(CommandContext&) = nullptr;  ///< Returns the exit status; may throw `Failure`.
    Tail tail = Tail::kPositionals;
    std::string_view program{};  ///< What is called where that is not `sekali NAME`.
};

/// What several commands that share a first word are about.
struct GroupSpec {
    std::string_view name;
    std::string_view summary;
};

}  // namespace sekali::cli
