#include "base/ids.hpp"

#include <pthread.h>
#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "base/assert.hpp"
#include "base/clock.hpp"

namespace sekali::base {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

void fill_random(unsigned char* out, std::size_t size) {
    while (size > 0) {
        const ssize_t got = getrandom(out, size, 0);
        SEKALI_ASSERT(got > 0 || errno == EINTR, "the kernel gives no random bytes");
        if (got > 0) {
            out += got;
            size -= static_cast<std::size_t>(got);
        }
    }
}

/// The 128 bits of an id without version and variant: 48 of time, 12 and 62 of a random counter.
struct Uuid7Fields {
    std::uint64_t unix_ms = 0;
    std::uint64_t rand_a = 0;
    std::uint64_t rand_b = 0;
};

constexpr std::uint64_t kRandAMax = (1ULL << 12) - 1;
constexpr std::uint64_t kRandBMax = (1ULL << 62) - 1;

/// "Monotonic random" of RFC 9562, section 6.2, method 2: within one millisecond the random part
/// grows by a random step, so ids stay ordered and cannot be guessed from their neighbours.
class Uuid7Source {
 public:
    Uuid7Source() {
        pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                       [] {
                           instance().forget();
                           instance().mutex_.unlock();
                       });
    }

    /// Never destroyed: threads may ask for ids while the process exits.
    static Uuid7Source& instance() {
        static auto* source = new Uuid7Source;
        return *source;
    }

    Uuid7Fields next() {
        const std::lock_guard<std::mutex> guard(mutex_);
        const auto now = static_cast<std::uint64_t>(wall_ms());
        if (now > last_.unix_ms || forgotten_) {
            forgotten_ = false;
            last_.unix_ms = now > last_.unix_ms ? now : last_.unix_ms;
            last_.rand_a = random_bits(12) >> 1;  // the top bit stays free to count into
            last_.rand_b = random_bits(62);
        } else {
            advance();
        }
        return last_;
    }

 private:
    void advance() {
        const std::uint64_t step = random_bits(32) + 1;
        if (last_.rand_b <= kRandBMax - step) {
            last_.rand_b += step;
            return;
        }
        last_.rand_b = step - (kRandBMax - last_.rand_b) - 1;
        if (last_.rand_a < kRandAMax) {
            ++last_.rand_a;
            return;
        }
        last_.rand_a = 0;
        ++last_.unix_ms;
    }

    std::uint64_t random_bits(unsigned bits) {
        if (pool_used_ == pool_.size()) {
            fill_random(pool_.data(), pool_.size());
            pool_used_ = 0;
        }
        std::uint64_t word = 0;
        std::memcpy(&word, pool_.data() + pool_used_, sizeof word);
        pool_used_ += sizeof word;
        return word >> (64 - bits);
    }

    void forget() {
        forgotten_ = true;
        pool_used_ = pool_.size();
    }

    std::mutex mutex_;
    Uuid7Fields last_;
    bool forgotten_ = true;
    std::array<unsigned char, 512> pool_{};  // one system call for many ids
    std::size_t pool_used_ = pool_.size();
};

void put_hex(std::string& out, std::uint64_t value, int digits) {
    for (int shift = (digits - 1) * 4; shift >= 0; shift -= 4) {
        out += kHexDigits[(value >> shift) & 0xF];
    }
}

bool is_lower_hex(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

}  // namespace

std::string new_uuid7() {
    const Uuid7Fields id = Uuid7Source::instance().next();
    constexpr std::uint64_t kVersion = 0x7000;
    constexpr std::uint64_t kVariant = 0x8000;
    std::string text;
    text.reserve(36);
    put_hex(text, id.unix_ms >> 16, 8);
    text += '-';
    put_hex(text, id.unix_ms & 0xFFFF, 4);
    text += '-';
    put_hex(text, kVersion | id.rand_a, 4);
    text += '-';
    put_hex(text, kVariant | (id.rand_b >> 48), 4);
    text += '-';
    put_hex(text, id.rand_b & 0xFFFF'FFFF'FFFF, 12);
    return text;
}

bool is_uuid(std::string_view text) {
    if (text.size() != 36) return false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool hyphen = i == 8 || i == 13 || i == 18 || i == 23;
        if (hyphen ? text[i] != '-' : !is_lower_hex(text[i])) return false;
    }
    return true;
}

std::string random_hex(std::size_t bytes) {
    std::string raw(bytes, '\0');
    fill_random(reinterpret_cast<unsigned char*>(raw.data()), raw.size());
    std::string text;
    text.reserve(bytes * 2);
    for (const char c : raw)
        put_hex(text, static_cast<unsigned char>(c), 2);
    return text;
}

}  // namespace sekali::base
