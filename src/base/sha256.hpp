#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sekali::base {

/// SHA-256 (FIPS 180-4). Own code, because loading a crypto library costs every start of the
/// command more than hashing a payload does.
class Sha256 {
 public:
    void update(std::string_view bytes);
    /// The digest as 64 lower-case hex digits; the object is spent.
    [[nodiscard]] std::string finish_hex();

 private:
    static constexpr std::size_t kBlockBytes = 64;
    void compress(const unsigned char* block);

    std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                           0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    std::array<unsigned char, kBlockBytes> block_{};
    std::size_t block_used_ = 0;
    std::uint64_t total_bytes_ = 0;
};

[[nodiscard]] std::string sha256_hex(std::string_view bytes);

}  // namespace sekali::base
