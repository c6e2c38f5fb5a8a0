#pragma once

#include <optional>

#include "engine/worker_machine.hpp"

namespace sekali::engine {

/// What a worker believes about one lease of its own, by its own steady clock.
///
/// The store counts a lease from when it runs the request, which is not before the request was
/// sent: counting from the sending, less a margin, the worker's belief always ends first.
class Lease {
 public:
    Lease(Millis length, LocalTime asked);

    /// When a renewal is due: a third after the last one was sent, sooner where that one failed.
    [[nodiscard]] LocalTime renew_at() const { return renew_at_; }
    /// From here on somebody else may have it.
    [[nodiscard]] LocalTime deadline() const;
    [[nodiscard]] Millis length() const { return length_; }

    void sent(LocalTime now);
    void kept(LocalTime sent_at);
    void failed(LocalTime now);

 private:
    Millis length_;
    LocalTime asked_;
    LocalTime renew_at_;
};

/// Whether a lapsed lease tells of its owner rather than of the store: only when the store has
/// answered this worker for one whole lease with no gap above a third (DESIGN section 4, step 4).
class StoreTrust {
 public:
    explicit StoreTrust(Millis lease) : lease_(lease) {}

    /// Call for every event: a gap between two of them is a pause of this process.
    void seen(LocalTime now);
    void answered(LocalTime sent, LocalTime now);
    void failed();
    [[nodiscard]] bool whole_lease(LocalTime now) const;
    /// Until when `whole_lease` holds if nothing more is heard; long ago where it does not.
    [[nodiscard]] LocalTime whole_lease_until() const;
    /// Whether the last answer was no failure.
    [[nodiscard]] bool answers() const { return since_.has_value(); }

 private:
    Millis lease_;
    std::optional<LocalTime> seen_;
    std::optional<LocalTime> since_;
    LocalTime
        last_sent_{};  ///< Of what has been answered: the store was there at that time or later.
};

}  // namespace sekali::engine
