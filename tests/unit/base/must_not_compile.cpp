#include <string>

#include "base/faults.hpp"
#include "sekali/key.hpp"

struct Order {
    int id = 0;
};

std::string build() {
#if defined(KEY_OF_DOUBLE)
    return sekali::key("price", 0.1 + 0.2);
#elif defined(KEY_OF_BOOL)
    return sekali::key("paid", true);
#elif defined(KEY_OF_CHARACTER)
    return sekali::key("grade", 'a');
#elif defined(KEY_OF_STRUCT)
    return sekali::key("order", Order{});
#elif defined(KEY_OF_NULL)
    return sekali::key("order", nullptr);
#elif defined(UNKNOWN_FAULT_POINT)
    return SEKALI_FAULT("claim.befor") ? "yes" : "no";
#else
    return SEKALI_FAULT("claim.before") ? sekali::key("order", 1) : sekali::key("order", "a");
#endif
}
