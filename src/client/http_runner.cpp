#include "client/http_runner.hpp"

#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/errors.hpp"
#include "base/faults.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "client/http_status.hpp"
#include "client/outcomes.hpp"
#include "client/step_key.hpp"

namespace sekali::client {
namespace {

using engine::Millis;
using engine::Outcome;

constexpr Millis kConnectTimeout{std::chrono::seconds{10}};
/// The run's own timeout comes first; this only bounds a stop that found no connection to close.
constexpr Millis kReadMargin{1000};
/// A stopped request ends at once, unless it found no connection to close.
constexpr Millis kClosePatience{1000};

httplib::Headers headers_of(const engine::action::StartHandler& start, Millis left) {
    const engine::Envelope& job = start.delivery.row.job;
    std::string outside_key = step_key_prefix(start.ref.record);
    outside_key.pop_back();
    return {{"Idempotency-Key", std::move(outside_key)},
            {"Sekali-Job-Id", job.id},
            {"Sekali-Namespace", job.ns},
            {"Sekali-Kind", job.kind},
            {"Sekali-Queue", job.queue},
            {"Sekali-Key", header_safe(job.key)},
            {"Sekali-Lock-Key", header_safe(job.lock_key)},
            {"Sekali-Attempt", std::to_string(start.started.attempt)},
            {"Sekali-Epoch", std::to_string(start.ref.epoch)},
            {"Sekali-Deadline-Ms", std::to_string(base::wall_ms() + left.count())}};
}

}  // namespace

/// One request, and the way to end it from another thread.
class HttpRunner::Request {
 public:
    explicit Request(const Target& target) : path_(target.path), client_(target.origin) {
        client_.set_follow_location(false);
        client_.set_keep_alive(false);
    }

    Outcome perform(const engine::action::StartHandler& start);
    void stop(engine::StopReason reason) {
        {
            const std::lock_guard guard(mutex_);
            if (!stopped_) stopped_ = reason;
        }
        client_.stop();
    }

 private:
    Outcome failed(httplib::Error error);

    std::string path_;
    httplib::Client client_;
    std::mutex mutex_;
    std::optional<engine::StopReason> stopped_;
};

Outcome HttpRunner::Request::perform(const engine::action::StartHandler& start) {
    const Millis left = std::max(start.deadline - local_now(), Millis{1});
    client_.set_connection_timeout(std::min(left, kConnectTimeout));
    client_.set_read_timeout(left + kReadMargin);
    client_.set_write_timeout(left + kReadMargin);
    const auto answer = client_.Post(path_, headers_of(start, left), start.delivery.row.job.payload,
                                     "application/json");
    if (!answer) return failed(answer.error());
    return outcome_of({.status = answer->status,
                       .body = answer->body,
                       .retry_after = answer->get_header_value("Retry-After")},
                      base::wall_ms());
}

Outcome HttpRunner::Request::failed(httplib::Error error) {
    const bool never_sent =
        error == httplib::Error::Connection || error == httplib::Error::ConnectionTimeout ||
        error == httplib::Error::SSLConnection || error == httplib::Error::SSLServerVerification;
    Outcome outcome =
        failed_run(fmt::format("HTTP request failed: {}", httplib::to_string(error)), never_sent);
    const std::lock_guard guard(mutex_);
    if (!stopped_ || never_sent) return outcome;
    outcome.kind = *stopped_ == engine::StopReason::kTimeout ? Outcome::Kind::kTimeout
                                                             : Outcome::Kind::kInterrupted;
    outcome.reason = engine::to_string(*stopped_);
    return outcome;
}

struct HttpRunner::Running {
    std::mutex mutex;
    std::map<engine::RunId, std::shared_ptr<Request>> requests;
};

HttpRunner::HttpRunner(const std::map<std::string, std::string, std::less<>>& urls,
                       std::shared_ptr<Inbox> inbox, std::size_t requests)
    : inbox_(std::move(inbox)), running_(std::make_shared<Running>()), pool_(requests) {
    for (const auto& [kind, url] : urls)
        targets_.emplace(kind, parse(kind, url));
}

HttpRunner::~HttpRunner() {
    {
        const std::lock_guard guard(running_->mutex);
        for (const auto& [run, request] : running_->requests)
            request->stop(engine::StopReason::kShutdown);
    }
    pool_.close(kClosePatience);
}

HttpRunner::Target HttpRunner::parse(const std::string& kind, const std::string& url) {
    const std::size_t scheme = url.find("://");
    const bool known = url.starts_with("http://") || url.starts_with("https://");
    const std::size_t host = known ? scheme + 3 : 0;
    const std::size_t path = url.find('/', host);
    const bool good = known && host < url.size() && path != host &&
                      std::none_of(url.begin(), url.end(), [](char c) {
                          return static_cast<unsigned char>(c) <= ' ' || c == '#';
                      });
    if (!good) {
        throw Failure(base::usage_error(
            fmt::format("--http {}: {} is no http or https URL", kind, base::quoted(url)),
            "write http://127.0.0.1:8080/path"));
    }
    return {.origin = url.substr(0, path),
            .path = path == std::string::npos ? "/" : url.substr(path)};
}

void HttpRunner::start(engine::action::StartHandler start) {
    const auto target = targets_.find(start.delivery.row.job.kind);
    SEKALI_ASSERT(target != targets_.end(), "an HTTP handler was started whose kind has no URL");
    auto request = std::make_shared<Request>(target->second);
    {
        const std::lock_guard guard(running_->mutex);
        running_->requests.emplace(start.run, request);
    }
    pool_.run([inbox = inbox_, running = running_, start = std::move(start),
               request = std::move(request)] {
        Outcome outcome = SEKALI_FAULT("handler.before") ? failed_run(kFailedByTest, false)
                                                         : request->perform(start);
        if (SEKALI_FAULT("handler.after")) outcome = failed_run(kFailedByTest, false);
        {
            const std::lock_guard guard(running->mutex);
            running->requests.erase(start.run);
        }
        inbox->push(engine::event::HandlerEnded{start.run, std::move(outcome)});
    });
}

void HttpRunner::probe(engine::action::AskProbe request) {
    inbox_->push(engine::event::ProbeEnded{request.run, engine::Answer::Kind::kCannotTell, {}});
}

void HttpRunner::ask_stop(engine::RunId run, engine::StopReason reason) {
    if (const auto request = find(run)) request->stop(reason);
}

void HttpRunner::kill(engine::RunId run) {
    if (const auto request = find(run)) request->stop(engine::StopReason::kShutdown);
}

std::shared_ptr<HttpRunner::Request> HttpRunner::find(engine::RunId run) {
    const std::lock_guard guard(running_->mutex);
    const auto found = running_->requests.find(run);
    return found == running_->requests.end() ? nullptr : found->second;
}

}  // namespace sekali::client
