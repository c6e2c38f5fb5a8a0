#include "cli/bulk_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/errors.hpp"
#include "base/json_slice.hpp"
#include "base/text.hpp"
#include "cli/nearest.hpp"

namespace sekali::cli {
namespace {

[[noreturn]] void refuse_field(std::string_view name) {
    std::vector<std::string> known{"kind", "payload"};
    for (const OptionSpec& option : kJobFieldOptions)
        known.push_back(file_key(option.name));
    const std::vector<std::string_view> names(known.begin(), known.end());
    std::string hint = did_you_mean(name, names);
    if (hint.empty()) hint = fmt::format("fields are {}", fmt::join(known, " "));
    throw Failure(base::usage_error(fmt::format("unknown field {}", base::quoted(name)), hint));
}

bool names_option(std::string_view name, std::string_view option) {
    return std::equal(name.begin(), name.end(), option.begin(), option.end(),
                      [](char a, char b) { return a == b || (a == '_' && b == '-'); });
}

std::string text_of(std::string_view name, std::string_view slice) {
    if (slice.front() == '"') return base::decode_json_string(slice).value();
    const bool number = slice.front() == '-' || (slice.front() >= '0' && slice.front() <= '9');
    if (number) return std::string(slice);
    throw Failure(base::usage_error(fmt::format("{} is neither text nor a number, but {}",
                                                base::printable(name), base::quoted(slice))));
}

void take_option(JobDraft& draft, std::string_view name, std::string_view slice) {
    const auto& options = kJobFieldOptions;
    for (std::size_t i = 0; i < options.size(); ++i) {
        if (!names_option(name, options[i].name)) continue;
        if (draft.fields[i]) {
            throw Failure(base::usage_error(
                fmt::format("the field {} is there twice", file_key(options[i].name))));
        }
        // Absent may also be written as null.
        if (slice != "null") draft.fields[i] = text_of(name, slice);
        return;
    }
    refuse_field(name);
}

}  // namespace

JobDraft parse_bulk_line(std::string_view line) {
    JobDraft draft;
    draft.payload = "null";
    bool has_kind = false;
    for (const base::JsonField& field : base::read_object(line).value()) {
        if (field.name == "payload") {
            draft.payload = field.slice;
        } else if (field.name == "kind") {
            draft.kind = text_of("kind", field.slice);
            has_kind = true;
        } else {
            take_option(draft, field.name, field.slice);
        }
    }
    if (!has_kind) throw Failure(base::usage_error("the field kind is missing"));
    return draft;
}

}  // namespace sekali::cli
