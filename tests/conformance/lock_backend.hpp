#pragma once

#include "engine/ports.hpp"

namespace sekali::conformance {

/// A lock service under test, whose clock belongs to the test.
class LockBackend {
 public:
    virtual ~LockBackend() = default;
    [[nodiscard]] virtual engine::LockPort& port() = 0;
    virtual void pump() = 0;
    virtual void advance(engine::Millis by) = 0;
};

}  // namespace sekali::conformance
