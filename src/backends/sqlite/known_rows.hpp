#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "engine/model.hpp"

namespace sekali::sqlite {

/// Rows as the connection last read or wrote them, so that the next step of the same run need not
/// read them again. Whoever owns it clears it whenever they may have changed otherwise.
class KnownRows {
 public:
    /// Null: not known. The row is valid until the next change.
    [[nodiscard]] const engine::JobRow* job(std::string_view id) const;
    void put(const engine::JobRow& row);
    /// Takes over what changes of a row that is known; else does nothing.
    void change(const engine::JobRow& row);
    void forget_job(std::string_view id);
    void forget_jobs() { jobs_.clear(); }

    [[nodiscard]] const engine::RecordRow* record(const engine::RecordKey& key) const;
    void put(const engine::RecordRow& row);
    void forget_record(const engine::RecordKey& key) { records_.erase(key); }

    void clear();

 private:
    struct Hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const {
            return std::hash<std::string_view>{}(text);
        }
        std::size_t operator()(const engine::RecordKey& key) const {
            return (*this)(key.key) * 31 + (*this)(key.kind);
        }
    };

    std::unordered_map<std::string, engine::JobRow, Hash, std::equal_to<>> jobs_;
    std::unordered_map<engine::RecordKey, engine::RecordRow, Hash> records_;
};

}  // namespace sekali::sqlite
