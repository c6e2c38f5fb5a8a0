#include "cli/address.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

#include "cli/app.hpp"
#include "sekali/result.hpp"

namespace sekali::cli {
namespace {

using Variables = std::map<std::string, std::string>;

Arguments::Environment reading(const Variables& variables) {
    return [variables](const std::string& name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        if (found == variables.end()) return std::nullopt;
        return found->second;
    };
}

StoreAddress resolve(const std::map<std::string_view, std::string>& flags,
                     const Variables& variables = {}) {
    static constexpr CommandSpec kCommand{.name = "try", .summary = ""};
    ParsedLine line;
    for (const auto& [name, value] : flags)
        line.flags[name] = {value};
    const Arguments args(kCommand, global_options(), line, {}, {}, reading(variables));
    return store_address(args, reading(variables));
}

std::string refusal(const std::map<std::string_view, std::string>& flags,
                    const Variables& variables = {}) {
    try {
        static_cast<void>(resolve(flags, variables));
    } catch (const Failure& failure) {
        EXPECT_EQ(failure.error().code, ErrorCode::kUsage);
        return failure.error().message + " | " + failure.error().hint;
    }
    return "";
}

TEST(StoreAddress, ReadsPaths) {
    EXPECT_EQ(resolve({{"url", "sqlite:/a/b.db"}}).path, "/a/b.db");
    EXPECT_EQ(resolve({{"url", "sqlite:b.db"}}).path, "b.db");
    EXPECT_EQ(resolve({{"url", "sqlite:///a/b.db"}}).path, "/a/b.db");
    EXPECT_EQ(resolve({{"url", "sqlite:/a/b?c.db"}}).path, "/a/b?c.db");
    EXPECT_FALSE(resolve({{"url", "sqlite:/a/b.db"}}).is_default);
}

TEST(StoreAddress, TakesTheSynchronousMode) {
    EXPECT_TRUE(resolve({{"url", "sqlite:/a.db"}}).synchronous_full);
    const StoreAddress address = resolve({{"url", "sqlite:/a.db?synchronous=normal"}});
    EXPECT_EQ(address.path, "/a.db");
    EXPECT_FALSE(address.synchronous_full);
    EXPECT_NE(refusal({{"url", "sqlite:/a.db?synchronous=off"}}), "");
}

TEST(StoreAddress, DefaultsToTheStateFolder) {
    const StoreAddress chosen = resolve({}, {{"XDG_STATE_HOME", "/state"}, {"HOME", "/home/u"}});
    EXPECT_EQ(chosen.path, "/state/sekali/sekali.db");
    EXPECT_TRUE(chosen.is_default);
    const StoreAddress fallback = resolve({}, {{"XDG_STATE_HOME", "state"}, {"HOME", "/home/u"}});
    EXPECT_EQ(fallback.path, geteuid() == 0 ? "/var/lib/sekali/sekali.db"
                                            : "/home/u/.local/state/sekali/sekali.db");
}

TEST(StoreAddress, PartsMayBeNamedOneByOne) {
    EXPECT_EQ(resolve({{"store-url", "sqlite:/a.db"}}).path, "/a.db");
    EXPECT_EQ(resolve({{"store-url", "sqlite:/a.db"},
                       {"queue-url", "sqlite:/a.db"},
                       {"lock-url", "sqlite:/a.db"}})
                  .path,
              "/a.db");
    EXPECT_EQ(resolve({}, {{"SEKALI_STORE_URL", "sqlite:/e.db"}}).path, "/e.db");
    EXPECT_EQ(resolve({{"url", "sqlite:/a.db"}}, {{"SEKALI_URL", "sqlite:/e.db"}}).path, "/a.db");
    EXPECT_NE(refusal({{"store-url", "sqlite:/a.db"}, {"queue-url", "sqlite:/b.db"}}), "");
    EXPECT_NE(refusal({{"store-url", "sqlite:/a.db"}}, {{"SEKALI_URL", "sqlite:/e.db"}}), "");
    EXPECT_NE(refusal({{"store-url", "sqlite:/a.db"}, {"url", "sqlite:/a.db"}}), "");
}

TEST(StoreAddress, RefusesOtherSchemesByName) {
    EXPECT_NE(refusal({{"url", "memory:"}}).find("library"), std::string::npos);
    EXPECT_NE(refusal({{"url", "redis://db/1"}}).find("redis: is not built in yet"),
              std::string::npos);
    EXPECT_NE(refusal({{"url", "sqlit:/a.db"}}).find("`sqlite`"), std::string::npos);
    EXPECT_NE(refusal({{"url", "/a/b.db"}}).find("write sqlite:PATH"), std::string::npos);
    for (const char* url : {"sqlite:", "sqlite::memory:", "sqlite:/a/", "sqlite://host/a.db", ":"})
        EXPECT_NE(refusal({{"url", url}}), "") << url;
}

TEST(StoreAddress, TakesPostgresAsItIs) {
    const StoreAddress address = resolve({{"url", "postgres://u:hunter2@db:5433/x?schema=jobs"}});
    EXPECT_EQ(address.full_url(), "postgres://u:hunter2@db:5433/x?schema=jobs");
    EXPECT_EQ(address.url(), "postgres://u@db:5433/x?schema=jobs");
    EXPECT_EQ(resolve({{"url", "postgresql://u@db/x?password=hunter2&sslmode=require"}}).url(),
              "postgresql://u@db/x?password=***&sslmode=require");
    EXPECT_NE(refusal({{"url", "postgres://db/x?schema=Jobs"}}).find("schema"), std::string::npos);
    EXPECT_NE(refusal({{"url", "postgres://db/x?no_such_setting=1"}}), "");
}

TEST(StoreAddress, NeverRepeatsASecret) {
    for (const char* url : {"postgres://u:hunter2@db:x:y/x", "postgres://u:hunter2@db/x?schema=%",
                            "postgres://u:hunter2@db/x?password=hunter2&nonsense=1",
                            "redis://:hunter2@r", "hunter2", "amqp://u@h/?password=hunter2"}) {
        EXPECT_EQ(refusal({{"url", url}}).find("hunter2"), std::string::npos) << url;
    }
}

}  // namespace
}  // namespace sekali::cli
