#include "backends/redis/script.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>

#include "base/assert.hpp"

namespace sekali::redis {

Script::Script(std::string_view text) : text_(text) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned size = 0;
    const int done =
        EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr);
    SEKALI_ASSERT(done == 1, "SHA-1 is built into every OpenSSL");
    for (unsigned i = 0; i < size; ++i)
        sha_ += fmt::format("{:02x}", digest[i]);
}

}  // namespace sekali::redis
