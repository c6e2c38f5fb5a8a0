#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/tables.hpp"

namespace sekali::sim {

using engine::Millis;
using engine::StoreTime;

/// The store of a simulated world. `submit` only queues; `run_all` runs what is queued and answers.
class SimStore : public engine::Executor {
 public:
    /// How long the store's host has run.
    using Clock = std::function<Millis()>;

    void wait_for_change(Millis /*at_most*/) override {}
    virtual void run_all() = 0;
    [[nodiscard]] virtual StoreTime now() const = 0;
    /// What the store says of a worker, where it can prove deaths.
    virtual void set_fate(const std::string& /*worker*/, engine::OwnerFate /*fate*/) {}
    /// Writes of `ctx.commit`; how often each was made durable.
    virtual void write_effect(Transaction& /*transaction*/, const std::string& /*key*/) {}
    [[nodiscard]] virtual std::vector<std::string> wrong_effects(
        const std::vector<std::string>& /*once*/) {
        return {};
    }

    /// The power fails at some write or sync from now on.
    virtual void cut_power_after(std::size_t /*operations*/) {}
    [[nodiscard]] virtual bool is_down() const { return false; }
    /// Starts it again, and answers what was under way when the power failed: as it turned out.
    /// Returns what is wrong with what the disk has.
    [[nodiscard]] virtual std::vector<std::string> restart() { return {}; }
};

[[nodiscard]] std::unique_ptr<SimStore> make_memory_store(SimStore::Clock clock);
/// The backend as it is, from its group commit downwards, on a disk that loses what was not synced.
/// Its writer thread, the gate among processes and the proof of deaths are not part of it.
[[nodiscard]] std::unique_ptr<SimStore> make_sqlite_store(SimStore::Clock clock,
                                                          std::uint64_t seed);

}  // namespace sekali::sim
