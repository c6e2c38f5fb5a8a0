#include "cli/once_result.hpp"

#include <optional>

#include "base/json_slice.hpp"
#include "base/json_writer.hpp"
#include "base/limits.hpp"

namespace sekali::cli {
namespace {

std::string as_object(int status, std::string_view output) {
    std::string text;
    base::JsonWriter json(text);
    json.begin_object().field("exit_status", status).field("stdout", output).end_object();
    return text;
}

std::optional<OnceAnswer> read_answer(std::string_view result) {
    if (!result.starts_with(R"({"exit_status":)")) return std::nullopt;
    const auto fields = base::read_object(result);
    const bool fits = fields && fields->size() == 2 && (*fields)[1].name == "stdout";
    if (!fits) return std::nullopt;
    const auto status = base::parse_count("exit_status", (*fields)[0].slice, 0, 255);
    auto output = base::decode_json_string((*fields)[1].slice);
    if (!status || !output) return std::nullopt;
    return OnceAnswer{static_cast<int>(*status), *std::move(output)};
}

}  // namespace

std::string encode_answer(int status, std::string_view output) {
    std::size_t room = base::kMaxResultBytes;
    std::string plain = base::make_storable(std::string(output), room);
    if (status == 0 && !read_answer(plain)) return plain;
    std::string text = as_object(status, plain);
    // Escapes may need more room than the bytes that they stand for.
    while (text.size() > base::kMaxResultBytes) {
        room /= 2;
        text = as_object(status, base::make_storable(std::string(output), room));
    }
    return text;
}

OnceAnswer decode_answer(std::string_view result) {
    if (auto answer = read_answer(result)) return *std::move(answer);
    return {0, std::string(result)};
}

}  // namespace sekali::cli
