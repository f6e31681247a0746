// Every finding appears where it should, alone, and not on a machine without faults.
#include "cli/reports/doctor_findings.h"

#include <functional>

#include "base/matchers_test.h"

namespace tessera::cli {
namespace {

constexpr int64_t kGibibyte = int64_t{1} << 30;

ExaminedCacheFolder fine_folder(CacheTier tier) {
  return {.tier = tier,
          .named_by = tier == CacheTier::User ? "HOME" : "",
          .folder = tier == CacheTier::User ? "/home/anna/.cache/tessera" : "/home/anna/work",
          .exists = true,
          .owner = 1000,
          .mode = 0700,
          .free_bytes = 10 * kGibibyte,
          .kept = {.kinds = {{.kind = "caches", .files = 2, .bytes = 2048}}},
          .plans = 3};
}

// Nothing is wrong with it.
Examination fine() {
  return {
      .backends = {{.name = "fast",
                    .version = "3.2",
                    .aliases = {"quick"},
                    .file = "/lib/backend_fast.so",
                    .is_usable = true,
                    .status = BackendStatus::Usable},
                   {.name = "device", .status = BackendStatus::LibraryMissing, .reason = "absent"},
                   {.name = "other", .status = BackendStatus::NotBuilt, .reason = "left out"},
                   {.name = "slow", .is_usable = true, .status = BackendStatus::Usable}},
      .only_if_named = {"device"},
      .worker = {.file = "/bin/tessera-worker", .seconds = 0.01},
      .cache_folders = {fine_folder(CacheTier::First), fine_folder(CacheTier::User)},
      .machine = {.processor = "A processor",
                  .instruction_sets = {"avx2", "fma"},
                  .has_avx2 = true,
                  .cores = 4,
                  .usable_cores = 4,
                  .quota = {.is_known = true},
                  .governors = {"performance"},
                  .frequency_driver = "acpi-cpufreq",
                  .busy_by_others = 0.1,
                  .huge_pages = "madvise",
                  .flushes_denormals = true,
                  .machine_bytes = 16 * kGibibyte,
                  .available_bytes = 12 * kGibibyte,
                  .group_bytes = {.is_known = true},
                  .open_files = {.is_known = true, .value = 1024},
                  .locked_bytes = {.is_known = true, .value = 8 << 20},
                  .address_space_bytes = {.is_known = true}}};
}

std::vector<Check> findings_of(const Examination& examination) {
  std::vector<Check> findings = find_faults(examination);
  std::erase_if(findings, [](const Check& check) { return check.problem.empty(); });
  return findings;
}

struct Fault {
  const char* name;
  std::function<void(Examination&)> cause;
  const char* area;
  const char* subject;
  const char* problem;  // a part of its text
  const char* remedy;   // a part of its text
};

void set(Examination& all, const char* name, const char* value, const char* meaning = "known") {
  all.environment.push_back({.name = name, .value = value, .meaning = meaning});
}

const Fault kFaults[] = {
    {"LibraryMissing",
     [](auto& all) {
       all.backends[2] = {.name = "other",
                          .status = BackendStatus::LibraryMissing,
                          .reason = "libother.so is missing",
                          .remedy = "apt install libother"};
     },
     "backends", "other", "libother.so is missing", "apt install libother"},
    {"Refused",
     [](auto& all) {
       all.wanted_backends = {"fast"};
       all.backends[2] = {.name = "backend_other.so",
                          .file = "/lib/backend_other.so",
                          .status = BackendStatus::Refused,
                          .reason = "it is of another version"};
     },
     "backends", "backend_other.so", "another version", "tessera verify --backend"},
    {"OpeningCrashes",
     [](auto& all) {
       all.backends.clear();
       all.plugins_fault = "ended by signal 11";
       all.wanted_backends = {"fast"};
       all.backend_paths = {{.path = "/plug-ins", .exists = true}};
       set(all, "TESSERA_BACKENDS", "fast");
     },
     "backends", "plug-ins", "ended by signal 11", "tessera verify --backend"},
    {"OnePlugInCrashes",
     [](auto& all) {
       all.backends.clear();
       all.plugins_fault = "ended by signal 11";
       all.faulty_plugin = "/lib/backend_bad.so";
     },
     "backends", "plug-ins", "a process that opened '/lib/backend_bad.so' ended by signal 11",
     "tessera verify --backend /lib/backend_bad.so"},
    {"NothingFast", [](auto& all) { all.backends[0] = all.backends[2]; }, "backends", "in use",
     "reference alone", "install a library"},
    {"OnlyTheReferenceWanted", [](auto& all) { all.wanted_backends = {"slow"}; }, "backends",
     "in use", "reference alone", "unset TESSERA_BACKENDS"},
    {"PathMissing", [](auto& all) { all.backend_paths = {{.path = "/plug-ins"}}; }, "backends",
     "TESSERA_BACKEND_PATH", "'/plug-ins' does not exist", "correct the path"},
    {"PathWithoutPlugins",
     [](auto& all) { all.backend_paths = {{.path = "/plug-ins", .exists = true}}; }, "backends",
     "TESSERA_BACKEND_PATH", "has no plug-in", "backend_*.so"},
    {"WorkerNotFound", [](auto& all) { all.worker = {.reason = "expected it in '/bin'"}; },
     "worker", "tessera-worker", "expected it in '/bin'; binding measures in its own process",
     "install Tessera again"},
    {"WorkerSilent",
     [](auto& all) { all.worker = {.file = "/w", .reason = "it did not answer within 5 s"}; },
     "worker", "tessera-worker", "did not answer", "same version"},
    {"VariableUnknown",
     [](auto& all) {
       all.environment = {{.name = "TESSERA_BACKEND",
                           .value = "fast",
                           .hint = "; did you mean 'TESSERA_BACKENDS'?"}};
     },
     "environment", "TESSERA_BACKEND", "reads no variable of this name; did you mean",
     "correct the name"},
    {"NoMeasuring", [](auto& all) { set(all, "TESSERA_OPTIMIZE", "0"); }, "environment",
     "TESSERA_OPTIMIZE", "measures nothing", "--optimize"},
    {"OptimizeIsNoNumber", [](auto& all) { set(all, "TESSERA_OPTIMIZE", "off"); }, "environment",
     "TESSERA_OPTIMIZE", "expected 0 or 1, found 'off'", "set it to 0 or 1"},
    {"DumpsKernels", [](auto& all) { set(all, "TESSERA_DUMP_KERNELS", "/tmp"); }, "environment",
     "TESSERA_DUMP_KERNELS", "takes time", "unset it"},
    {"RelativeCacheHome", [](auto& all) { set(all, "XDG_CACHE_HOME", "caches"); }, "environment",
     "XDG_CACHE_HOME", "relative", "absolute path"},
    {"UnknownBackendWanted",
     [](auto& all) {
       all.wanted_backends = {"fast", "fsat"};
       set(all, "TESSERA_BACKENDS", "fast,fsat");
     },
     "environment", "TESSERA_BACKENDS", "'fsat' is no backend; did you mean 'fast'?",
     "tessera backends"},
    {"UnusableBackendWanted",
     [](auto& all) {
       all.wanted_backends = {"quick", "other"};
       set(all, "TESSERA_BACKENDS", "quick,other");
     },
     "environment", "TESSERA_BACKENDS", "'other' cannot be used (not built)", "unset it"},
    {"NoUserFolder", [](auto& all) { all.cache_folders[1] = {.tier = CacheTier::User}; }, "caches",
     "user's folder", "neither XDG_CACHE_HOME nor HOME", "set one"},
    {"UserFolderUnwritable", [](auto& all) { all.cache_folders[1].unwritable = "read-only"; },
     "caches", "user's folder", "packs weights again", "XDG_CACHE_HOME"},
    {"NamedFolderUnwritable",
     [](auto& all) {
       all.cache_folders[0].named_by = "TESSERA_CACHE_DIR";
       all.cache_folders[0].unwritable = "read-only";
     },
     "caches", "first folder", "read-only, so plans are not kept", "TESSERA_CACHE_DIR"},
    {"NamedFolderMissing",
     [](auto& all) {
       all.cache_folders[0].named_by = "TESSERA_CACHE_DIR";
       all.cache_folders[0].exists = false;
     },
     "caches", "first folder", "TESSERA_CACHE_DIR names does not exist",
     "the first bind that measures creates it"},
    {"FolderUntrusted", [](auto& all) { all.cache_folders[0].untrusted = "others may write"; },
     "caches", "first folder", "others may write, so files in it are not used",
     "chmod go-w /home/anna/work"},
    {"UserFolderOfSomebodyElse",
     [](auto& all) { all.cache_folders[1].untrusted = "belongs to user 7"; }, "caches",
     "user's folder", "belongs to user 7", "0700"},
    {"DiskFull", [](auto& all) { all.cache_folders[1].free_bytes = 1 << 20; }, "caches",
     "user's folder", "only 1.00 MiB are free", "free space"},
    {"KeyRefused", [](auto& all) { all.cache_folders[1].key_fault = "the key is refused"; },
     "caches", "user's folder", "the key is refused", "chmod 600"},
    {"CacheDamaged", [](auto& all) { all.cache_folders[0].first_damage = "checksum"; }, "caches",
     "first folder", "cannot be read: checksum", "tessera cache verify"},
    {"PacksUnusable",
     [](auto& all) {
       all.cache_folders[1].kept.kinds = {{.kind = "packs", .files = 3, .unusable = 2}};
     },
     "caches", "user's folder", "2 files", "tessera cache clear"},
    {"NoAvx2", [](auto& all) { all.machine.has_avx2 = false; }, "processor", "instruction sets",
     "avx2", "-cpu host"},
    {"FewerCores", [](auto& all) { all.machine.usable_cores = 1; }, "processor", "usable cores",
     "1 core of 4", "taskset"},
    {"Quota", [](auto& all) { all.machine.quota.value = 2.5; }, "processor",
     "control group's quota", "the time of 2.5 processors, but 4 cores are usable", "--threads 2"},
    {"QuotaBelowOne", [](auto& all) { all.machine.quota.value = 0.5; }, "processor",
     "control group's quota", "0.5", "--threads 1"},
    {"Powersave", [](auto& all) { all.machine.governors = {"performance", "powersave"}; },
     "processor", "frequency governor", "lowest frequency", "cpupower"},
    {"OthersAreBusy", [](auto& all) { all.machine.busy_by_others = 0.3; }, "processor",
     "load by others", "0.3 processors", "top"},
    {"NoHugePages", [](auto& all) { all.machine.huge_pages = "never"; }, "processor", "huge pages",
     "switched off", "echo madvise"},
    {"LittleMemory", [](auto& all) { all.machine.available_bytes = kGibibyte - 1; }, "memory",
     "available", "can be allocated", "--memory-budget"},
    {"FewOpenFiles", [](auto& all) { all.machine.open_files.value = 64; }, "memory", "open files",
     "64 open files", "ulimit -n"},
    {"AddressSpace", [](auto& all) { all.machine.address_space_bytes.value = 4 * kGibibyte; },
     "memory", "address space", "4.00 GiB", "ulimit -v unlimited"},
};

class FaultFound : public testing::TestWithParam<Fault> {};

TEST_P(FaultFound, AndNothingElse) {
  const Fault& fault = GetParam();
  Examination examination = fine();
  fault.cause(examination);
  const std::vector<Check> findings = findings_of(examination);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].area, fault.area);
  EXPECT_EQ(findings[0].subject, fault.subject);
  EXPECT_THAT(findings[0].problem, HasSubstr(fault.problem));
  EXPECT_THAT(findings[0].remedy, HasSubstr(fault.remedy));
}

