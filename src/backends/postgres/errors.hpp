#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <libpq-fe.h>

#include "sekali/result.hpp"

namespace sekali::postgres {

/// What a failed statement means for the transaction that it was part of.
enum class Trouble : std::uint8_t {
    kConflict,  ///< Another transaction was in the way: the same one may succeed when run again.
    kLost,      ///< The connection is gone; whether the server went on is not known.
    kNotNow,    ///< The server answers but cannot do it for the moment.
    kOther,
};

/// Thrown by whatever talks to the server; carries what to do about it beside the `Error`.
class SqlFailure : public Failure {
 public:
    SqlFailure(Trouble trouble, Error error) : Failure(std::move(error)), trouble_(trouble) {}
    [[nodiscard]] Trouble trouble() const { return trouble_; }

 private:
    Trouble trouble_;
};

[[nodiscard]] Trouble trouble_of(std::string_view sqlstate);
/// What the server answered instead of a result. `doing` completes "could not …".
[[nodiscard]] SqlFailure failure_of(const PGresult* result, std::string_view doing);
/// The connection failed; `why` is libpq's text.
[[nodiscard]] SqlFailure lost_connection(std::string_view why);

}  // namespace sekali::postgres
