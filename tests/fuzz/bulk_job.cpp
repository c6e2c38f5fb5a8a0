// A line of a bulk file, from its bytes to the request that the store is sent.

#include <string>
#include <string_view>

#include "base/assert.hpp"
#include "base/ids.hpp"
#include "base/json_check.hpp"
#include "base/limits.hpp"
#include "cli/bulk_line.hpp"
#include "cli/job_draft.hpp"
#include "fuzz/fuzz_input.hpp"
#include "sekali/result.hpp"

namespace {

using namespace sekali;

void check_request(std::string_view line, const engine::Envelope& job) {
    SEKALI_ASSERT(line.find(job.payload) != std::string_view::npos || job.payload == "null",
                  "the payload is a slice of the line");
    SEKALI_ASSERT(base::check_json(job.payload, line.size() + 4, base::kMaxJsonDepth).ok(),
                  "the payload is JSON");
    SEKALI_ASSERT(base::check_name("kind", job.kind).ok(), "the kind is a name");
    SEKALI_ASSERT(base::check_name("queue", job.queue).ok(), "the queue is a name");
    SEKALI_ASSERT(base::check_key("key", job.key).ok(), "the key is a key");
    SEKALI_ASSERT(base::is_uuid(job.id), "the id is a UUID");
    SEKALI_ASSERT(job.priority >= 0 && job.priority <= 9, "the priority is in range");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const cli::Arguments kNoFlags;
    const std::string_view line = sekali::testing::fuzz_text(data, size);
    cli::JobMaker maker(kNoFlags, "default", false);
    try {
        check_request(line, maker.make(cli::parse_bulk_line(line)).job);
    } catch (const Failure& failure) {
        SEKALI_ASSERT(failure.error().code == ErrorCode::kUsage, "a refusal is about usage");
        SEKALI_ASSERT(failure.error().message.find('\n') == std::string::npos, "it is one line");
    }
    return 0;
}
