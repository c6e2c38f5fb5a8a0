#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <string>

#include "base/json_check.hpp"
#include "base/limits.hpp"

namespace {

std::atomic<std::size_t> allocated_bytes{0};

}  // namespace

// This program counts what the heap gives, so that a promise about memory can be tested.
void* operator new(std::size_t size) {
    allocated_bytes.fetch_add(size, std::memory_order_relaxed);
    if (void* memory = std::malloc(size)) return memory;
    throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}

namespace sekali::base {
namespace {

std::size_t bytes_to_check(const std::string& text) {
    const std::size_t before = allocated_bytes.load();
    const bool good = check_json(text, text.size(), kMaxJsonDepth).ok();
    const std::size_t after = allocated_bytes.load();
    EXPECT_TRUE(good);
    return after - before;
}

TEST(JsonMemory, OrdinaryPayloadsNeedNoHeap) {
    EXPECT_EQ(bytes_to_check(R"({"order_id":"1001","cents":4200,"lines":[{"sku":"a\n","n":2}]})"),
              0U);
    EXPECT_EQ(bytes_to_check(std::string(128, '[') + std::string(128, ']')), 0U);
    EXPECT_EQ(bytes_to_check('"' + std::string(100'000, 'x') + '"'), 0U);
}

TEST(JsonMemory, GrowsWithTheNumberOfFieldsOnly) {
    std::string text = "{";
    while (text.size() < kDefaultMaxPayloadBytes) {
        text += "\"" + std::to_string(text.size()) + "\":1,";
    }
    text.back() = '}';
    EXPECT_LT(bytes_to_check(text), 16 * text.size());
}

}  // namespace
}  // namespace sekali::base
