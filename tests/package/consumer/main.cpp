#include <sekali/key.hpp>

int main() {
    return sekali::key("order", 1001) == "order:1001" ? 0 : 1;
}
