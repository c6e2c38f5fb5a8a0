#include "backends/sqlite/reader_pool.hpp"

#include <exception>

#include "base/clock.hpp"

namespace sekali::sqlite {
namespace {

constexpr std::size_t kReaders = 4;

}  // namespace

std::unique_ptr<ReaderPool::Reader> ReaderPool::take() {
    {
        std::unique_lock guard(mutex_);
        const bool free = returned_.wait_until(guard, base::steady_now() + busy_deadline_,
                                               [&] { return in_use_ < kReaders; });
        if (!free) {
            throw Failure({.code = ErrorCode::kUnreachable,
                           .message = "sqlite: too many reads at once",
                           .retryable = true});
        }
        ++in_use_;
        if (!idle_.empty()) {
            auto reader = std::move(idle_.back());
            idle_.pop_back();
            return reader;
        }
    }
    try {
        return std::make_unique<Reader>(path_, busy_deadline_, liveness_);
    } catch (...) {
        give_back(nullptr);
        throw;
    }
}

void ReaderPool::give_back(std::unique_ptr<Reader> reader) {
    {
        const std::lock_guard guard(mutex_);
        --in_use_;
        if (reader) idle_.push_back(std::move(reader));
    }
    returned_.notify_one();
}

Result<void> ReaderPool::read(const std::function<void(engine::Tables&)>& work) {
    std::unique_ptr<Reader> reader;
    Result<void> result;
    try {
        reader = take();
        Query(reader->tables.statements(), Sql::kBeginRead).run();
        reader->tables.start(timer_.now());
        work(reader->tables);
    } catch (const Failure& failure) {
        result = failure.error();
    } catch (const std::exception& thrown) {
        result = Error{.code = ErrorCode::kInternal, .message = thrown.what()};
    }
    if (reader) {
        reader->connection.roll_back();
        give_back(std::move(reader));
    }
    return result;
}

}  // namespace sekali::sqlite
