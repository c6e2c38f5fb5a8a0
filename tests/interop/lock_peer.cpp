// Does with sekali's LockClient what the lines of its standard input say; answers each with one
// line. usage: lock_peer URL PROFILE
#include <chrono>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "sekali/lock.hpp"

namespace {

using sekali::ErrorCode;
using sekali::LockClient;
using sekali::LockHandle;
using std::chrono::milliseconds;

using Time = std::chrono::steady_clock::time_point;

Time now() {
    return std::chrono::steady_clock::now();
}

std::string told(const std::string& word, const std::string& more = {}, Time at = now()) {
    const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch());
    return word + "\t" + std::to_string(ns.count()) + "\t" + more;
}

std::vector<std::string> split(const std::string& line) {
    std::vector<std::string> words;
    std::istringstream stream(line);
    for (std::string word; std::getline(stream, word, '\t');)
        words.push_back(word);
    return words;
}

class Peer {
 public:
    Peer(const std::string& url, const sekali::LockClientOptions& options)
        : locks_(LockClient::open(url, options).value()) {}

    std::string answer(const std::vector<std::string>& words) {
        if (words.at(0) == "lock") return take(words.at(1), words.at(2), words.at(3), 0);
        if (words.at(0) == "permit") {
            return take(words.at(1), words.at(3), "0",
                        static_cast<std::uint32_t>(std::stoul(words.at(2))));
        }
        if (words.at(0) == "unlock" || words.at(0) == "unpermit") {
            const Time before = now();
            const bool released = held_.extract(words.at(1)).mapped().release().ok();
            return told(released ? "released" : "lost", {}, before);
        }
        return told("unknown", words.at(0));
    }

 private:
    /// A wait of -1 has no end; a life of 0 is renewed.
    std::string take(const std::string& name, const std::string& wait, const std::string& life,
                     std::uint32_t permits) {
        sekali::LockOptions options;
        options.wait = milliseconds{std::stol(wait)};
        if (*options.wait < milliseconds{0}) options.wait = std::nullopt;
        if (life != "0") {
            options.ttl = milliseconds{std::stol(life)};
            options.renew = false;
        }
        options.permits = permits;
        auto lock = locks_.acquire(name, options);
        if (!lock.ok()) {
            return told(lock.error().code == ErrorCode::kConflict ? "busy" : "failed",
                        lock.error().message);
        }
        std::string answer = told("acquired", lock->token() + "\t" + std::to_string(lock->fence()));
        held_.insert_or_assign(name, *std::move(lock));
        return answer;
    }

    LockClient locks_;
    std::map<std::string, LockHandle> held_;
};

}  // namespace

int main(int /*argc*/, char** argv) {
    sekali::LockClientOptions options;
    options.prefix = "";
    if (std::string(argv[2]) == "string") options.profile = sekali::LockProfile::kString;
    Peer peer(argv[1], options);
    for (std::string line; std::getline(std::cin, line);)
        std::cout << peer.answer(split(line)) << std::endl;
}
