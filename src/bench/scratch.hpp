#pragma once

#include <filesystem>
#include <string>

namespace sekali::bench {

/// A folder that is removed with everything in it at the end.
class Scratch {
 public:
    /// Makes it inside `parent`, which must exist. Throws `Failure`.
    explicit Scratch(const std::filesystem::path& parent);
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch();

    [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
    /// The path of a database that does not exist yet.
    [[nodiscard]] std::string new_database();
    /// Removes a database and the files beside it.
    void drop(const std::string& database) const;

 private:
    std::filesystem::path folder_;
    int databases_ = 0;
};

}  // namespace sekali::bench
