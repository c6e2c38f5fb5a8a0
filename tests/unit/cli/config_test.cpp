#include "cli/config.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sekali/result.hpp"

namespace sekali::cli {
namespace {

class ReadConfig : public testing::Test {
 protected:
    std::string write(std::string_view text) {
        std::ofstream(path_) << text;
        return path_;
    }
    std::string refusal(std::string_view text) {
        try {
            static_cast<void>(read_config(write(text)));
        } catch (const Failure& failure) {
            EXPECT_EQ(failure.error().code, ErrorCode::kUsage);
            return failure.error().message;
        }
        return "";
    }
    void TearDown() override { std::filesystem::remove(path_); }

    std::string path_ = testing::TempDir() + "sekali_config_test_" +
                        testing::UnitTest::GetInstance()->current_test_info()->name() + ".toml";
};

TEST_F(ReadConfig, ReadsSettingsAndKinds) {
    const ConfigFile config = read_config(write(R"(
url = "sqlite:/tmp/x.db"
concurrency = 8
retry_factor = 1.5
drain = true
queues = ["a", "b"]
[kinds."payment.charge"]
timeout = "5m"
[kinds.mail]
priority = 9
)"));
    EXPECT_EQ(config.settings.at("url"), std::vector<std::string>{"sqlite:/tmp/x.db"});
    EXPECT_EQ(config.settings.at("concurrency"), std::vector<std::string>{"8"});
    EXPECT_EQ(config.settings.at("retry_factor"), std::vector<std::string>{"1.5"});
    EXPECT_EQ(config.settings.at("drain"), std::vector<std::string>{"true"});
    EXPECT_EQ(config.settings.at("queues"), (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(config.kinds.at("payment.charge").at("timeout"), std::vector<std::string>{"5m"});
    EXPECT_EQ(config.kinds.at("mail").at("priority"), std::vector<std::string>{"9"});
}

TEST_F(ReadConfig, RefusesAKeyGivenTwiceByName) {
    const std::string message = refusal("lease = \"1s\"\nlease = \"2s\"\n");
    EXPECT_NE(message.find("line 2"), std::string::npos) << message;
    EXPECT_NE(message.find("lease"), std::string::npos) << message;
}

TEST_F(ReadConfig, RefusesWhatNoFlagCouldHave) {
    EXPECT_NE(refusal("[payment.charge]\ntimeout = \"5m\"\n").find("payment"), std::string::npos);
    EXPECT_NE(refusal("at = 2026-11-30\n"), "");
    EXPECT_NE(refusal("kinds = 5\n"), "");
    EXPECT_NE(refusal("[kinds]\nmail = 5\n"), "");
    EXPECT_NE(refusal("[kinds.mail]\nqueue = { a = 1 }\n"), "");
    EXPECT_NE(refusal("lease = \n"), "");
    EXPECT_NE(refusal("queues = [[\"a\"]]\n"), "");
}

TEST_F(ReadConfig, RefusesAFileThatIsMissingOrHuge) {
    EXPECT_THROW(static_cast<void>(read_config("/nonexistent/x.toml")), Failure);
    EXPECT_NE(refusal(std::string(2'000'000, '#')).find("larger than"), std::string::npos);
}

}  // namespace
}  // namespace sekali::cli
