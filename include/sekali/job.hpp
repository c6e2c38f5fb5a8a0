#pragma once

#include <concepts>
#include <string>
#include <string_view>

#include "sekali/codec.hpp"
#include "sekali/options.hpp"

namespace sekali {

/// What sekali has to know about a job type: its kind, and how its jobs are enqueued.
///
/// The plain way is a described struct with `static constexpr std::string_view kKind` and, where
/// wanted, `EnqueueOptions options() const`. Specialise it, with `kind` and `options`, for a type
/// that is not your own.
template <typename T>
struct JobTraits {
    static constexpr std::string_view kind() requires requires {
        { T::kKind } -> std::convertible_to<std::string_view>;
    }
    { return T::kKind; }

    static EnqueueOptions options(const T& job) {
        if constexpr (requires {
                          { job.options() } -> std::convertible_to<EnqueueOptions>;
                      }) {
            return job.options();
        } else {
            return {};
        }
    }
};

/// A type whose values can be enqueued and handled.
template <typename T>
concept Job = requires(const T& job) {
    { JobTraits<T>::kind() } -> std::convertible_to<std::string_view>;
    { JobTraits<T>::options(job) } -> std::convertible_to<EnqueueOptions>;
};

/// A job whose kind and payload are only known at run time. The payload is JSON text and reaches
/// the handler byte for byte.
struct RawJob {
    std::string kind{};
    std::string payload{};
};

}  // namespace sekali
