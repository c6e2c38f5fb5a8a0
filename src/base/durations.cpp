#include "base/durations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/errors.hpp"
#include "base/text.hpp"

namespace sekali::base {
namespace {

using std::chrono::milliseconds;

struct Unit {
    std::string_view name;
    std::int64_t ms;
};

constexpr std::array kUnits = {
    Unit{"d", 86'400'000}, Unit{"h", 3'600'000}, Unit{"m", 60'000}, Unit{"s", 1'000}, Unit{"ms", 1},
};

constexpr std::string_view kUnitHint = "write a whole number and a unit: 250ms 30s 5m 2h 1d";

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/// Takes exactly `digits` digits off the front of `rest`.
std::optional<int> take_digits(std::string_view& rest, std::size_t digits) {
    if (rest.size() < digits || !std::all_of(rest.begin(), rest.begin() + digits, is_digit)) {
        return std::nullopt;
    }
    int value = 0;
    std::from_chars(rest.data(), rest.data() + digits, value);
    rest.remove_prefix(digits);
    return value;
}

bool take_any_of(std::string_view& rest, std::string_view characters) {
    if (rest.empty() || characters.find(rest.front()) == std::string_view::npos) return false;
    rest.remove_prefix(1);
    return true;
}

struct WallTime {
    std::chrono::year_month_day date{};
    int hour = 0;
    int minute = 0;
    int second = 0;
    int millisecond = 0;
};

std::optional<std::chrono::year_month_day> take_date(std::string_view& rest) {
    const auto year = take_digits(rest, 4);
    if (!year || !take_any_of(rest, "-")) return std::nullopt;
    const auto month = take_digits(rest, 2);
    if (!month || !take_any_of(rest, "-")) return std::nullopt;
    const auto day = take_digits(rest, 2);
    if (!day) return std::nullopt;
    const std::chrono::year_month_day date{std::chrono::year(*year),
                                           std::chrono::month(static_cast<unsigned>(*month)),
                                           std::chrono::day(static_cast<unsigned>(*day))};
    if (!date.ok()) return std::nullopt;
    return date;
}

std::optional<int> take_fraction(std::string_view& rest) {
    if (!take_any_of(rest, ".")) return 0;
    int value = 0;
    int scale = 100;
    if (rest.empty() || !is_digit(rest.front())) return std::nullopt;
    while (!rest.empty() && is_digit(rest.front())) {
        value += (rest.front() - '0') * scale;
        scale /= 10;
        rest.remove_prefix(1);
    }
    return value;
}

std::optional<WallTime> take_wall_time(std::string_view& rest) {
    const auto date = take_date(rest);
    if (!date || !take_any_of(rest, "Tt ")) return std::nullopt;
    const auto hour = take_digits(rest, 2);
    if (!hour || *hour > 23 || !take_any_of(rest, ":")) return std::nullopt;
    const auto minute = take_digits(rest, 2);
    if (!minute || *minute > 59 || !take_any_of(rest, ":")) return std::nullopt;
    const auto second = take_digits(rest, 2);
    if (!second || *second > 60) return std::nullopt;
    const auto fraction = take_fraction(rest);
    if (!fraction) return std::nullopt;
    return WallTime{*date, *hour, *minute, *second, *fraction};
}

/// Minutes east of Greenwich.
std::optional<int> take_zone(std::string_view& rest) {
    if (take_any_of(rest, "Zz")) return 0;
    const bool west = !rest.empty() && rest.front() == '-';
    if (!take_any_of(rest, "+-")) return std::nullopt;
    const auto hours = take_digits(rest, 2);
    if (!hours || *hours > 23 || !take_any_of(rest, ":")) return std::nullopt;
    const auto minutes = take_digits(rest, 2);
    if (!minutes || *minutes > 59) return std::nullopt;
    const int offset = *hours * 60 + *minutes;
    return west ? -offset : offset;
}

std::int64_t to_unix_seconds(const WallTime& time, int zone_minutes) {
    const std::int64_t days = std::chrono::sys_days(time.date).time_since_epoch().count();
    return days * 86'400 + time.hour * 3'600 + (time.minute - zone_minutes) * 60 + time.second;
}

}  // namespace

Result<milliseconds> parse_duration(std::string_view field, std::string_view text,
                                    DurationRule rule) {
    const auto refuse = [&](std::string_view what) {
        return usage_error(fmt::format("{} {}: {}", field, quoted(text), what),
                           std::string(kUnitHint));
    };
    if (text.empty()) return refuse("the duration is empty");
    if (text.front() == '-') return refuse("a duration cannot be negative");
    const auto* digits_end = std::find_if_not(text.begin(), text.end(), is_digit);
    const std::string_view digits(text.begin(), digits_end);
    const std::string_view unit_name(digits_end, text.end());
    if (digits.empty()) return refuse("a duration begins with a whole number");
    if (unit_name.empty()) return refuse("the unit is missing");
    if (unit_name.front() == '.' || unit_name.front() == ',') {
        return refuse("decimals are not accepted; use a smaller unit, as 1500ms for 1.5s");
    }
    const auto* unit = std::find_if(kUnits.begin(), kUnits.end(),
                                    [&](const Unit& u) { return u.name == unit_name; });
    if (unit == kUnits.end()) return refuse("the unit is not one of ms s m h d");
    std::int64_t count = 0;
    const auto problem = std::from_chars(digits.data(), digits.data() + digits.size(), count).ec;
    if (problem != std::errc{} || count > kMaxDuration.count() / unit->ms) {
        return refuse(fmt::format("it is longer than {}", format_duration(kMaxDuration)));
    }
    if (count == 0 && rule == DurationRule::kPositive) return refuse("it must be more than zero");
    return milliseconds(count * unit->ms);
}

std::string format_duration(milliseconds duration) {
    const std::int64_t ms = duration.count();
    if (ms == 0) return "0s";
    const auto* unit =
        std::find_if(kUnits.begin(), kUnits.end(), [ms](const Unit& u) { return ms % u.ms == 0; });
    return fmt::format("{}{}", ms / unit->ms, unit->name);
}

Result<std::int64_t> parse_instant(std::string_view field, std::string_view text) {
    const auto refuse = [&](std::string_view what) {
        return usage_error(fmt::format("{} {}: {}", field, quoted(text), what),
                           "write it as 2026-11-30T14:55:00Z or 2026-11-30T21:55:00+07:00");
    };
    std::string_view rest = text;
    const auto time = take_wall_time(rest);
    if (!time) return refuse("not a time of RFC 3339");
    if (rest.empty()) return refuse("the zone is missing");
    const auto zone = take_zone(rest);
    if (!zone || !rest.empty()) return refuse("the zone is not Z or an offset like +07:00");
    const std::int64_t seconds = to_unix_seconds(*time, *zone);
    if (time->second == 60 && seconds % 86'400 != 0) {
        return refuse("a leap second comes only at the end of a day in UTC");
    }
    return seconds * 1000 + time->millisecond;
}

std::string format_instant(std::int64_t unix_ms) {
    using std::chrono::sys_days;
    constexpr std::int64_t kFirst = -62'167'219'200'000;  // 0000-01-01T00:00:00.000Z
    constexpr std::int64_t kLast = 253'402'300'799'999;   // 9999-12-31T23:59:59.999Z
    const std::chrono::sys_time<milliseconds> time(
        milliseconds(std::clamp(unix_ms, kFirst, kLast)));
    const sys_days day = std::chrono::floor<std::chrono::days>(time);
    const std::chrono::year_month_day date(day);
    const std::chrono::hh_mm_ss<milliseconds> clock(time - day);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                       static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                       clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                       clock.subseconds().count());
}

}  // namespace sekali::base
