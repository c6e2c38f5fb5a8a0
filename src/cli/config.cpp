#include "cli/config.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/errors.hpp"
#include "base/text.hpp"

namespace sekali::cli {
namespace {

constexpr std::size_t kMaxFileBytes = 1024 * 1024;

[[noreturn]] void refuse(const std::string& path, std::string_view what, std::string hint = {}) {
    throw Failure(base::usage_error(fmt::format("{}: {}", base::printable(path), what), hint));
}

std::string read_file(const std::string& path) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"),
                                                               &std::fclose);
    if (!file) refuse(path, fmt::format("cannot be opened: {}", std::strerror(errno)));
    std::string text(kMaxFileBytes + 1, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), file.get()));
    if (std::ferror(file.get()) != 0) {
        refuse(path, fmt::format("cannot be read: {}", std::strerror(errno)));
    }
    if (text.size() > kMaxFileBytes) {
        refuse(path, fmt::format("is larger than {} bytes", kMaxFileBytes));
    }
    return text;
}

class Reader {
 public:
    explicit Reader(ConfigFile& config) : config_(config) {}

    void read(const toml::table& root) {
        for (const auto& [key, node] : root) {
            if (key == "kinds") {
                read_kinds(node);
            } else {
                config_.settings[std::string(key.str())] = values(key.str(), node);
            }
        }
    }

 private:
    void read_kinds(const toml::node& node) {
        const toml::table* kinds = node.as_table();
        if (kinds == nullptr) refuse(config_.path, "kinds is no table", kKindsHint);
        for (const auto& [kind, settings] : *kinds) {
            const toml::table* table = settings.as_table();
            const std::string name = fmt::format("kinds.{}", base::quoted(kind.str()));
            if (table == nullptr) refuse(config_.path, name + " is no table", kKindsHint);
            ConfigFile::Section& section = config_.kinds[std::string(kind.str())];
            for (const auto& [key, value] : *table) {
                section[std::string(key.str())] =
                    values(fmt::format("{}.{}", name, key.str()), value);
            }
        }
    }

    std::vector<std::string> values(std::string_view key, const toml::node& node) {
        const toml::array* list = node.as_array();
        if (list == nullptr) return {scalar(key, node)};
        std::vector<std::string> out;
        for (const toml::node& element : *list)
            out.push_back(scalar(key, element));
        return out;
    }

    std::string scalar(std::string_view key, const toml::node& node) {
        if (const auto* text = node.as_string()) return text->get();
        if (const auto* number = node.as_integer()) return std::to_string(number->get());
        if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
        if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
        refuse(config_.path,
               fmt::format("line {}: {} is neither text, number, true, false nor a list of them",
                           node.source().begin.line, base::printable(key)),
               node.is_table() ? R"(settings of one kind belong into [kinds."NAME"])" : "");
    }

    static constexpr const char* kKindsHint =
        R"(write [kinds."payment.charge"] and its settings below)";
    ConfigFile& config_;
};

}  // namespace

ConfigFile parse_config(const std::string& path, std::string_view text) {
    ConfigFile config;
    config.path = path;
    try {
        Reader(config).read(toml::parse(text));
    } catch (const toml::parse_error& error) {
        refuse(path, fmt::format("line {}: {}", error.source().begin.line,
                                 base::printable(error.description())));
    }
    return config;
}

ConfigFile read_config(const std::string& path) {
    return parse_config(path, read_file(path));
}

}  // namespace sekali::cli
