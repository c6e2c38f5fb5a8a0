#pragma once

#include <cstdint>
#include <iostream>
#include <string_view>

#include "engine/model.hpp"

namespace sekali::sim {

/// What happened, as a hash (FNV-1a) that must be the same for the same seed, and on request as
/// text.
class Trace {
 public:
    explicit Trace(bool prints) : prints_(prints) {}

    void line(engine::Millis at, std::string_view text) {
        mix(std::to_string(at.count()));
        mix(text);
        if (prints_) std::cout << at.count() << ' ' << text << '\n';
    }
    [[nodiscard]] std::uint64_t hash() const { return hash_; }

 private:
    void mix(std::string_view text) {
        for (const char c : text) {
            hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
        }
    }
    bool prints_;
    std::uint64_t hash_ = 0xcbf29ce484222325ULL;
};

}  // namespace sekali::sim
