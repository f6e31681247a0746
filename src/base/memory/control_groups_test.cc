// Fabricated /proc and /sys, and the real ones.
#include "base/memory/control_groups.h"

#include <unistd.h>

#include <fstream>
#include <string>

#include "base/files/temporary_folder_test.h"
#include "base/matchers_test.h"
#include "base/memory/memory.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMebi = int64_t{1} << 20;

class FakeMachine : public testing::Test {
 protected:
  void put(const fs::path& file, const std::string& text) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  // A group with a limit and a use, in MiB; "max": no limit.
  void put_second(const fs::path& group, const std::string& limit, int64_t used) const {
    put(group / "memory.max", limit == "max" ? "max\n" : mebi(std::stoll(limit)));
    put(group / "memory.current", mebi(used));
  }
  void put_first(const fs::path& group, int64_t limit, int64_t used) const {
    put(group / "memory.limit_in_bytes", mebi(limit));
    put(group / "memory.usage_in_bytes", mebi(used));
  }
  static std::string mebi(int64_t count) { return std::to_string(count * kMebi) + "\n"; }
  ControlGroups groups() const { return ControlGroups(root_); }

  const TemporaryFolder folder_;
  const fs::path root_ = folder_.path();
  const fs::path mount_ = "sys/fs/cgroup";
  const fs::path own_ = "proc/self/cgroup";
  const fs::path mounts_ = "proc/self/mountinfo";
};

TEST_F(FakeMachine, WithoutGroupsNothingIsLimited) {
  EXPECT_THAT(groups().folders(), IsEmpty());
  EXPECT_EQ(groups().memory_limit_bytes(), std::nullopt);
  EXPECT_EQ(groups().available_bytes(), std::nullopt);
}

TEST_F(FakeMachine, TheGroupWithTheLeastLeftCounts) {
  put(own_, "0::/pod/box/inner\n");
  put_second(mount_ / "pod", "900", 850);  // other boxes use most of it
  put_second(mount_ / "pod/box", "300", 100);
  put_second(mount_ / "pod/box/inner", "max", 90);
  EXPECT_EQ(groups().memory_limit_bytes(), 300 * kMebi);
  EXPECT_EQ(groups().available_bytes(), 50 * kMebi);
  put_second(mount_ / "pod/box/inner", "100", 90);
  EXPECT_EQ(groups().memory_limit_bytes(), 100 * kMebi);
  EXPECT_EQ(groups().available_bytes(), 10 * kMebi);
}

TEST_F(FakeMachine, TheInnermostAndTheOutermostGroupCount) {
  put(own_, "0::/box\n");
  put_second(mount_, "200", 20);
  EXPECT_EQ(groups().available_bytes(), 180 * kMebi) << "the outermost";
  put_second(mount_ / "box", "50", 60);
  EXPECT_EQ(groups().available_bytes(), 0) << "more used than allowed";
}

TEST_F(FakeMachine, ASoftLimitCounts) {
  put(own_, "0::/box\n");
  put_second(mount_ / "box", "300", 100);
  put(mount_ / "box/memory.high", mebi(120));
  EXPECT_EQ(groups().available_bytes(), 20 * kMebi);
  EXPECT_EQ(groups().memory_limit_bytes(), 300 * kMebi);
  put(mount_ / "box/memory.high", "max\n");
  EXPECT_EQ(groups().available_bytes(), 200 * kMebi);
}

TEST_F(FakeMachine, CachedFilesCanBeDropped) {
  put(own_, "0::/box\n");
  put_second(mount_ / "box", "300", 280);
  put(mount_ / "box/memory.stat", "anon 1\ninactive_file " + mebi(200) + "active_file 5\n");
  EXPECT_EQ(groups().available_bytes(), 220 * kMebi);
  put(mount_ / "box/memory.stat", "inactive_file " + mebi(999));
  EXPECT_EQ(groups().available_bytes(), 300 * kMebi) << "never more than the limit";
}

