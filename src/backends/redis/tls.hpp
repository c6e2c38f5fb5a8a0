#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "backends/redis/address.hpp"
#include "sekali/result.hpp"

struct ssl_ctx_st;
struct ssl_st;

namespace sekali::redis {

/// The certificates that connections trust and show: the system's authorities, unless the address
/// names a file. Errors: `kUsage` for files that cannot be read.
[[nodiscard]] Result<std::shared_ptr<ssl_ctx_st>> make_tls_context(const Address& address);

/// The client's end of one TLS connection, without I/O: what is received and what is to be sent
/// goes through memory.
class TlsStream {
 public:
    /// The server must show a certificate for `host`, a name or a numeric address.
    TlsStream(ssl_ctx_st& context, const std::string& host);
    ~TlsStream();
    TlsStream(const TlsStream&) = delete;
    TlsStream& operator=(const TlsStream&) = delete;

    /// Takes bytes of the network and appends what they hold to `plain`.
    [[nodiscard]] Result<void> received(std::string_view bytes, std::string& plain);
    /// Takes bytes of the caller, which go out once the handshake is over.
    [[nodiscard]] Result<void> send(std::string_view plain);
    /// Appends what is to go over the network.
    void take_output(std::string& bytes);

 private:
    [[nodiscard]] Result<void> flush();
    [[nodiscard]] Result<void> check(int outcome) const;

    ssl_st* stream_;
    std::string waiting_;
};

}  // namespace sekali::redis
