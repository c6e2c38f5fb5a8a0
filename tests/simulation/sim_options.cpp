#include "simulation/sim_options.hpp"

#include <array>
#include <sstream>

namespace sekali::sim {

using namespace std::chrono_literals;
using engine::Effects;
using engine::KindPolicy;
using engine::KindSetup;
using engine::OnUnknown;
using engine::RecordMode;

Options draw_options(std::uint64_t seed) {
    SimRandom random(seed);
    constexpr std::array<Millis, 4> kLeases{1000ms, 1500ms, 3000ms, 15000ms};
    Options options;
    options.seed = seed;
    options.workers = 1 + random.below(4);
    options.concurrency = 1 + random.below(4);
    options.prefetch = random.chance(0.5) ? random.below(5) : 0;
    options.jobs = 6 + random.below(30);
    options.keys = 1 + random.below(8);
    options.locks = random.chance(0.7) ? 1 + random.below(3) : 0;
    options.lease = random.pick(kLeases);
    options.span = options.lease * 10 + random.between(5s, 30s);
    options.tells_changes = random.chance(0.7);
    options.proves_deaths = random.chance(0.5);
    options.drift = random.chance(0.5) ? 0.02 * random.next() : 0.0;
    const auto sometimes = [&](double most) {
        return random.chance(0.5) ? most * random.next() : 0.0;
    };
    options.lost_request = sometimes(0.1);
    options.late_request = sometimes(0.1);
    options.lost_reply = sometimes(0.15);
    options.stalls = sometimes(4.0);
    options.outages = sometimes(4.0);
    options.crashes = sometimes(0.01);
    options.pauses = sometimes(6.0);
    options.stops = sometimes(4.0);
    options.cancels = sometimes(30.0);
    options.poison = sometimes(0.15);
    options.misbehaviour = sometimes(0.2);
    options.failures = sometimes(0.4);
    options.leaps = sometimes(4.0);
    options.store_drift = random.chance(0.3) ? 0.02 * (2 * random.next() - 1) : 0.0;
    options.lock_service = options.locks > 0 && random.chance(0.4);
    options.lock_losses = options.lock_service ? sometimes(6.0) : 0.0;
    options.strangers = options.lock_service ? sometimes(6.0) : 0.0;
    options.late_effects = sometimes(0.2);
    options.power_cuts = sometimes(6.0);
    options.broker = random.chance(0.3);
    options.disconnects = options.broker ? sometimes(10.0) : 0.0;
    options.published_twice = options.broker ? sometimes(0.3) : 0.0;
    options.honours_keys = random.chance(0.5);
    options.claims_begin = random.chance(0.6);
    options.delivery_limit = options.broker && random.chance(0.5) ? 1 + random.below(3) : 0;
    return options;
}

Options on_sqlite(Options options) {
    options.sqlite = true;
    options.proves_deaths = false;
    return options;
}

Options without_later_faults(Options options) {
    options.leaps = options.store_drift = options.late_effects = 0.0;
    options.lock_service = options.broker = options.claims_begin = false;
    return options;
}

std::string describe(const Options& options) {
    std::ostringstream out;
    out << "workers=" << options.workers << " concurrency=" << options.concurrency
        << " prefetch=" << options.prefetch << " jobs=" << options.jobs << " keys=" << options.keys
        << " locks=" << options.locks << " lease=" << options.lease.count()
        << "ms span=" << options.span.count() << "ms tells_changes=" << options.tells_changes
        << " proves_deaths=" << options.proves_deaths << " drift=" << options.drift
        << " lost_request=" << options.lost_request << " late_request=" << options.late_request
        << " lost_reply=" << options.lost_reply << " stalls=" << options.stalls
        << " outages=" << options.outages << " crashes=" << options.crashes
        << " pauses=" << options.pauses << " stops=" << options.stops
        << " cancels=" << options.cancels << " poison=" << options.poison
        << " misbehaviour=" << options.misbehaviour << " failures=" << options.failures
        << " leaps=" << options.leaps << " store_drift=" << options.store_drift
        << " lock_service=" << options.lock_service << " lock_losses=" << options.lock_losses
        << " strangers=" << options.strangers << " late_effects=" << options.late_effects
        << " honours_keys=" << options.honours_keys << " broker=" << options.broker
        << " disconnects=" << options.disconnects << " published_twice=" << options.published_twice
        << " claims_begin=" << options.claims_begin << " delivery_limit=" << options.delivery_limit;
    if (options.sqlite) out << " sqlite power_cuts=" << options.power_cuts;
    return out.str();
}

std::map<std::string, KindSetup> draw_kinds(const Options& options, SimRandom& random) {
    KindSetup usual;
    usual.policy.timeout = random.between(options.lease, options.lease * 5);
    usual.policy.lock_ttl = options.lease * 3 / 2;
    usual.policy.grace = random.between(200ms, options.lease);
    usual.policy.retry.base = random.between(50ms, 1s);
    usual.policy.retry.cap = 5s;
    usual.policy.retry.max_attempts = 2 + random.below(6);

    std::map<std::string, KindSetup> kinds;
    KindSetup& commit = kinds["commit"] = usual;
    commit.policy.effects = Effects::kCommit;

    KindSetup outside = usual;
    outside.policy.effects = Effects::kOutside;
    outside.policy.whole_answer = true;
    outside.killable = true;
    kinds["outside-rerun"] = outside;
    KindSetup& hold = kinds["outside-hold"] = outside;
    hold.policy.on_unknown = OnUnknown::kHold;
    KindSetup& probe = kinds["outside-probe"] = outside;
    probe.policy.on_unknown = OnUnknown::kProbe;
    probe.policy.probe = KindPolicy::Probe::kBefore;

    KindSetup steps = usual;
    steps.policy.effects = Effects::kSteps;
    kinds["steps-rerun"] = steps;
    KindSetup& ask = kinds["steps-probe"] = steps;
    ask.policy.on_unknown = OnUnknown::kProbe;
    ask.policy.probe = KindPolicy::Probe::kInStep;

    KindSetup& plain = kinds["plain"] = usual;
    plain.policy.record = RecordMode::kNone;
    return kinds;
}

}  // namespace sekali::sim
