#pragma once

#include <condition_variable>
#include <memory>
#include <vector>

namespace sekali::base {

/// While one lives on a thread, what is to be woken from that thread is woken at its end, once: for
/// who gives many answers that the same thread waits for. Belongs to one thread.
class GatheredWakes {
 public:
    GatheredWakes();
    ~GatheredWakes();
    GatheredWakes(const GatheredWakes&) = delete;
    GatheredWakes& operator=(const GatheredWakes&) = delete;

    /// Wakes one thread: at the end of what gathers on this thread, or else at once.
    static void wake_one(const std::shared_ptr<std::condition_variable>& waiting);

 private:
    GatheredWakes* const outer_;
    std::vector<std::shared_ptr<std::condition_variable>> waiting_;
};

}  // namespace sekali::base
