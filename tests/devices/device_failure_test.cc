// Devices that fail, are lost, have too little memory, or belong to the parent process.
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/errors/error_test.h"
#include "base/matchers_test.h"
#include "fake_plugin.h"
#include "graph/attributes_test.h"

namespace tessera {
namespace {

Attributes concat_along(int64_t axis) { return attributes_of({{"axis", axis}}); }

class DeviceFailure : public FakeDevices {
 protected:
  DeviceFailure() : made_(small_graph()), graph_(typed(made_)), inputs_(inputs_of(graph_, made_)) {
    where_ = {{"n0", Where::First}, {"n1", Where::Second}, {"n2", Where::Host},
              {"n3", Where::First}, {"n4", Where::Second}, {"n5", Where::First}};
  }

  RandomGraph small_graph() const {
    RandomGraph made(registry_, 17);
    Dice dice(3);
    made.input("x", dice.tensor({4, 5}));
    made.constant("w", dice.tensor({4, 5}));
    made.node("n0", "Add", {"x", "w"}, {"v0"});
    made.node("n1", "Neg", {"v0"}, {"v1"});
    made.node("n2", "Abs", {"v1"}, {"v2"});
    made.node("n3", "Mul", {"v2", "v0"}, {"v3"});
    made.node("n4", "Sub", {"v3", "w"}, {"v4"});
    made.node("n5", "Relu", {"v4"}, {"v5"});
    return made.ending_in("v5");
  }

  void expect_nothing_left(const std::string& when) const {
    const fake_counters counters = fake_.counters();
    EXPECT_EQ(counters.live_allocations, 0) << when;
    EXPECT_EQ(counters.live_queues, 0) << when;
    EXPECT_EQ(counters.live_events, 0) << when;
  }

