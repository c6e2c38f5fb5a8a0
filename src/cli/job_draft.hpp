#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cli/arguments.hpp"
#include "engine/operations.hpp"
#include "sekali/options.hpp"

namespace sekali::cli {

/// What may be said of a new job, by a flag of `enqueue` or a field of a bulk line.
enum class JobField : std::uint8_t {
    kQueue,
    kId,
    kKey,
    kLock,
    kUnique,
    kUniqueFor,
    kUniqueUntil,
    kOnDuplicate,
    kDelay,
    kAt,
    kPriority,
    kMaxAttempts,
};
inline constexpr std::size_t kJobFieldCount = 12;

/// The flags of these fields, in their order.
inline constexpr std::array<OptionSpec, kJobFieldCount> kJobFieldOptions{{
    {.name = "queue",
     .value = "NAME",
     .help = "where it waits for a worker; default is `default`",
     .kind = ValueKind::kName,
     .origin = Origin::kFile},
    {.name = "id",
     .value = "UUID",
     .help = "its id; a repeated call with the same id is one job",
     .kind = ValueKind::kUuid},
    {.name = "key",
     .value = "KEY",
     .help = "idempotency key: what takes effect once; default is the id",
     .kind = ValueKind::kKey},
    {.name = "lock",
     .value = "KEY",
     .help = "lock key: jobs that share it do not run at the same time",
     .kind = ValueKind::kKey},
    {.name = "unique",
     .value = "KEY",
     .help = "unique key: at most one live job has it",
     .kind = ValueKind::kKey},
    {.name = "unique-for",
     .value = "D",
     .help = "bound of last resort of the unique key where its slot is not the job's own row",
     .kind = ValueKind::kDuration,
     .origin = Origin::kFile},
    {.name = "unique-until",
     .value = "start|end",
     .help = "when the unique key is free again; default is end",
     .kind = ValueKind::kChoice,
     .origin = Origin::kFile,
     .choices = "start|end"},
    {.name = "on-duplicate",
     .value = "keep|replace",
     .help = "which of two jobs with one unique key stays; default is keep",
     .kind = ValueKind::kChoice,
     .choices = "keep|replace"},
    {.name = "delay",
     .value = "D",
     .help = "not before so long from now",
     .kind = ValueKind::kDurationOrZero},
    {.name = "at", .value = "TIME", .help = "not before this time, e.g. 2026-11-30T14:55:00Z"},
    {.name = "priority",
     .value = "0..9",
     .help = "larger goes first; default 0",
     .kind = ValueKind::kInteger,
     .origin = Origin::kFile,
     .min = 0,
     .max = 9},
    {.name = "max-attempts",
     .value = "N",
     .help = "attempts until it is dead; default 10",
     .kind = ValueKind::kInteger,
     .origin = Origin::kFile,
     .min = 1,
     .max = 1'000'000'000},
}};

/// A job as somebody wrote it down, not yet judged.
struct JobDraft {
    std::string kind;
    std::string payload;
    std::array<std::optional<std::string>, kJobFieldCount> fields;

    [[nodiscard]] const std::optional<std::string>& at(JobField field) const {
        return fields[static_cast<std::size_t>(field)];
    }
};

/// Makes requests of drafts: checks values, and fills in what the file says of the kind.
class JobMaker {
 public:
    /// `args` must outlive it. Fields are named `--queue` or, in bulk lines, `queue`.
    JobMaker(const Arguments& args, std::string ns, bool fields_are_flags);

    /// Throws `Failure` with `kUsage`. A time that has passed means now.
    [[nodiscard]] engine::EnqueueRequest make(JobDraft draft);

    [[nodiscard]] std::size_t max_payload() const { return max_payload_; }

 private:
    [[nodiscard]] std::string name_of(JobField field) const;
    /// What the configuration file says of a kind.
    [[nodiscard]] const EnqueueOptions& defaults_of(const std::string& kind);
    [[nodiscard]] EnqueueOptions read_defaults(const std::string& kind) const;

    const Arguments& args_;
    std::string ns_;
    bool fields_are_flags_;
    std::size_t max_payload_;
    std::map<std::string, EnqueueOptions, std::less<>> defaults_;
};

}  // namespace sekali::cli
