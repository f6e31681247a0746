// The control groups of this process, of both versions. They limit services and containers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

class ControlGroups {
 public:
  // Reads `root`/proc/self/mountinfo. Without that file, groups are expected in the usual folders
  // below `root`/sys/fs/cgroup.
  explicit ControlGroups(std::filesystem::path root);

  // The folders of the groups that limit this process: its own, and those around it, which come
  // first. Reads `root`/proc/self/cgroup, because a process may be moved to another group.
  std::vector<std::filesystem::path> folders() const;

  // The smallest limit of memory of these groups; nullopt if none is limited.
  std::optional<int64_t> memory_limit_bytes() const;
  // The memory that is left in the group with the least memory left. Counts memory that is used by
  // all processes of a group, but not cached files that the system can drop. nullopt if none is
  // limited.
  std::optional<int64_t> available_bytes() const;

 private:
  // A hierarchy of groups, or a part of one.
  struct Mount {
    std::string controllers;          // separated by commas; "": the second version
    std::filesystem::path beginning;  // the group at `folder`
    std::filesystem::path folder;
  };

  void read_mounts();
  std::vector<Mount> mounts_of(const std::string& controllers) const;
  void add_usual_mounts(const std::string& controllers, std::vector<Mount>& mounts) const;

  std::filesystem::path root_;
  std::optional<std::vector<Mount>> mounts_;  // nullopt: not known
};

// The limit of memory of the group in `folder`, not of those around it; nullopt if it has none.
std::optional<int64_t> group_memory_limit_bytes(const std::filesystem::path& folder);

}  // namespace tessera
