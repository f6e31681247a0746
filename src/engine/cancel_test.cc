// Runs that are stopped early, and the runs after them.

#include <atomic>
#include <chrono>
#include <limits>
#include <thread>

#include "base/matchers_test.h"
#include "engine/shared_views_test.h"

namespace tessera {
namespace {

using testing_plugins::Buffer;
using testing_plugins::SharedViews;

class Runs : public SharedViews {
 protected:
  // x -> Relu -> ... of `count` steps, each of which first calls `on_step`.
  std::unique_ptr<PlanRunner> chain(int count, std::function<void()> on_step,
                                    RunnerOptions options = {.threads = 1}) {
    input("x", {3});
    for (int step = 0; step < count; ++step) {
      relu(step == 0 ? "x" : "v" + std::to_string(step), "v" + std::to_string(step + 1));
    }
    builder_.output("v" + std::to_string(count));
    BuiltPlan built = build({});
    for (auto& kernel : built.kernels) {
      auto inner = kernel;
      plugin::Candidate candidate;
      candidate.inputs.resize(1);
      candidate.outputs.resize(1);
      candidate.build = [inner, on_step](const plugin::BuildOptions&) {
        return plugin::make_kernel([inner, on_step](plugin::RunContext& context,
                                                    std::span<const Buffer> inputs,
                                                    std::span<const Buffer> outputs) {
          on_step();
          tessera_error error = plugin::detail::empty_error();
          inner->abi().run(inner->abi().self, context.handle(), inputs.data(), outputs.data(),
                           &error);
        });
      };
      plugin::detail::CandidateAdapter held(std::move(candidate));
      tessera_build_options wanted = {.struct_size = sizeof(tessera_build_options), .threads = 1};
      tessera_kernel abi = {};
      tessera_error error = plugin::detail::empty_error();
      EXPECT_EQ(held.abi.build(held.abi.self, &wanted, &abi, &error), TESSERA_OK);
      kernel = std::make_shared<const tessera::Kernel>(abi, "test");
    }
    return std::make_unique<PlanRunner>(std::move(built), std::move(options));
  }

  std::vector<float> run_whole(PlanRunner& runner) { return values(runner.run(inputs_)[0]); }
};

// For tests that need several instances.
class OneRun : public Runs {
 public:
  using Runs::chain;
  using Runs::inputs_;

 private:
  void TestBody() override {}
};

TEST_F(Runs, EndBeforeTheNextStepWhenCancelled) {
  int steps = 0;
  PlanRunner* running = nullptr;
  const auto runner = chain(5, [&] {
    if (++steps == 2) running->cancel();
  });
  running = runner.get();
  const std::string text = error_of([&] { runner->run(inputs_); });
  EXPECT_THAT(text, HasSubstr("Cancelled: node 'make_v3' (Relu)"));
  EXPECT_EQ(steps, 2);
  // The next run is complete: a cancellation has no effect on runs that start after it.
  runner->cancel();
  EXPECT_THAT(run_whole(*runner), ElementsAre(105, 106, 107));
}

TEST_F(Runs, AreCancelledByAnotherThread) {
  std::atomic<bool> has_begun = false;
  std::atomic<bool> should_continue = false;
  const auto runner = chain(3, [&] {
    has_begun = true;
    while (!should_continue) std::this_thread::yield();
  });
  std::thread other([&] {
    while (!has_begun) std::this_thread::yield();
    runner->cancel();
    should_continue = true;
  });
  EXPECT_THAT(error_of([&] { runner->run(inputs_); }), HasSubstr("the run was cancelled"));
  other.join();
  EXPECT_THAT(run_whole(*runner), ElementsAre(103, 104, 105));
}

TEST_F(Runs, EndWhenTheirTimeIsUp) {
  std::chrono::milliseconds pause(0);
  const auto runner = chain(4, [&] { std::this_thread::sleep_for(pause); });
  runner->set_time_limit(std::chrono::milliseconds(30));
  EXPECT_THAT(run_whole(*runner), ElementsAre(104, 105, 106));
  pause = std::chrono::milliseconds(40);
  const std::string text = error_of([&] { runner->run(inputs_); });
  EXPECT_THAT(text, HasSubstr("Cancelled: node 'make_v2' (Relu)"));
  EXPECT_THAT(text, HasSubstr("within 0.03"));
  runner->set_time_limit(std::chrono::nanoseconds(0));
  EXPECT_THAT(run_whole(*runner), ElementsAre(104, 105, 106));
}

bool makes_denormals() {
  volatile float least = std::numeric_limits<float>::min();
  volatile float half = least * 0.5F;
  return half != 0.0F;
}

TEST_F(Runs, FlushDenormalsUnlessTheyKeepThem) {
  for (const Denormals denormals : {Denormals::Flush, Denormals::Keep}) {
    OneRun one;
    bool made = false;
    const auto runner =
        one.chain(1, [&] { made = makes_denormals(); }, {.threads = 2, .denormals = denormals});
    runner->run(one.inputs_);
    EXPECT_EQ(made, denormals == Denormals::Keep);
    EXPECT_TRUE(makes_denormals());
  }
}

TEST_F(Runs, MeasureWhatAStepTakesBesideItsKernel) {
  const auto runner = chain(50, [] {});
  const double dispatch_ns = runner->measure_dispatch_ns();
  EXPECT_GT(dispatch_ns, 0);
  EXPECT_LT(dispatch_ns, 10'000);
  EXPECT_THAT(run_whole(*runner), ElementsAre(150, 151, 152));
}

TEST_F(Runs, NameTheLargestBuffersWhereMemoryIsShort) {
  input("x", {1, 1});
  relu("x", "small");
  relu("small", "large");
  relu("large", "y");
  builder_.output("y");
  BuiltPlan built = build({});
  built.plan.arena_bytes = int64_t{1} << 55;
  for (PlanBuffer& buffer : built.plan.buffers) {
    if (built.graph[buffer.value].name == "large") buffer.bytes = int64_t{1} << 54;
  }
  const std::string text = error_of([&] { PlanRunner(std::move(built), 1); });
  EXPECT_THAT(text, HasSubstr("OutOfMemory: intermediate values"));
  EXPECT_THAT(text, HasSubstr("found a need of 36028797018963972 bytes"));
  EXPECT_THAT(text, HasSubstr("the largest: 'large' with 18014398509481984 bytes"));
}

}  // namespace
}  // namespace tessera
