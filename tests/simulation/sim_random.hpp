#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "engine/worker_machine.hpp"

namespace sekali::sim {

/// SplitMix64 (Steele, Lea, Flood 2014): one 64-bit state, so that a seed is the whole of it.
class SimRandom final : public engine::Random {
 public:
    explicit SimRandom(std::uint64_t seed) : state_(seed) {}

    std::uint64_t bits() {
        std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        return z ^ (z >> 31);
    }
    double next() override { return static_cast<double>(bits() >> 11) * 0x1.0p-53; }
    bool chance(double p) { return next() < p; }
    std::size_t below(std::size_t n) { return static_cast<std::size_t>(bits() % n); }
    engine::Millis between(engine::Millis from, engine::Millis to) {
        const auto width = static_cast<std::size_t>((to - from).count()) + 1;
        return from + engine::Millis{static_cast<engine::Millis::rep>(below(width))};
    }
    template <typename Container>
    const auto& pick(const Container& container) {
        return *std::next(container.begin(), static_cast<std::ptrdiff_t>(below(container.size())));
    }

 private:
    std::uint64_t state_;
};

}  // namespace sekali::sim
