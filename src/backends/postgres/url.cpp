#include <libpq-fe.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>

#include "backends/postgres/options.hpp"
#include "base/errors.hpp"
#include "base/text.hpp"

namespace sekali::postgres {
namespace {

constexpr std::array<std::string_view, 2> kSchemes{"postgres://", "postgresql://"};
constexpr std::string_view kSchemaParameter = "schema=";
constexpr std::size_t kLongestSchema = 48;

void check_schema(std::string_view schema) {
    const bool fits = !schema.empty() && schema.size() <= kLongestSchema &&
                      std::all_of(schema.begin(), schema.end(), [](unsigned char c) {
                          return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '_';
                      });
    if (fits && std::isdigit(static_cast<unsigned char>(schema[0])) == 0 &&
        !schema.starts_with("pg_")) {
        return;
    }
    throw Failure(
        base::usage_error("schema: " + base::quoted(schema) + " is no name for sekali's schema",
                          "use up to 48 small letters, digits and _, beginning with a letter"));
}

/// Takes the parameters that libpq does not know off the query.
std::string split_parameters(std::string_view query, PostgresOptions& options) {
    std::string kept;
    while (!query.empty()) {
        const std::size_t end = query.find('&');
        const std::string_view parameter = query.substr(0, end);
        query.remove_prefix(end == std::string_view::npos ? query.size() : end + 1);
        if (parameter.starts_with(kSchemaParameter)) {
            options.schema = parameter.substr(kSchemaParameter.size());
            continue;
        }
        kept += kept.empty() ? "?" : "&";
        kept += parameter;
    }
    return kept;
}

struct FreeOptions {
    void operator()(PQconninfoOption* options) const { PQconninfoFree(options); }
};

void check_by_libpq(const std::string& connection) {
    char* raw = nullptr;
    const std::unique_ptr<PQconninfoOption, FreeOptions> parsed(
        PQconninfoParse(connection.c_str(), &raw));
    const std::unique_ptr<char, decltype(&PQfreemem)> message(raw, &PQfreemem);
    if (parsed != nullptr) return;
    // libpq's text quotes what it could not read, which may be part of a password.
    throw Failure(base::usage_error(
        "the PostgreSQL URL " + base::quoted(without_secrets(connection)) + " cannot be read",
        "write postgres://USER@HOST:PORT/DATABASE?schema=sekali and what libpq's manual has for "
        "connection URIs; letters like @ and / in a password are written %40 and %2F"));
}

}  // namespace

bool is_postgres_url(std::string_view url) {
    return std::any_of(kSchemes.begin(), kSchemes.end(),
                       [&](std::string_view scheme) { return url.starts_with(scheme); });
}

PostgresOptions parse_url(std::string_view url) {
    PostgresOptions options;
    const std::size_t query = url.find('?');
    options.connection = url.substr(0, query);
    if (query != std::string_view::npos) {
        options.connection += split_parameters(url.substr(query + 1), options);
    }
    check_schema(options.schema);
    check_by_libpq(options.connection);
    return options;
}

std::string without_secrets(std::string_view url) {
    std::string shown(url);
    const std::size_t begin = shown.find("://");
    if (begin == std::string::npos) return shown;
    const std::size_t authority = begin + 3;
    const std::size_t authority_end = std::min(shown.find_first_of("/?", authority), shown.size());
    const std::size_t at = shown.rfind('@', authority_end);
    const std::size_t colon = shown.find(':', authority);
    if (at != std::string::npos && at > authority && colon < at) shown.erase(colon, at - colon);
    for (const std::string_view secret : {"password=", "sslpassword="}) {
        for (std::size_t found = shown.find(secret); found != std::string::npos;
             found = shown.find(secret, found)) {
            found += secret.size();
            shown.replace(found, std::min(shown.find('&', found), shown.size()) - found, "***");
        }
    }
    return shown;
}

}  // namespace sekali::postgres
