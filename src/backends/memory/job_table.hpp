#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/model.hpp"

namespace sekali::memory {

/// All jobs, live and final, with the orders in which the protocol asks for them. `set` is the only
/// write; every index follows from the row, so undoing a write is setting the row that was there.
class JobTable {
 public:
    using Row = engine::JobRow;
    /// Claim order within a group: larger priority first, then arrival.
    using Place = std::pair<std::int32_t, std::int64_t>;
    using Line = std::set<Place>;
    using Times = std::set<std::pair<engine::StoreTime, std::int64_t>>;
    using Group = std::tuple<std::string, std::string, std::string>;  ///< Namespace, queue, kind.
    using LineName = std::tuple<std::string, engine::WaitFor, std::string, std::string>;
    using QueueName = std::pair<std::string, std::string>;

    struct KeyJobs {
        std::set<std::int64_t> all;
        std::set<std::int64_t> live_or_dead;
    };
    struct QueueStats {
        std::array<std::uint64_t, 5> by_state{};  ///< Of the live states, in their order.
        std::multiset<engine::StoreTime> ready_times;
    };

    /// Puts the row in place of the one with its id, or removes it; returns what was there.
    /// Throws `Failure` when two live rows would hold one unique slot.
    std::optional<Row> set(const std::string& id, std::optional<Row> row);

    [[nodiscard]] const Row* find(std::string_view id) const;
    [[nodiscard]] const Row& at(std::int64_t seq) const { return *by_seq_.at(seq); }
    /// The jobs of a namespace in the order of their arrival.
    [[nodiscard]] const std::set<std::int64_t>& of_namespace(std::string_view ns) const;

    /// The first of these queues and kinds in claim order.
    [[nodiscard]] std::vector<const Row*> ready(std::string_view ns,
                                                const std::vector<std::string>& queues,
                                                const std::vector<std::string>& kinds,
                                                std::size_t limit) const;
    [[nodiscard]] std::optional<engine::StoreTime> next_scheduled(
        std::string_view ns, const std::vector<std::string>& queues,
        const std::vector<std::string>& kinds) const;
    /// Whether one of them is scheduled that was claimed before.
    [[nodiscard]] bool has_retry(std::string_view ns, const std::vector<std::string>& queues,
                                 const std::vector<std::string>& kinds) const;
    [[nodiscard]] std::vector<const Row*> due(std::string_view ns, engine::StoreTime now,
                                              std::size_t limit) const;
    [[nodiscard]] const std::set<std::int64_t>& running(std::string_view ns) const;
    /// How many running jobs a worker has, and how many of them have begun.
    struct Load {
        std::uint64_t running = 0;
        std::uint64_t begun = 0;
    };
    [[nodiscard]] Load load(std::string_view owner) const;
    [[nodiscard]] const Row* slot_holder(std::string_view ns, std::string_view kind,
                                         std::string_view unique_key) const;
    [[nodiscard]] const std::map<LineName, Line, std::less<>>& lines() const { return lines_; }
    [[nodiscard]] const Row* first_in_line(std::string_view ns, engine::WaitFor wait,
                                           std::string_view kind, std::string_view name) const;
    [[nodiscard]] const std::map<engine::RecordKey, KeyJobs>& by_key() const { return by_key_; }
    [[nodiscard]] const std::map<QueueName, QueueStats>& queues() const { return queues_; }
    /// Final jobs in the order in which they ended.
    [[nodiscard]] const std::set<std::tuple<std::string, engine::StoreTime, std::int64_t>>& ended()
        const {
        return ended_;
    }

 private:
    void add(const Row& row);
    void remove(const Row& row);
    void add_live(const Row& row);
    void remove_live(const Row& row);
    void require_free_slot(const Row& row) const;

    std::map<std::string, Row, std::less<>> rows_;
    std::map<std::int64_t, const Row*> by_seq_;
    std::map<std::string, std::set<std::int64_t>, std::less<>> by_namespace_;
    std::map<Group, Line, std::less<>> ready_;
    std::map<Group, Times, std::less<>> scheduled_;
    std::map<std::string, std::set<std::int64_t>, std::less<>> running_;
    std::map<std::string, Load, std::less<>> loads_;
    std::map<std::tuple<std::string, std::string, std::string>, std::int64_t, std::less<>> slots_;
    std::map<LineName, Line, std::less<>> lines_;
    std::map<engine::RecordKey, KeyJobs> by_key_;
    std::map<QueueName, QueueStats> queues_;
    std::set<std::tuple<std::string, engine::StoreTime, std::int64_t>> ended_;
};

}  // namespace sekali::memory
