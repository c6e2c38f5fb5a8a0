#include "cli/connect.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "backends/postgres/options.hpp"
#include "backends/sqlite/options.hpp"
#include "base/text.hpp"
#include "cli/address.hpp"

namespace sekali::cli {
namespace {

/// The state folder is the user's own business; what is made here only its owner can enter.
void make_folders(const std::string& database) {
    std::filesystem::path missing = std::filesystem::path(database).parent_path();
    std::vector<std::filesystem::path> to_make;
    std::error_code ignored;
    while (!missing.empty() && !std::filesystem::exists(missing, ignored)) {
        to_make.push_back(missing);
        missing = missing.parent_path();
    }
    for (auto folder = to_make.rbegin(); folder != to_make.rend(); ++folder) {
        constexpr mode_t kOwnerOnly = 0700;
        if (::mkdir(folder->c_str(), kOwnerOnly) == 0 || errno == EEXIST) continue;
        throw Failure({.code = ErrorCode::kRefused,
                       .message = fmt::format("the folder {} cannot be made: {}",
                                              base::quoted(folder->string()), std::strerror(errno)),
                       .hint = "choose another place with --url sqlite:PATH"});
    }
}

bool makes_files(OpenMode mode) {
    return mode == OpenMode::kMigrate || mode == OpenMode::kCreate;
}

Store open_postgres(const StoreAddress& address, OpenMode mode) {
    postgres::PostgresOptions options = postgres::parse_url(address.postgres);
    options.migrate = mode == OpenMode::kMigrate;
    options.read_only = mode == OpenMode::kReadOnly;
    return {client::open_postgres(address.url(), std::move(options)).value(), address.full_url()};
}

Store open_sqlite(const StoreAddress& address, OpenMode mode) {
    sqlite::SqliteOptions options;
    options.path = address.path;
    options.create = makes_files(mode);
    options.read_only = mode == OpenMode::kReadOnly;
    options.synchronous =
        address.synchronous_full ? sqlite::Synchronous::kFull : sqlite::Synchronous::kNormal;
    return {client::open_sqlite(address.url(), std::move(options)).value(), address.full_url()};
}

Store open_at(const StoreAddress& address, OpenMode mode) {
    return address.postgres.empty() ? open_sqlite(address, mode) : open_postgres(address, mode);
}

}  // namespace

bool exists(const StoreAddress& address) {
    std::error_code ignored;
    return !address.postgres.empty() || std::filesystem::exists(address.path, ignored);
}

StoreAddress prepare_store(CommandContext& context) {
    StoreAddress address = store_address(context.args, context.environment);
    if (address.is_default) context.out.note("store " + base::printable(address.url()));
    if (address.postgres.empty()) make_folders(address.path);
    return address;
}

Store open_store(CommandContext& context, OpenMode mode) {
    if (makes_files(mode)) return open_at(prepare_store(context), mode);
    const StoreAddress address = store_address(context.args, context.environment);
    if (!exists(address)) {
        throw Failure(
            {.code = ErrorCode::kNotFound,
             .message = fmt::format("there is no database at {} yet", base::quoted(address.path)),
             .hint = "the first `sekali enqueue` or `sekali work` makes it; if it is "
                     "elsewhere, say so with --url sqlite:PATH"});
    }
    return open_at(address, mode);
}

std::optional<Store> open_if_exists(CommandContext& context) {
    const StoreAddress address = store_address(context.args, context.environment);
    if (!exists(address)) return std::nullopt;
    try {
        return open_at(address, OpenMode::kReadOnly);
    } catch (const Failure& failure) {
        if (failure.error().code == ErrorCode::kNotFound) return std::nullopt;
        throw;
    }
}

}  // namespace sekali::cli