TEST_F(FakeMachine, TheFirstVersion) {
  put(own_, "5:cpu,cpuacct:/box\n4:memory:/outer/box\n0::/\n");
  put(mount_ / "memory/memory.limit_in_bytes", "9223372036854771712\n");
  put_first(mount_ / "memory/outer", 400, 390);
  put_first(mount_ / "memory/outer/box", 300, 100);
  EXPECT_EQ(groups().memory_limit_bytes(), 300 * kMebi);
  EXPECT_EQ(groups().available_bytes(), 10 * kMebi);
  put(mount_ / "memory/outer/memory.stat", "inactive_file 1\ntotal_inactive_file " + mebi(100));
  EXPECT_EQ(groups().available_bytes(), 110 * kMebi) << "that of the groups inside, too";
}

TEST_F(FakeMachine, MountsAreWhereTheSystemSays) {
  put(own_, "4:memory:/box\n0::/pod/box\n");
  put(mounts_,
      "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
      "35 31 0:32 / /groups/first\\040version rw,relatime shared:9 - cgroup cgroup rw,memory\n"
      "36 31 0:33 / /groups/cpu rw - cgroup cgroup rw,cpu\n"
      "41 31 0:38 / /groups/second rw - cgroup2 cgroup2 rw\n");
  put_first("groups/first version/box", 300, 100);
  put_second("groups/second/pod", "250", 100);
  put_first("groups/cpu/box", 1, 1);
  put_second(mount_ / "pod", "1", 1);
  EXPECT_THAT(groups().folders(),
              ElementsAre(root_ / "groups/first version", root_ / "groups/first version/box",
                          root_ / "groups/second", root_ / "groups/second/pod"));
  EXPECT_EQ(groups().available_bytes(), 150 * kMebi);
}

TEST_F(FakeMachine, InAContainerAMountIsAPartOfTheHierarchy) {
  put(own_, "4:memory:/docker/0123/inner\n");
  put(mounts_, "35 31 0:32 /docker/0123 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  put_first(mount_ / "memory", 300, 100);
  EXPECT_EQ(groups().available_bytes(), 200 * kMebi);
  put_first(mount_ / "memory/inner", 120, 100);
  EXPECT_EQ(groups().available_bytes(), 20 * kMebi);
  for (const char* path : {"0::/../outside\n", "0::/elsewhere\n", "0::/\n"}) {
    put(own_, path);
    put(mounts_, "41 31 0:38 /docker/0123 /sys/fs/cgroup/memory ro - cgroup2 cgroup2 rw\n");
    EXPECT_EQ(groups().available_bytes(), 200 * kMebi) << path;
  }
}

TEST_F(FakeMachine, FilesThatSaySomethingElseAreSkipped) {
  put(own_, "\n::\n:\n0\n0::\n7:memory\n0::/box\n");
  put(mount_ / "memory.max", "many\n");
  put(mount_ / "memory.current", "");
  put(mount_ / "box/memory.max", "-1\n");
  EXPECT_EQ(groups().memory_limit_bytes(), std::nullopt);
  EXPECT_EQ(groups().available_bytes(), std::nullopt);
  put(mount_ / "box/memory.max", "4096\n");
  EXPECT_EQ(groups().memory_limit_bytes(), 4096);
  EXPECT_EQ(groups().available_bytes(), std::nullopt) << "nobody knows what is used";
  put(mounts_, "\n1\n1 2 3\n1 2 3 / /a -\n1 2 3 \\0 \\04 - cgroup2\n");
  EXPECT_EQ(groups().memory_limit_bytes(), std::nullopt);
}

// Needs a hierarchy of the first version in which this user may make groups.
TEST(ControlGroups, ARealGroup) {
  const fs::path outer = "/sys/fs/cgroup/memory/tessera_test_" + std::to_string(::getpid());
  const fs::path inner = outer / "inner";
  std::error_code failure;
  fs::create_directories(inner, failure);
  if (failure) GTEST_SKIP() << "no groups can be made: " << failure.message();
  std::ofstream(outer / "memory.limit_in_bytes") << 200 * kMebi;
  const auto join_and_ask = [&] {
    std::ofstream(inner / "cgroup.procs") << ::getpid() << std::flush;
    const bool is_limited = machine_memory_bytes() == 200 * kMebi;
    std::_Exit(is_limited && available_memory_bytes() <= 200 * kMebi ? 0 : 1);
  };
  EXPECT_EXIT(join_and_ask(), testing::ExitedWithCode(0), "");
  fs::remove(inner, failure);
  fs::remove(outer, failure);
}

}  // namespace
}  // namespace tessera
