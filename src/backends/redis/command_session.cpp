#include "backends/redis/command_session.hpp"

#include <fmt/format.h>

#include "backends/redis/errors.hpp"
#include "base/assert.hpp"

namespace sekali::redis {

void append_request(std::string& out, const std::vector<std::string_view>& words) {
    fmt::format_to(std::back_inserter(out), "*{}\r\n", words.size());
    for (const std::string_view word : words) {
        fmt::format_to(std::back_inserter(out), "${}\r\n", word.size());
        out.append(word).append("\r\n");
    }
}

CommandSession::CommandSession(const Login& login, TimePoint deadline)
    : handshake_(login), handshake_deadline_(deadline), output_(handshake_.requests()) {}

void CommandSession::send(Call call) {
    SEKALI_ASSERT(ready(), "calls wait until the handshake is over");
    if (call.asking) {
        append_request(output_, {"ASKING"});
        due_.emplace(call.deadline, first_number_ + pending_.size());
        pending_.push_back({.call = {}, .asking_reply = true});
    }
    // A connection's first use sends the text, which the server remembers: no load beforehand,
    // and calls behind it in the pipeline find it there.
    write(call, call.script != nullptr && sent_whole_.insert(call.script).second);
    due_.emplace(call.deadline, first_number_ + pending_.size());
    pending_.push_back({.call = std::move(call)});
}

void CommandSession::write(const Call& call, bool by_text) {
    std::vector<std::string_view> words;
    words.reserve(call.words.size() + 2);
    if (call.script != nullptr) {
        words.emplace_back(by_text ? "EVAL" : "EVALSHA");
        words.emplace_back(by_text ? call.script->text() : call.script->sha());
    }
    words.insert(words.end(), call.words.begin(), call.words.end());
    append_request(output_, words);
}

void CommandSession::received(std::string_view bytes) {
    if (failure_) return;
    reader_.feed(bytes);
    while (!failure_) {
        auto reply = reader_.next();
        if (!reply.ok()) return fail(reply.error());
        if (!reply->has_value()) return;
        take(std::move(**reply));
    }
}

void CommandSession::take(Reply reply) {
    if (!handshake_.finished()) {
        if (auto fine = handshake_.take(reply); !fine) fail(fine.error());
        return;
    }
    if (pending_.empty()) return fail(unreachable("it answered what nobody had asked"));
    Pending pending = std::move(pending_.front());
    pending_.pop_front();
    ++first_number_;
    answer(std::move(pending), std::move(reply));
}

void CommandSession::answer(Pending pending, Reply reply) {
    if (pending.asking_reply) return;
    if (!reply.is_error()) {
        answers_.emplace_back(std::move(pending.call.done), std::move(reply));
        return;
    }
    const std::string_view code = code_of(reply.text);
    if (code == "NOSCRIPT" && pending.call.script != nullptr && !pending.reloaded) {
        pending.reloaded = true;
        write(pending.call, true);
        due_.emplace(pending.call.deadline, first_number_ + pending_.size());
        pending_.push_back(std::move(pending));
        return;
    }
    Error error = from_reply(reply.text);
    // What a cluster's redirections name is needed by who sends the call on.
    if (code == "MOVED" || code == "ASK") error.hint = reply.text;
    answers_.emplace_back(std::move(pending.call.done), error);
    if (wants_reconnect(code)) fail(error);
}

void CommandSession::advance(TimePoint now) {
    if (failure_) return;
    const auto deadline = next_deadline();
    if (!deadline || *deadline > now) return;
    fail(unreachable("it did not answer in time"));
}

std::optional<TimePoint> CommandSession::next_deadline() {
    if (failure_) return std::nullopt;
    if (!handshake_.finished()) return handshake_deadline_;
    while (!due_.empty() && due_.top().second < first_number_)
        due_.pop();
    if (due_.empty()) return std::nullopt;
    return due_.top().first;
}

void CommandSession::fail(const Error& why) {
    if (failure_) return;
    failure_ = why;
    Error lost = unreachable("the connection was lost before it answered", Applied::kMaybe);
    lost.message += why.message.empty() ? "" : "; " + why.message;
    while (!pending_.empty()) {
        if (!pending_.front().asking_reply) {
            answers_.emplace_back(std::move(pending_.front().call.done), lost);
        }
        pending_.pop_front();
    }
    output_.clear();
}

}  // namespace sekali::redis
