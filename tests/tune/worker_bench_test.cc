// Measuring in another process gives the same results as in this one, and a crash there loses only
// its candidate.
#include "microbench/worker_bench.h"

#include <sys/types.h>

#include <csignal>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/candidates.h"
#include "backend/catalog/catalog.h"
#include "backend/graph_view.h"
#include "base/errors/error_test.h"
#include "base/matchers_test.h"
#include "base/threads/parallel.h"
#include "microbench/group_bench.h"
#include "ops/all_ops_test.h"
#include "verify/compare_tensors.h"
#include "verify/op_case.h"

namespace tessera::tuning {
namespace {

constexpr int kThreads = 2;

std::shared_ptr<HostServices> services() {
  return std::make_shared<HostServices>([](const std::string&) {});
}

std::shared_ptr<const Plugin> reference() {
  const CatalogEntry& entry = catalog().back();
  return Plugin::open_linked(entry.open, "backend", services());
}

std::shared_ptr<const Plugin> hostile() { return Plugin::open(TESSERA_HOSTILE_PLUGIN, services()); }

// The mischief of the hostile plug-in, for this process and its children.
class Mischief {
 public:
  explicit Mischief(const std::string& name) { ::setenv("TESSERA_TEST_MISCHIEF", name.c_str(), 1); }
  ~Mischief() { ::unsetenv("TESSERA_TEST_MISCHIEF"); }
  Mischief(const Mischief&) = delete;
  Mischief& operator=(const Mischief&) = delete;
};

struct Group {
  GroupCase group;
  std::vector<CandidateId> ids;  // of all candidates, in order of preference
};

Group make_group(const std::string& text, std::vector<std::shared_ptr<const Plugin>> plugins) {
  ThreadPool pool(1);
  const verification::OpCase op_case = verification::read_op_case(text, all_ops(), 7);
  const auto expected = verification::expected_values(op_case, all_ops(), pool);
  Group made;
  made.group = {.graph = op_case.graph, .inputs = op_case.inputs, .threads = kThreads};
  for (const ValueId output : op_case.graph.outputs) {
    made.group.outputs.push_back(expected.values[static_cast<size_t>(output.index)]);
    made.group.magnitudes.push_back(expected.magnitudes[static_cast<size_t>(output.index)]);
  }
  const LayoutTable layouts(plugins);
  const tessera_graph view(op_case.graph, all_ops());
  const Offers offers = collect_offers(view, plugins, layouts, {.threads = 1});
  for (const Candidate& candidate : offers.candidates) {
    made.ids.push_back(id_alone(candidate, op_case.graph, layouts, 1));
  }
  return made;
}

WorkerOptions options() { return {.threads = kThreads, .candidate_timeout_seconds = 1}; }

// Of which a build may take a second.
WorkerOptions short_builds() {
  WorkerOptions limited = options();
  limited.build_timeout_seconds = 1;
  return limited;
}

// A bench that has loaded a group.
struct LoadedBench {
  LoadedBench(const std::string& text, const std::vector<std::shared_ptr<const Plugin>>& plugins,
              const WorkerOptions& given = options())
      : group(make_group(text, plugins)), ids(group.ids), bench(plugins, given) {
    bench.load(group.group);
  }

