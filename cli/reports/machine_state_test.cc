// Reads the state of fabricated /proc and /sys, and of this machine.
#include "cli/reports/doctor_findings.h"

#include "base/files/temporary_folder_test.h"
#include "base/matchers_test.h"

namespace tessera::cli {
namespace {

// A file below `root`, with the folders that it needs.
void put(const TemporaryFolder& root, const std::string& file, const std::string& text) {
  const std::filesystem::path path = root.path() / file;
  std::filesystem::create_directories(path.parent_path());
  write_text(path, text);
}

MachineState read(const TemporaryFolder& root) {
  MachineState state;
  read_machine_files(root.path(), state);
  return state;
}

const std::string kProcessors = "sys/devices/system/cpu/";
const std::string kGroups = "sys/fs/cgroup/";
const std::string kOwnGroup = "proc/self/cgroup";

TEST(MachineState, WithoutFilesNothingIsKnown) {
  const TemporaryFolder root;
  const MachineState state = read(root);
  EXPECT_TRUE(state.instruction_sets.empty());
  EXPECT_EQ(state.has_avx2, std::nullopt);
  EXPECT_EQ(state.cores, std::nullopt);
  EXPECT_FALSE(state.quota.is_known);
  EXPECT_FALSE(state.group_bytes.is_known);
  EXPECT_TRUE(state.governors.empty());
  EXPECT_EQ(state.huge_pages, "");
}

TEST(MachineState, WrongFilesAreNoErrors) {
  const TemporaryFolder root;
  put(root, "proc/cpuinfo", "flags\nflags : \n");
  put(root, kOwnGroup, "\n::\n:\n0\n0::\n7:cpu\n");
  put(root, kGroups + "cpu.max", "-1 0\n");
  put(root, kGroups + "memory.max", "many\n");
  put(root, "sys/kernel/mm/transparent_hugepage/enabled", "]always[\n");
  for (const char* list : {"", "-", "a-b", "0-", "3-1", "0-99999999999", "1-2000000000", "-4"}) {
    put(root, kProcessors + "online", list);
    const MachineState state = read(root);
    EXPECT_EQ(state.cores, std::nullopt) << list;
    EXPECT_EQ(state.quota.value, std::nullopt);
    EXPECT_EQ(state.group_bytes.value, std::nullopt);
    EXPECT_EQ(state.huge_pages, "");
  }
}

TEST(MachineState, InstructionSetsOfIntelAndArm) {
  const TemporaryFolder root;
  put(root, "proc/cpuinfo", "processor : 0\nflags\t\t: fpu sse4_2 avx fma avx2 hypervisor\n");
  EXPECT_THAT(read(root).instruction_sets, ElementsAre("sse4_2", "avx", "fma", "avx2"));
  EXPECT_EQ(read(root).has_avx2, true);
  put(root, "proc/cpuinfo", "flags : fpu sse4_2 avx2000\n");
  EXPECT_EQ(read(root).has_avx2, false);
  put(root, "proc/cpuinfo", "Features : fp asimd bf16\n");
  EXPECT_THAT(read(root).instruction_sets, ElementsAre("asimd", "bf16"));
  EXPECT_EQ(read(root).has_avx2, std::nullopt);
}

TEST(MachineState, CoresAndTheirGovernors) {
  const TemporaryFolder root;
  put(root, kProcessors + "online", "0-2,8\n");
  for (const char* id : {"0", "1", "8"}) {
    const std::string folder = kProcessors + "cpu" + id + "/cpufreq/";
    put(root, folder + "scaling_governor",
        id == std::string("8") ? "powersave\n" : "performance\n");
    put(root, folder + "scaling_driver", "acpi-cpufreq\n");
  }
  const MachineState state = read(root);
  EXPECT_EQ(state.cores, 4);
  EXPECT_THAT(state.governors, ElementsAre("performance", "powersave"));
  EXPECT_EQ(state.frequency_driver, "acpi-cpufreq");
}

TEST(MachineState, HugePages) {
  const TemporaryFolder root;
  put(root, "sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
  EXPECT_EQ(read(root).huge_pages, "never");
}

TEST(MachineState, TheSecondVersionOfControlGroups) {
  const TemporaryFolder root;
  put(root, kOwnGroup, "0::/pod/box\n");
  put(root, kGroups + "pod/cpu.max", "150000 100000\n");
  put(root, kGroups + "pod/memory.max", "max\n");
  put(root, kGroups + "pod/box/cpu.max", "max 100000\n");
  put(root, kGroups + "pod/box/memory.max", "1048576\n");
  EXPECT_EQ(read(root).quota, (Limit<double>{.is_known = true, .value = 1.5}));
  EXPECT_EQ(read(root).group_bytes, (Limit<int64_t>{.is_known = true, .value = 1 << 20}));
  put(root, kGroups + "pod/box/cpu.max", "50000 100000\n");
  EXPECT_EQ(read(root).quota.value, 0.5) << "the smallest of all groups";
}

TEST(MachineState, InAContainerTheOutermostGroupIsItsOwn) {
  for (const char* path : {"0::/\n", "0::/docker/0123\n", "0::/../outside\n"}) {
    const TemporaryFolder root;
    put(root, kOwnGroup, path);
    put(root, kGroups + "cpu.max", "200000 100000\n");
    put(root, "sys/fs/outside/cpu.max", "1 100000\n");
    EXPECT_EQ(read(root).quota.value, 2) << path;
  }
}

TEST(MachineState, TheFirstVersionOfControlGroups) {
  const TemporaryFolder root;
  put(root, kOwnGroup, "4:memory:/box\n3:cpu,cpuacct:/box\n0::/\n");
  put(root, kGroups + "cpu/box/cpu.cfs_quota_us", "300000\n");
  put(root, kGroups + "cpu/box/cpu.cfs_period_us", "100000\n");
  put(root, kGroups + "memory/box/memory.limit_in_bytes", "4096\n");
  put(root, kGroups + "memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(read(root).quota.value, 3);
  EXPECT_EQ(read(root).group_bytes.value, 4096);
}

TEST(MachineState, TheFirstVersionWithoutLimits) {
  const TemporaryFolder root;
  put(root, kOwnGroup, "4:memory:/\n3:cpu:/\n");
  put(root, kGroups + "cpu/cpu.cfs_quota_us", "-1\n");
  put(root, kGroups + "cpu/cpu.cfs_period_us", "100000\n");
  put(root, kGroups + "memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(read(root).quota, (Limit<double>{.is_known = true}));
  EXPECT_EQ(read(root).group_bytes, (Limit<int64_t>{.is_known = true}));
}

TEST(MachineState, OfThisMachine) {
  const MachineState state = read_machine_state();
  EXPECT_NE(state.processor, "");
  ASSERT_TRUE(state.usable_cores);
  EXPECT_GE(*state.usable_cores, 1);
  EXPECT_GE(state.cores.value_or(*state.usable_cores), *state.usable_cores);
  EXPECT_GE(state.busy_by_others.value_or(0), 0);
  ASSERT_TRUE(state.machine_bytes && state.available_bytes);
  EXPECT_LE(*state.available_bytes, *state.machine_bytes);
  EXPECT_TRUE(state.open_files.is_known);
#if defined(__x86_64__) || defined(__aarch64__)
  EXPECT_EQ(state.flushes_denormals, true);
#endif
}

}  // namespace
}  // namespace tessera::cli
