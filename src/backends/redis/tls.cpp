#include "backends/redis/tls.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>

#include "backends/redis/errors.hpp"
#include "base/assert.hpp"
#include "base/errors.hpp"
#include "base/text.hpp"

namespace sekali::redis {
namespace {

std::string last_error() {
    std::array<char, 256> text{};
    const unsigned long code = ERR_get_error();
    if (code == 0) return "it was closed";
    ERR_error_string_n(code, text.data(), text.size());
    ERR_clear_error();
    return text.data();
}

Error unusable_file(std::string_view parameter, const std::string& file) {
    return base::usage_error(fmt::format("the file that {} names cannot be used: {} ({})",
                                         parameter, base::quoted(file), last_error()));
}

bool is_numeric(const std::string& host) {
    std::array<unsigned char, sizeof(in6_addr)> ignored{};
    return ::inet_pton(AF_INET, host.c_str(), ignored.data()) == 1 ||
           ::inet_pton(AF_INET6, host.c_str(), ignored.data()) == 1;
}

}  // namespace

Result<std::shared_ptr<ssl_ctx_st>> make_tls_context(const Address& address) {
    std::shared_ptr<ssl_ctx_st> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
    SEKALI_ASSERT(context != nullptr, "OpenSSL cannot make a context");
    SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    if (address.ca_file.empty()) {
        SSL_CTX_set_default_verify_paths(context.get());
    } else if (SSL_CTX_load_verify_file(context.get(), address.ca_file.c_str()) != 1) {
        return unusable_file("ca", address.ca_file);
    }
    if (address.cert_file.empty()) return context;
    if (SSL_CTX_use_certificate_chain_file(context.get(), address.cert_file.c_str()) != 1) {
        return unusable_file("cert", address.cert_file);
    }
    if (SSL_CTX_use_PrivateKey_file(context.get(), address.key_file.c_str(), SSL_FILETYPE_PEM) !=
        1) {
        return unusable_file("key", address.key_file);
    }
    return context;
}

TlsStream::TlsStream(ssl_ctx_st& context, const std::string& host) : stream_(SSL_new(&context)) {
    SEKALI_ASSERT(stream_ != nullptr, "OpenSSL cannot make a connection");
    // The stream owns both ends.
    SSL_set_bio(stream_, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(stream_);
    if (is_numeric(host)) {
        X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(stream_), host.c_str());
    } else {
        // The macro of that name hides a cast that our warnings refuse.
        SSL_ctrl(stream_, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                 const_cast<char*>(host.c_str()));
        SSL_set1_host(stream_, host.c_str());
    }
    SSL_do_handshake(stream_);
}

TlsStream::~TlsStream() {
    SSL_free(stream_);
}

Result<void> TlsStream::check(int outcome) const {
    if (outcome > 0) return {};
    const int why = SSL_get_error(stream_, outcome);
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) return {};
    const long verified = SSL_get_verify_result(stream_);
    if (verified == X509_V_OK) return unreachable("TLS: " + last_error());
    ERR_clear_error();
    Error error = unreachable(fmt::format("TLS: its certificate is refused: {}",
                                          X509_verify_cert_error_string(verified)));
    error.hint = "name the authority's file in the URL: ?ca=FILE";
    return error;
}

Result<void> TlsStream::received(std::string_view bytes, std::string& plain) {
    BIO_write(SSL_get_rbio(stream_), bytes.data(), static_cast<int>(bytes.size()));
    if (SSL_is_init_finished(stream_) == 0) {
        if (auto fine = check(SSL_do_handshake(stream_)); !fine) return fine;
        if (SSL_is_init_finished(stream_) == 0) return {};
        if (auto fine = flush(); !fine) return fine;
    }
    std::array<char, 16 * 1024> buffer{};
    while (true) {
        const int count = SSL_read(stream_, buffer.data(), static_cast<int>(buffer.size()));
        if (count <= 0) return check(count);
        plain.append(buffer.data(), static_cast<std::size_t>(count));
    }
}

Result<void> TlsStream::send(std::string_view plain) {
    waiting_ += plain;
    return flush();
}

Result<void> TlsStream::flush() {
    if (SSL_is_init_finished(stream_) == 0 || waiting_.empty()) return {};
    const int count = SSL_write(stream_, waiting_.data(), static_cast<int>(waiting_.size()));
    // The memory behind it takes everything at once.
    if (count > 0) waiting_.clear();
    return check(count);
}

void TlsStream::take_output(std::string& bytes) {
    BIO* out = SSL_get_wbio(stream_);
    const std::size_t size = BIO_ctrl_pending(out);
    const std::size_t before = bytes.size();
    bytes.resize(before + size);
    BIO_read(out, bytes.data() + before, static_cast<int>(size));
}

}  // namespace sekali::redis