  RandomGraph made_;
  Graph graph_;
  std::vector<Tensor> inputs_;
  std::map<std::string, Where> where_;
};

// Every call of the device fails in turn: while the plan is built, or in a run.
TEST_F(DeviceFailure, AtEveryCallIsAnErrorAndLeavesNothing) {
  const std::vector<Tensor> wanted = expected(graph_, inputs_);
  int failed_in_build = 0;
  int failed_in_run = 0;
  for (const char* mode :
       {"fail_mode=1", "fail_mode=1,fail_later=1", "fail_mode=2", "fail_mode=0"}) {
    for (int call = 1; call < 1000; ++call) {
      const std::string when = std::string(mode) + ", call " + std::to_string(call);
      fake_.configure("devices=2,peer=1,fail_at=" + std::to_string(call) + "," + mode);
      fake_.reset();
      bool is_over = false;
      {
        PackStore packs;
        std::unique_ptr<PlanRunner> runner;
        try {
          runner = std::make_unique<PlanRunner>(build(graph_, where_, packs), 1);
        } catch (const Error& error) {
          ++failed_in_build;
          EXPECT_THAT(error.kind(), AnyOf(ErrorKind::DeviceFailed, ErrorKind::OutOfMemory,
                                          ErrorKind::Unsupported))
              << when << ": " << error.what();
          EXPECT_THAT(error.what(), HasSubstr("fake")) << when;
        }
        for (int run = 0; runner != nullptr && run < 3; ++run) {
          try {
            expect_equal(wanted, runner->run(inputs_), when);
          } catch (const Error& error) {
            ++failed_in_run;
            EXPECT_THAT(error.kind(), AnyOf(ErrorKind::DeviceFailed, ErrorKind::OutOfMemory))
                << when << ": " << error.what();
            if (runner->explain_unusable().empty()) continue;
            EXPECT_THAT(error.what(), HasSubstr("fake")) << when;
            // Later runs say so, and do not touch the device.
            EXPECT_THROW(runner->run(inputs_), Error) << when;
            break;
          }
        }
        is_over = fake_.counters().failures == 0;
      }
      expect_nothing_left(when);
      if (is_over) break;
      ASSERT_LT(call, 999);
    }
  }
  EXPECT_GT(failed_in_build, 20);
  EXPECT_GT(failed_in_run, 60);
}

TEST_F(DeviceFailure, ALateOneNamesTheStepsThatWereEnqueued) {
  PackStore packs;
  const RandomGraph made = chain(4);
  const Graph graph = typed(made);
  PlanRunner runner(build(graph, all_on(graph, Where::First), packs), 1);
  const std::vector<Tensor> inputs = inputs_of(graph, made);
  runner.run(inputs);
  // The third kernel of the run, after the copy of the input.
  fake_.configure("devices=2,peer=1,fail_at=4,fail_mode=1,fail_later=1");
  fake_.reset();
  EXPECT_THAT(error_of(ErrorKind::DeviceFailed, [&] { runner.run(inputs); }),
              AllOf(HasSubstr("5 steps before it from"), HasSubstr("device 'fake'")));
  EXPECT_EQ(runner.explain_unusable(), "");
  fake_.configure("devices=2,peer=1");
  expect_equal(expected(graph, inputs), runner.run(inputs), "after a failure");
}

TEST_F(DeviceFailure, WithBulksOfOneItNamesTheStep) {
  PackStore packs;
  const RandomGraph made = chain(4);
  const Graph graph = typed(made);
  PlanRunner runner(build(graph, all_on(graph, Where::First), packs), 1);
  runner.set_max_bulk_steps(1);
  const std::vector<Tensor> inputs = inputs_of(graph, made);
  for (int kernel = 0; kernel < 4; ++kernel) {
    // Each step is two calls: it is enqueued, and the host waits.
    fake_.configure("devices=2,peer=1,fail_at=" + std::to_string(2 * kernel + 3) +
                    ",fail_mode=1,fail_later=1");
    fake_.reset();
    try {
      runner.run(inputs);
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.where(),
                "node 'n" + std::to_string(kernel) + (kernel % 2 == 0 ? "' (Neg)" : "' (Abs)"));
    }
  }
}

TEST_F(DeviceFailure, ALostDeviceIsNotUsedByNewPlans) {
  PackStore packs;
  PlanRunner runner(build(graph_, where_, packs), 1);
  fake_.configure("devices=2,peer=1,fail_at=5,fail_mode=2");
  EXPECT_THROW(runner.run(inputs_), Error);
  EXPECT_THAT(runner.explain_unusable(), HasSubstr("fake"));
  // Without pins, the nodes run on the remaining backends.
  PlanRunner other(build(graph_, {}, packs), 1);
  expect_equal(expected(graph_, inputs_), other.run(inputs_), "after a loss");
  fake_.configure("devices=2,peer=1");
}

TEST_F(DeviceFailure, TooLittleMemoryGivesASmallerPlacementFirst) {
  // The plug-in reads its memory when it is opened.
  fake_.configure("devices=2,peer=1,memory_bytes=4096");
  plugins_[0] = Plugin::open(TESSERA_FAKE_PLUGIN, std::make_shared<HostServices>());
  RandomGraph made(registry_, 17);
  Dice dice(5);
  made.input("x", dice.tensor({64, 64}));
  made.node("n0", "Neg", {"x"}, {"v0"});
  made.node("n1", "Abs", {"v0"}, {"v1"});
  made.builder.output("v1");
  const Graph graph = typed(made);
  const std::vector<Tensor> inputs = inputs_of(graph, made);
  PackStore packs;
  BuiltPlan built = build(graph, {}, packs);
  EXPECT_FALSE(uses_devices(built.plan));
  PlanRunner runner(std::move(built), 1);
  expect_equal(expected(graph, inputs), runner.run(inputs), "on the host");
  EXPECT_THAT(error_of([&] { build(graph, all_on(graph, Where::First), packs); }),
              HasSubstr("fake"));
}

// Each value fits, but all of them together are more than what the device allocates at once.
TEST_F(DeviceFailure, TooLargeAnArenaGivesASmallerPlacementFirst) {
  fake_.configure("devices=2,peer=1,max_allocation_bytes=8192");
  plugins_[0] = Plugin::open(TESSERA_FAKE_PLUGIN, std::make_shared<HostServices>());
  RandomGraph made(registry_, 17);
  Dice dice(6);
  made.input("x", dice.tensor({32, 32}));
  made.node("n0", "Neg", {"x"}, {"v0"});
  made.node("n1", "Abs", {"v0"}, {"v1"});
  made.node("n2", "Add", {"v0", "v1"}, {"v2"});
  made.node("n3", "Concat", {"v0", "v1", "v2"}, {"v3"}, concat_along(0));
  made.builder.output("v3");
  const Graph graph = typed(made);
  const std::vector<Tensor> inputs = inputs_of(graph, made);
  PackStore packs;
  BuiltPlan built = build(graph, {}, packs);
  for (const ArenaSize& arena : built.plan.device_arenas) EXPECT_LE(arena.bytes, 8192);
  EXPECT_TRUE(uses_devices(built.plan));
  PlanRunner runner(std::move(built), 1);
  expect_equal(expected(graph, inputs), runner.run(inputs), "a part on the device");
}

TEST_F(DeviceFailure, AForkedChildRunsOnTheHost) {
  PackStore packs;
  PlanRunner runner(build(graph_, where_, packs), 1);
  const std::vector<Tensor> wanted = expected(graph_, inputs_);
  expect_equal(wanted, runner.run(inputs_), "in the parent");
  const pid_t child = ::fork();
  if (child == 0) {
    int wrong = 0;
    if (runner.explain_unusable().find("fork") == std::string::npos) wrong |= 1;
    try {
      runner.run(inputs_);
      wrong |= 2;
    } catch (const Error& error) {
      if (std::string(error.what()).find("fork") == std::string::npos) wrong |= 4;
    }
    PackStore own;
    BuiltPlan built = build(graph_, {}, own);
    if (uses_devices(built.plan)) wrong |= 8;
    PlanRunner other(std::move(built), 1);
    expect_equal(wanted, other.run(inputs_), "in the child");
    if (HasFailure()) wrong |= 16;
    ::_exit(wrong);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  expect_equal(wanted, runner.run(inputs_), "in the parent afterwards");
}

}  // namespace
}  // namespace tessera
