#include "base/gathered_wakes.hpp"

#include <algorithm>

namespace sekali::base {
namespace {

thread_local GatheredWakes* gathering = nullptr;

}  // namespace

GatheredWakes::GatheredWakes() : outer_(gathering) {
    gathering = this;
}

GatheredWakes::~GatheredWakes() {
    gathering = outer_;
    for (const auto& waiting : waiting_)
        waiting->notify_one();
}

void GatheredWakes::wake_one(const std::shared_ptr<std::condition_variable>& waiting) {
    if (gathering == nullptr) {
        waiting->notify_one();
        return;
    }
    auto& gathered = gathering->waiting_;
    const bool known = std::find(gathered.begin(), gathered.end(), waiting) != gathered.end();
    if (!known) gathered.push_back(waiting);
}

}  // namespace sekali::base
