#include "bench/result.hpp"

#include <algorithm>

namespace sekali::bench {
namespace {

constexpr double kMicrosPerSecond = 1e6;

double divided(double part, double whole) {
    return whole > 0 ? part / whole : 0;
}

}  // namespace

BatchRate Comparison::raw() const {
    const auto slower = [](const BatchRate& a, const BatchRate& b) { return a.per_s < b.per_s; };
    const auto best = std::max_element(raw_by_batch.begin(), raw_by_batch.end(), slower);
    return best == raw_by_batch.end() ? BatchRate{} : *best;
}

double Comparison::ratio() const {
    return divided(sekali_per_s, raw().per_s);
}

double LevelFigures::us_per_job() const {
    return divided(kMicrosPerSecond, rate.sekali_per_s);
}

std::vector<ScaleRatio> BenchResult::scale_ratios() const {
    std::vector<ScaleRatio> ratios;
    for (const bool random_keys : {false, true}) {
        const ScalePoint* least = nullptr;
        const ScalePoint* most = nullptr;
        for (const ScalePoint& point : scale) {
            if (point.random_keys != random_keys) continue;
            if (least == nullptr || point.rows < least->rows) least = &point;
            if (most == nullptr || point.rows > most->rows) most = &point;
        }
        if (least == nullptr) continue;
        ratios.push_back({random_keys, divided(most->sekali_us, least->sekali_us),
                          divided(most->raw_us, least->raw_us)});
    }
    return ratios;
}

}  // namespace sekali::bench
