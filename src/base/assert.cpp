#include "base/assert.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace sekali::base {

void assertion_failed(const char* condition, const char* message, const char* file,
                      int line) noexcept {
    const char* slash = std::strrchr(file, '/');
    std::fprintf(stderr, "sekali: %s:%d: %s (%s does not hold); this is a bug in sekali\n",
                 slash == nullptr ? file : slash + 1, line, message, condition);
    std::abort();
}

}  // namespace sekali::base
