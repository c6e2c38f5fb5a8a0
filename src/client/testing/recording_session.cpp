#include "client/testing/recording_session.hpp"

#include <string>
#include <utility>

namespace sekali::testing {
namespace {

class KeptCursor final : public internal::SqlCursor {
 public:
    explicit KeptCursor(Rows rows) : rows_(std::move(rows)) {}
    bool next() override { return ++at_ <= rows_.size(); }
    [[nodiscard]] std::span<const SqlValue> row() const override { return rows_.at(at_ - 1); }

 private:
    Rows rows_;
    std::size_t at_ = 0;
};

}  // namespace

std::int64_t RecordingSession::execute(std::string_view sql, std::span<const SqlValue> arguments) {
    statements_.push_back({std::string(sql), {arguments.begin(), arguments.end()}});
    return 1;
}

std::unique_ptr<internal::SqlCursor> RecordingSession::query(std::string_view sql,
                                                             std::span<const SqlValue> arguments) {
    execute(sql, arguments);
    return std::make_unique<KeptCursor>(answer_ ? answer_(statements_.back()) : Rows{});
}

}  // namespace sekali::testing
