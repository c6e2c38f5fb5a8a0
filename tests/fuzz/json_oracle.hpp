#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sekali::testing {

/// What an independent parser says about a text.
enum class OracleVerdict : std::uint8_t { kAccepted, kRefused, kNoOpinion };

/// Adds to nlohmann's strict parser what sekali asks for beyond it: bounded depth and no repeated
/// field.
class JsonOracle : public nlohmann::json_sax<nlohmann::json> {
 public:
    explicit JsonOracle(std::size_t max_depth) : max_depth_(max_depth) {}

    bool null() override { return true; }
    bool boolean(bool) override { return true; }
    bool number_integer(number_integer_t) override { return true; }
    bool number_unsigned(number_unsigned_t) override { return true; }
    bool number_float(number_float_t, const string_t&) override { return true; }
    bool string(string_t&) override { return true; }
    bool binary(binary_t&) override { return true; }
    bool start_object(std::size_t) override {
        names_.emplace_back();
        return enter();
    }
    bool key(string_t& name) override { return names_.back().insert(name).second; }
    bool end_object() override {
        names_.pop_back();
        return leave();
    }
    bool start_array(std::size_t) override { return enter(); }
    bool end_array() override { return leave(); }
    bool parse_error(std::size_t, const std::string&,
                     const nlohmann::detail::exception& problem) override {
        constexpr int kNumberOverflow = 406;
        number_overflow_ = problem.id == kNumberOverflow;
        return false;
    }

    [[nodiscard]] bool number_overflow() const { return number_overflow_; }

 private:
    bool enter() { return ++depth_ <= max_depth_; }
    bool leave() {
        --depth_;
        return true;
    }

    std::size_t max_depth_;
    std::size_t depth_ = 0;
    bool number_overflow_ = false;
    std::vector<std::set<std::string>> names_;
};

inline OracleVerdict ask_json_oracle(std::string_view text, std::size_t max_depth) {
    // The other parser takes a NUL for the end and skips a byte order mark; neither is JSON.
    if (text.find('\0') != std::string_view::npos || text.starts_with("\xEF\xBB\xBF")) {
        return OracleVerdict::kRefused;
    }
    JsonOracle oracle(max_depth);
    if (nlohmann::json::sax_parse(text, &oracle)) return OracleVerdict::kAccepted;
    // It stops at numbers beyond a double, which are JSON all the same, and never sees the rest.
    return oracle.number_overflow() ? OracleVerdict::kNoOpinion : OracleVerdict::kRefused;
}

}  // namespace sekali::testing
