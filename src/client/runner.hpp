#pragma once

#include "engine/worker_machine.hpp"

namespace sekali::client {

/// Carries out the runs of some kinds: in this process, as child processes, or by HTTP.
///
/// The pump calls it; nothing here may block. Each `start` is answered by one
/// `event::HandlerEnded`, each `probe` by one `event::ProbeEnded`, whatever happens.
class Runner {
 public:
    virtual ~Runner() = default;
    virtual void start(engine::action::StartHandler request) = 0;
    /// Nothing more is started for now: what was need not wait any longer.
    virtual void started_all() {}
    virtual void probe(engine::action::AskProbe request) = 0;
    /// Asks the run to end soon.
    virtual void ask_stop(engine::RunId run, engine::StopReason reason) = 0;
    /// Ends a killable run.
    virtual void kill(engine::RunId run) = 0;
    /// Handlers may take over lapsed locks before this time.
    virtual void may_take_over_until(engine::LocalTime) {}
    virtual void complete_commit(engine::RunId run, const engine::Settled& settled) = 0;
};

}  // namespace sekali::client
