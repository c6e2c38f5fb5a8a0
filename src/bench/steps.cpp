#include "bench/steps.hpp"

#include "sekali/result.hpp"

namespace sekali::bench {

void Steps::next(std::string_view what) {
    check();
    if (options_.progress) options_.progress(what);
}

void Steps::check() {
    if (signals_.next().number == 0) return;
    throw Failure({.code = ErrorCode::kCancelled, .message = "the bench was stopped"});
}

}  // namespace sekali::bench
