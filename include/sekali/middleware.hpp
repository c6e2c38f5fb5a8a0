#pragma once

#include <chrono>
#include <concepts>
#include <exception>
#include <string>
#include <utility>

#include "sekali/worker.hpp"

// Middleware that comes with sekali, written with the public interface only.
namespace sekali::middleware {

/// Writes a warning for every run that took longer than `limit`.
[[nodiscard]] inline Middleware warn_when_slow(std::chrono::milliseconds limit) {
    return [limit](Context& ctx, const Next& next) {
        const auto begun = std::chrono::steady_clock::now();
        Outcome outcome = next(ctx);
        const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
            std::chrono::steady_clock::now() - begun);
        if (took > limit) {
            ctx.logger().warning("slow: " + std::to_string(took.count()) + " ms");
        }
        return outcome;
    };
}

/// Turns exceptions of type `E` into the outcome that `translate(const E&)` returns.
template <std::derived_from<std::exception> E, typename Translate>
[[nodiscard]] Middleware translate(Translate translate_exception) {
    return [translate_exception = std::move(translate_exception)](Context& ctx, const Next& next) {
        try {
            return next(ctx);
        } catch (const E& error) {
            return Outcome(translate_exception(error));
        }
    };
}

/// Refuses to start when less than `least` is left until the deadline: the job snoozes instead.
[[nodiscard]] inline Middleware require_time(std::chrono::milliseconds least) {
    return [least](Context& ctx, const Next& next) {
        const auto left = ctx.deadline() - std::chrono::steady_clock::now();
        return left < least ? snooze(least) : next(ctx);
    };
}

}  // namespace sekali::middleware
