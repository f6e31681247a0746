// The kernel of a region: its threads, concurrent callers, and missing inputs or outputs.

#include <algorithm>
#include <ctime>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "backend/candidates.h"
#include "backend/contract/run_context.h"
#include "backend/graph_view.h"
#include "backend/host.h"
#include "base/threads/threads_test.h"
#include "candidate_check.h"
#include "infer/infer.h"
#include "tessera/error.h"

namespace tessera {
namespace {

constexpr int64_t kChannels = 48;
constexpr int64_t kSide = 24;
constexpr int64_t kElements = kChannels * kSide * kSide;

// Two convolutions whose weights the region absorbs.
Graph two_convolutions(const ops::Registry& registry) {
  GraphBuilder builder(registry, 13);
  Dice dice(5);
  builder.input("x", Type::tensor(DataType::Float32, shape_from({1, kChannels, kSide, kSide})));
  builder.constant("w", dice.tensor({kChannels, kChannels, 3, 3}, -0.1F, 0.1F));
  const Attributes attributes = attributes_of({{"pads", {1, 1, 1, 1}}});
  builder.node("first", "Conv", {"x", "w"}, {"y"}, attributes);
  builder.node("relu", "Relu", {"y"}, {"z"});
  builder.node("second", "Conv", {"z", "w"}, {"out"}, attributes);
  builder.output("out");
  return builder.graph();
}

class OpenvinoKernel : public testing::Test {
 protected:
  OpenvinoKernel()
      : registry_(ops::make_registry()),
        graph_(infer_types(two_convolutions(registry_), registry_, Log())),
        plugins_({Plugin::open(TESSERA_PLUGIN_FOLDER "/backend_openvino.so",
                               std::make_shared<HostServices>())}),
        layouts_(plugins_, {}) {}

  // The candidate that covers the whole graph.
  Candidate propose(int threads) {
    const tessera_graph view(graph_, registry_);
    Offers offers = collect_offers(view, plugins_, layouts_, {.threads = threads});
    for (Candidate& candidate : offers.candidates) {
      if (candidate.nodes.size() == graph_.nodes.size()) return std::move(candidate);
    }
    ADD_FAILURE() << "no candidate for the whole graph";
    return {};
  }

  struct Run {
    std::vector<float> input = std::vector<float>(kElements);
    std::vector<float> output = std::vector<float>(kElements);
  };

  static Run make_run(uint64_t seed) {
    Run made;
    Dice dice(seed);
    for (float& value : made.input) value = dice.number(-1, 1);
    return made;
  }

  static void run(const Kernel& kernel, ThreadPool& pool, Run& run) {
    const std::vector<int64_t> dims = {1, kChannels, kSide, kSide};
    const auto abi = [&](std::vector<float>& elements) {
      tessera_buffer buffer = {};
      buffer.data = elements.data();
      buffer.bytes = kElements * 4;
      buffer.data_type = TESSERA_FLOAT32;
      buffer.rank = 4;
      buffer.dims = dims.data();
      buffer.request = TESSERA_REQUEST_WRITE;
      return buffer;
    };
    const tessera_buffer from = abi(run.input);
    const tessera_buffer to = abi(run.output);
    RunContext context(pool);
    pool.execute([&] { kernel.run("region", context, &from, &to); });
  }

  ops::Registry registry_;
  Graph graph_;
  std::vector<std::shared_ptr<const Plugin>> plugins_;
  LayoutTable layouts_;
};

TEST_F(OpenvinoKernel, AbsorbsItsWeights) {
  const Candidate candidate = propose(1);
  ASSERT_EQ(candidate.inputs.size(), 1U);
  ASSERT_EQ(candidate.absorbed.size(), 1U);
  EXPECT_EQ(graph_[candidate.absorbed[0]].name, "w");
  EXPECT_TRUE(candidate.is_measured_only());
  EXPECT_GT(candidate.optimistic_seconds, 0);
  EXPECT_GE(candidate.library_bytes, graph_[candidate.absorbed[0]].constant.bytes());
}

TEST_F(OpenvinoKernel, RunsForSeveralCallersAtOnce) {
  const Kernel kernel = propose(1).build(1);
  constexpr uint64_t kCallers = 4;
  std::vector<Run> expected;
  ThreadPool pool(1);
  for (uint64_t caller = 0; caller < kCallers; ++caller) {
    expected.push_back(make_run(caller));
    run(kernel, pool, expected.back());
  }
  std::vector<int> wrong(kCallers, 0);
  run_at_once(kCallers, [&](uint64_t caller) {
    ThreadPool own(1);
    Run mine = make_run(caller);
    for (int time = 0; time < 10; ++time) {
      std::fill(mine.output.begin(), mine.output.end(), 0.0F);
      run(kernel, own, mine);
      if (mine.output != expected[caller].output) ++wrong[caller];
    }
  });
  EXPECT_EQ(wrong, std::vector<int>(kCallers, 0));
}

double seconds_of(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// The processor time of all threads in `times` runs, divided by that of the calling thread.
double busy_threads(const std::function<void()>& body, int times) {
  body();
  const double process = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  const double thread = seconds_of(CLOCK_THREAD_CPUTIME_ID);
  for (int time = 0; time < times; ++time) body();
  return (seconds_of(CLOCK_PROCESS_CPUTIME_ID) - process) /
         (seconds_of(CLOCK_THREAD_CPUTIME_ID) - thread);
}

TEST_F(OpenvinoKernel, ForOneThreadUsesTheCallersOwn) {
  const Kernel kernel = propose(1).build(1);
  ThreadPool one(1);
  Run mine = make_run(1);
  EXPECT_LT(busy_threads([&] { run(kernel, one, mine); }, 30), 1.1);
}

TEST_F(OpenvinoKernel, ForTwoThreadsUsesTwo) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "there is one core";
  const Kernel kernel = propose(2).build(2);
  ThreadPool two(2);
  Run mine = make_run(1);
  // On a busy machine the other thread may not get a core for a while. But if it is never used, it
  // has no processor time after 30 s either.
  double most = 0;
  const double start = seconds_of(CLOCK_MONOTONIC);
  while (most < 1.3 && seconds_of(CLOCK_MONOTONIC) - start < 30) {
    most = std::max(most, busy_threads([&] { run(kernel, two, mine); }, 100));
  }
  EXPECT_GE(most, 1.3);
}

TEST_F(OpenvinoKernel, SharesTheHostsThreadRuntime) {
  const Kernel kernel = propose(2).build(2);
  std::set<std::string> libraries;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t path = line.find('/');
    const std::string file = path == std::string::npos ? "" : line.substr(path);
    if (file.find("/libtbb.so") != std::string::npos) libraries.insert(file);
  }
  EXPECT_EQ(libraries.size(), 1U) << testing::PrintToString(libraries);
}

TEST_F(OpenvinoKernel, IsNotBuiltOfWeightsThatAreGone) {
  Candidate candidate = propose(1);
  const tessera_candidate& abi = *candidate.abi;
  tessera_build_options options = {};
  options.struct_size = sizeof(options);
  options.threads = 1;
  tessera_kernel kernel = {};
  kernel.struct_size = sizeof(kernel);
  tessera_error error = {};
  error.struct_size = sizeof(error);
  EXPECT_EQ(abi.build(abi.self, &options, &kernel, &error), TESSERA_INTERNAL);
  EXPECT_NE(std::string(error.message).find("inputs, expected"), std::string::npos)
      << error.message;
}

}  // namespace
}  // namespace tessera
