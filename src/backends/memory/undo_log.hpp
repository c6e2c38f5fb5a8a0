#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace sekali::memory {

/// The inverses of the writes of one transaction, so that it can be undone in whole or from a mark.
class UndoLog {
 public:
    using Mark = std::size_t;

    void push(std::function<void()> inverse) { inverses_.push_back(std::move(inverse)); }
    [[nodiscard]] Mark mark() const { return inverses_.size(); }
    void roll_back_to(Mark mark) {
        while (inverses_.size() > mark) {
            inverses_.back()();
            inverses_.pop_back();
        }
    }
    void forget() { inverses_.clear(); }

 private:
    std::vector<std::function<void()>> inverses_;
};

}  // namespace sekali::memory