  const Group group;
  const std::vector<CandidateId>& ids;
  WorkerBench bench;
};

// --- As in this process --------------------------------------------------------------------------

TEST(WorkerBench, FindsWhatTheBenchInThisProcessFinds) {
  const std::vector<std::shared_ptr<const Plugin>> plugins = {reference()};
  GroupBench here(plugins, all_ops(), kThreads);
  WorkerBench there(plugins, options());
  for (const char* text : {"MatMul(33x50, #50x71)", "Conv(1x3x9x7, #4x3x3x3, #4) pads=1,1,1,1",
                           "Relu(3x4); Softmax(@)", "Reshape(2x6, {3,4})", "Cast(3x5) to=7"}) {
    SCOPED_TRACE(text);
    const Group group = make_group(text, plugins);
    here.load(group.group);
    there.load(group.group);
    ASSERT_FALSE(group.ids.empty());
    for (const CandidateId& id : group.ids) {
      // A case of several nodes also has candidates for parts of the group.
      const bool is_whole = id.nodes.size() == group.group.graph.nodes.size();
      const Outcome built = there.build(id);
      EXPECT_EQ(built.is_fine(), is_whole) << built.reason;
      EXPECT_EQ(here.build(id).reason, built.reason);
      if (!is_whole) continue;
      const Checked found = there.check(id);
      const Checked wanted = here.check(id);
      EXPECT_EQ(found.reason, wanted.reason);
      EXPECT_EQ(found.error, wanted.error);
      EXPECT_EQ(found.tolerance, wanted.tolerance);
      const Outcome run = there.run(id, Weights::Cold, 1);
      EXPECT_THAT(run.reason, IsEmpty());
      EXPECT_GE(run.seconds, 0);
      EXPECT_LT(run.seconds, 1);
      EXPECT_THAT(there.run(id, Weights::Warm, 1).reason, IsEmpty());
      there.drop(id);
    }
  }
}

TEST(WorkerBench, CarriesEverythingOfAGraph) {
  // Attributes of every kind, a nested graph, several outputs, an omitted value.
  const std::vector<std::shared_ptr<const Plugin>> plugins = {reference()};
  WorkerBench bench(plugins, options());
  for (const char* text :
       {"Resize(1x2x4x4, _, {1.0,1.0,2.0,2.0}) mode=nearest", "Split/2(6x2) axis=0 num_outputs=2",
        "LSTM/3(4x2x3, #1x20x3, #1x20x5) "
        "hidden_size=5"}) {
    SCOPED_TRACE(text);
    const Group group = make_group(text, plugins);
    bench.load(group.group);
    EXPECT_THAT(bench.build(group.ids.at(0)).reason, IsEmpty());
    EXPECT_THAT(bench.check(group.ids.at(0)).reason, IsEmpty());
  }
}

TEST(WorkerBench, TellsWhyACandidateIsNotOffered) {
  LoadedBench loaded("Relu(3x4)", {reference()});
  auto& [group, ids, bench] = loaded;
  CandidateId id = ids.at(0);
  id.algorithm = "winged";
  const Outcome built = bench.build(id);
  EXPECT_THAT(built.reason, HasSubstr("does not offer it"));
  EXPECT_TRUE(built.is_unknown);
  EXPECT_FALSE(built.is_lost);
}

TEST(WorkerBench, PricesConversionsWithoutAGroup) {
  const std::vector<std::shared_ptr<const Plugin>> plugins = {hostile(), reference()};
  WorkerBench bench(plugins, options());
  const ConversionKey key = {.backend = "hostile",
                             .from = "row_major",
                             .to = "hostile:own",
                             .element = DataType::Float32,
                             .dims = {100, 7}};
  EXPECT_THAT(bench.convert(key, 1).reason, IsEmpty());
  EXPECT_THAT(
      bench.convert({.backend = "hostile", .from = "row_major", .to = "elsewhere"}, 1).reason,
      HasSubstr("does not convert"));
}

// --- Mischief ------------------------------------------------------------------------------------

enum class Step { Build, Check, Run };

struct MischiefCase {
  const char* name;
  Step step;           // the step that fails, after the earlier steps succeeded
  const char* reason;  // the reported reason
  bool is_lost;
};

// Under sanitizers, a fault is handled by their own signal handlers.
#ifdef TESSERA_SANITIZED
constexpr const char* kFaultBuilding = "its process ended";
constexpr const char* kFaultRunning = "its process ended";
#else
constexpr const char* kFaultBuilding =
    "its process ended by signal 11 (segmentation fault) while building";
constexpr const char* kFaultRunning =
    "its process ended by signal 11 (segmentation fault) while running";
#endif

const MischiefCase kMischiefs[] = {
    {"crashes_building", Step::Build, kFaultBuilding, true},
    {"hangs_building", Step::Build, "took longer than 1 s to build", true},
    {"exits_building", Step::Build, "its process ended with exit code 4 while building", true},
    {"builds_slowly", Step::Build, "took longer than 1 s to build", true},
    {"build_throws", Step::Build, "bad day", false},
    {"crashes_running", Step::Check, kFaultRunning, true},
    {"hangs_running", Step::Check, "took longer than 1 s to run (--candidate-timeout)", true},
    {"exits_running", Step::Check, "its process ended with exit code 3 while running", true},
    {"aborts_running", Step::Check, "its process ended by signal 6 (aborted) while running", true},
    {"run_fails", Step::Check, "it lost its way", false},
    {"run_throws_a_number", Step::Check, "no std::exception", false},
    {"gives_nan", Step::Check, "nan", false},
    {"wrong_numbers", Step::Check, "numbers", false},
    {"random_numbers", Step::Check, "the same twice", false},
    {"writes_before_output", Step::Check, "writes 1 bytes before its start", false},
    {"writes_after_output", Step::Check, "writes up to byte", false},
    {"writes_far_after_output", Step::Check, kFaultRunning, true},
    {"writes_after_workspace", Step::Check, kFaultRunning, true},
    {"writes_input", Step::Check, kFaultRunning, true},
};

class WorkerMischief : public testing::TestWithParam<MischiefCase> {};

TEST_P(WorkerMischief, CostsItsCandidateAndNothingElse) {
  const MischiefCase& given = GetParam();
  const Mischief mischief(given.name);
  LoadedBench loaded("Relu(3x4)", {hostile(), reference()}, short_builds());
  auto& [group, ids, bench] = loaded;
  ASSERT_EQ(ids.size(), 2U);
  const CandidateId& bad = ids[0];
  const CandidateId& good = ids[1];

  // This process has built the good candidate before, which must not be blamed.
  ASSERT_THAT(bench.build(good).reason, IsEmpty());
  const Outcome built = bench.build(bad);
  if (given.step == Step::Build) {
    EXPECT_THAT(built.reason, HasSubstr(given.reason));
    EXPECT_EQ(built.is_lost, given.is_lost);
  } else {
    ASSERT_THAT(built.reason, IsEmpty());
    const Checked checked = bench.check(bad);
    EXPECT_THAT(checked.reason, HasSubstr(given.reason));
    EXPECT_EQ(checked.is_lost, given.is_lost);
  }
  EXPECT_THAT(bench.check(good).reason, IsEmpty());
  EXPECT_THAT(bench.run(good, Weights::Cold, 1).reason, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(All, WorkerMischief, testing::ValuesIn(kMischiefs),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(WorkerBench, DoesNotBlameACandidateForWhatAnotherLeftBehind) {
  const Mischief mischief("crashes_later");
  LoadedBench loaded("Relu(300x400)", {hostile(), reference()});
  auto& [group, ids, bench] = loaded;
  const CandidateId& good = ids.at(1);
  ASSERT_THAT(bench.build(ids[0]).reason, IsEmpty());
  EXPECT_THAT(bench.check(ids[0]).reason, IsEmpty());
  const int process = bench.process_id();
  for (int round = 0; round < 10000 && bench.process_id() == process; ++round) {
    ASSERT_THAT(bench.check(good).reason, IsEmpty());
  }
  EXPECT_NE(bench.process_id(), process);
}

TEST(WorkerBench, WaitsForABuilderThatAnnouncedItsTime) {
  const Mischief mischief("builds_slowly_as_announced");
  LoadedBench loaded("Relu(3x4)", {hostile(), reference()}, short_builds());
  auto& [group, ids, bench] = loaded;
  const Outcome built = bench.build(ids.at(0));
  EXPECT_THAT(built.reason, IsEmpty());
  EXPECT_GT(built.seconds, 1.4);
  EXPECT_THAT(bench.check(ids[0]).reason, IsEmpty());
}

TEST(WorkerBench, EndsOneThatAllocatesEverythingBeforeTheMachineSuffers) {
#ifdef TESSERA_SANITIZED
  GTEST_SKIP() << "the sanitizer's allocator ends the process in a way of its own";
#endif
  const Mischief mischief("allocates_everything");
  WorkerOptions with_limits = options();
  with_limits.candidate_timeout_seconds = 60;
  with_limits.memory_bytes = int64_t{1} << 30;
  LoadedBench loaded("Relu(3x4)", {hostile(), reference()}, with_limits);
  auto& [group, ids, bench] = loaded;
  ASSERT_THAT(bench.build(ids.at(0)).reason, IsEmpty());
  EXPECT_THAT(bench.check(ids[0]).reason, HasSubstr("memory"));
  ASSERT_THAT(bench.build(ids.at(1)).reason, IsEmpty());
  EXPECT_THAT(bench.check(ids[1]).reason, IsEmpty());
}

// --- What it compiles ----------------------------------------------------------------------------

class WorkerCompiler : public testing::Test {
 protected:
  ~WorkerCompiler() override { ::unsetenv("TESSERA_TEST_COMPILER"); }

  WorkerOptions with_services() const {
    WorkerOptions wanted = short_builds();
    wanted.services = services_;
    return wanted;
  }

  std::shared_ptr<HostServices> services_ = services();
  std::vector<std::shared_ptr<const Plugin>> plugins_ = {
      Plugin::open(TESSERA_COMPILER_PLUGIN, services_)};
  Group group_ = make_group("LeakyRelu(3x4) alpha=0.5", plugins_);
  const std::string key_ = "plug-in 'compiler.so'/leaky/0.500000";
};

TEST_F(WorkerCompiler, SharesItsBlobsWithThisProcessAndLaterWorkers) {
  for (int worker = 0; worker < 2; ++worker) {
    WorkerBench bench(plugins_, with_services());
    bench.load(group_.group);
    ASSERT_THAT(bench.build(group_.ids.at(0)).reason, IsEmpty());
    EXPECT_EQ(services_->get_blob(key_), "0.500000");
    EXPECT_EQ(plugins_[0]->compile_counts()->compiled, 1) << "by the first worker";
    EXPECT_NE(services_->try_claim(key_), nullptr);
  }
}

TEST_F(WorkerCompiler, CompilesWithoutServices) {
  WorkerOptions alone = with_services();
  alone.services = nullptr;
  WorkerBench bench(plugins_, alone);
  bench.load(group_.group);
  EXPECT_THAT(bench.build(group_.ids.at(0)).reason, IsEmpty());
  EXPECT_EQ(services_->get_blob(key_), std::nullopt);
}

TEST_F(WorkerCompiler, IsStoppedInTimeAndThenClaimsNothing) {
  ::setenv("TESSERA_TEST_COMPILER", "hangs", 1);
  WorkerBench bench(plugins_, with_services());
  bench.load(group_.group);
  const Outcome built = bench.build(group_.ids.at(0));
  EXPECT_THAT(built.reason, HasSubstr("took longer than 1 s to build"));
  EXPECT_NE(services_->try_claim(key_), nullptr);
}

// --- The process ---------------------------------------------------------------------------------

// Simulates a process that is blocked in a system call which no signal interrupts.
pid_t wait_in_vain(pid_t /*id*/, int* /*status*/, int /*options*/) { return 0; }

TEST(WorkerBench, LeavesAProcessBehindThatDoesNotEnd) {
  std::vector<std::string> told;
  const Log log([&](const std::string& message) { told.push_back(message); });
  WorkerOptions stuck = options();
  stuck.log = &log;
  stuck.wait = wait_in_vain;
  stuck.kill_patience = std::chrono::milliseconds(50);
  LoadedBench loaded("Relu(3x4)", {reference()}, stuck);
  auto& [group, ids, bench] = loaded;
  ASSERT_THAT(bench.build(ids.at(0)).reason, IsEmpty());
  const int first = bench.process_id();
  ASSERT_EQ(::kill(first, SIGKILL), 0);
  bench.run(ids[0], Weights::Warm, 1);
  EXPECT_NE(bench.process_id(), first);
  EXPECT_THAT(bench.run(ids[0], Weights::Warm, 1).reason, IsEmpty());
  ASSERT_EQ(told.size(), 1U);
  EXPECT_THAT(told[0], HasSubstr("process " + std::to_string(first)));
  EXPECT_THAT(told[0], HasSubstr("is left behind"));
}

TEST(WorkerBench, GoesOnWhenItsProcessWasEnded) {
  LoadedBench loaded("Relu(3x4)", {reference()});
  auto& [group, ids, bench] = loaded;
  ASSERT_THAT(bench.build(ids.at(0)).reason, IsEmpty());
  const int first = bench.process_id();
  ASSERT_EQ(::kill(first, SIGKILL), 0);
  const Outcome run = bench.run(ids[0], Weights::Warm, 1);
  // If the worker ended before the request, no candidate is blamed; if during the request, the
  // candidate is.
  EXPECT_TRUE(run.is_fine() || run.is_lost) << run.reason;
  EXPECT_NE(bench.process_id(), first);
  EXPECT_THAT(bench.run(ids[0], Weights::Warm, 1).reason, IsEmpty());
}

TEST(WorkerBench, EndsItsProcessWithItself) {
  int process = 0;
  {
    const WorkerBench bench({}, options());
    process = bench.process_id();
    EXPECT_EQ(::kill(process, 0), 0);
  }
  EXPECT_EQ(::kill(process, 0), -1);
}

TEST(WorkerBench, SaysThatItsProgramIsMissing) {
  WorkerOptions missing = options();
  missing.program = "/nowhere/tessera-worker";
  EXPECT_THAT(error_of(ErrorKind::DeviceFailed, [&] { const WorkerBench bench({}, missing); }),
              HasSubstr("/nowhere/tessera-worker"));
}

TEST(WorkerBench, SaysThatAPlugInCannotBeOpenedThere) {
  const std::vector<std::shared_ptr<const Plugin>> plugins = {hostile()};
  const Mischief mischief("open_throws");
  EXPECT_THAT(
      error_of(ErrorKind::DeviceFailed, [&] { const WorkerBench bench(plugins, options()); }),
      HasSubstr("the moon is in the wrong phase"));
}

TEST(WorkerBench, AMissingOneIsSaidOnce) {
  std::vector<std::string> said;
  const Log log([&](const std::string& message) { said.push_back(message); });
  WorkerOptions missing = options();
  missing.program = "/nowhere/tessera-worker";
  EXPECT_EQ(start_worker({}, missing, log), nullptr);
  EXPECT_EQ(start_worker({}, missing, log), nullptr);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_THAT(said[0], HasSubstr("/nowhere/tessera-worker"));
  EXPECT_THAT(said[0], HasSubstr("in this process"));
}

}  // namespace
}  // namespace tessera::tuning