INSTANTIATE_TEST_SUITE_P(All, FaultFound, testing::ValuesIn(kFaults),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(DoctorFindings, AFineMachineHasNone) {
  EXPECT_TRUE(findings_of(fine()).empty());
  for (const Check& check : find_faults(fine())) {
    EXPECT_NE(check.found, "") << check.subject;
    EXPECT_EQ(check.remedy, "") << check.subject;
  }
}

// A state that is similar to a fault, but is none.
struct Harmless {
  const char* name;
  std::function<void(Examination&)> cause;
};

const Harmless kHarmless[] = {
    {"NothingIsKnownOfTheMachine", [](auto& all) { all.machine = {}; }},
    {"SwitchedOnByTheVariable", [](auto& all) { set(all, "TESSERA_OPTIMIZE", "1"); }},
    {"AnOptionalLibraryThatIsMissing",
     [](auto& all) {
       all.wanted_backends = {"fast"};
       all.backends[2].status = BackendStatus::LibraryMissing;
     }},
    {"APlugInThatIsOnlyUsedIfNamed",
     [](auto& all) {
       all.backends[1].status = BackendStatus::Refused;
       all.backends[1].reason = "there is no driver";
     }},
    {"AliasesAreNames",
     [](auto& all) {
       all.wanted_backends = {"Qui_ck"};
       set(all, "TESSERA_BACKENDS", "Qui_ck");
     }},
    {"APathWithPlugins",
     [](auto& all) {
       all.backend_paths = {{.path = "/plug-ins", .exists = true, .has_plugins = true}};
     }},
    {"TheUsersFolderIsMadeWhenNeeded", [](auto& all) { all.cache_folders[1].exists = false; }},
    {"TheWorkingFolderNeedNotBeWritable",
     [](auto& all) { all.cache_folders[0].unwritable = "read-only"; }},
    {"CachesOfOtherVersions",
     [](auto& all) {
       all.cache_folders[0].other_caches = 2;
       all.cache_folders[0].kept.kinds[0].unusable = 2;
     }},
    {"PowersaveOfADriverThatAdapts",
     [](auto& all) {
       all.machine.governors = {"powersave"};
       all.machine.frequency_driver = "intel_pstate";
     }},
    {"AQuotaOfAllCores", [](auto& all) { all.machine.quota.value = 4; }},
    {"HugePagesAlways", [](auto& all) { all.machine.huge_pages = "always"; }},
    {"AnAddressSpaceAsLargeAsTheMemory",
     [](auto& all) { all.machine.address_space_bytes.value = 16 * kGibibyte; }},
    {"OtherProcessors", [](auto& all) { all.machine.has_avx2 = std::nullopt; }},
};

class HarmlessState : public testing::TestWithParam<Harmless> {};

TEST_P(HarmlessState, IsNoFinding) {
  Examination examination = fine();
  GetParam().cause(examination);
  for (const Check& check : findings_of(examination)) ADD_FAILURE() << check.problem;
}

INSTANTIATE_TEST_SUITE_P(All, HarmlessState, testing::ValuesIn(kHarmless),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(DoctorFindings, WhatIsNotKnownIsSaid) {
  Examination examination = fine();
  examination.machine = {};
  int count = 0;
  for (const Check& check : find_faults(examination)) {
    if (check.area != "processor" && check.area != "memory") continue;
    EXPECT_THAT(check.found, HasSubstr("not known")) << check.subject;
    ++count;
  }
  EXPECT_EQ(count, 13);
}

TEST(DoctorFindings, AFolderIsDescribed) {
  Examination examination = fine();
  examination.cache_folders[0].other_caches = 1;
  for (const Check& check : find_faults(examination)) {
    if (check.subject != "first folder") continue;
    EXPECT_EQ(check.found,
              "/home/anna/work, from the working folder, user 1000, mode 0700, writable, 2 files "
              "of 2.00 KiB, 3 plans, 1 cache of other versions or processors, 10.0 GiB free");
  }
}

TEST(DoctorFindings, ModesAreOctal) {
  EXPECT_EQ(octal_text(0700), "0700");
  EXPECT_EQ(octal_text(01777), "1777");
  EXPECT_EQ(octal_text(0), "0000");
}

}  // namespace
}  // namespace tessera::cli
