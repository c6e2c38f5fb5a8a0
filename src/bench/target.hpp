#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "bench/jobs.hpp"
#include "bench/levels.hpp"
#include "bench/result.hpp"

// What a bench measures, whatever the backend is.
namespace sekali::bench {

/// What a handler of L4 writes.
inline constexpr std::int64_t kEffectCents = 4200;

/// The rows that sekali writes for jobs of one level, written by bare prepared statements and
/// nothing else: no look-ups, no checks. Each call is one transaction; the first of the jobs has
/// the place `first_seq`. On one connection, for one thread.
class RawStore {
 public:
    virtual ~RawStore() = default;
    virtual void enqueue(std::span<const JobDraft> jobs, std::int64_t first_seq) = 0;
    virtual void claim(std::span<const JobDraft> jobs, std::int64_t first_seq) = 0;
    virtual void begin_runs(std::span<const JobDraft> jobs, std::int64_t first_seq) = 0;
    virtual void settle(std::span<const JobDraft> jobs, std::int64_t first_seq) = 0;
};

/// A store of its own with sekali's schema and the table of effects; gone with this object.
class Subject {
 public:
    virtual ~Subject() = default;
    [[nodiscard]] virtual std::string url() const = 0;
    /// The statement that writes one effect: the job's id and the cents.
    [[nodiscard]] virtual std::string effect_sql() const = 0;
    [[nodiscard]] virtual std::unique_ptr<RawStore> raw(const Level& level) = 0;
    /// A question on a connection of its own: whether any job is running.
    [[nodiscard]] virtual std::function<bool()> running() = 0;
};

/// A backend: where subjects are made.
class Target {
 public:
    virtual ~Target() = default;
    /// The machine and the store's settings.
    [[nodiscard]] virtual Environment look_around() = 0;
    [[nodiscard]] virtual std::unique_ptr<Subject> new_subject() = 0;
};

}  // namespace sekali::bench
