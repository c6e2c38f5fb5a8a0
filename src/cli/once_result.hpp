#pragma once

#include <string>
#include <string_view>

namespace sekali::cli {

/// What a command behind `once` answered.
struct OnceAnswer {
    int status = 0;
    std::string output;  ///< Its stdout, as it can be stored.
};

/// The answer as a job's result, within the limit of results: the output itself for status 0, else
/// an object of both. What is too long is cut and marked.
[[nodiscard]] std::string encode_answer(int status, std::string_view output);
/// Reads it back. A result that a person gave is an output with status 0.
[[nodiscard]] OnceAnswer decode_answer(std::string_view result);

}  // namespace sekali::cli
