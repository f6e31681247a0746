#include "plan/execution_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr DeviceId kFirst{1};
constexpr DeviceId kSecond{2};

// A plan of three devices. Its values do not matter: only which bytes steps read and write.
class TestPlan {
 public:
  TestPlan() { plan.device_arenas = {{.bytes = 4096}, {.bytes = 4096}}; }

  int buffer(DeviceId device, int64_t offset, int64_t bytes = 64,
             PlanBuffer::Kind kind = PlanBuffer::Kind::Arena) {
    plan.buffers.push_back({.kind = kind, .device = device, .bytes = bytes, .offset = offset});
    return static_cast<int>(plan.buffers.size()) - 1;
  }
  void step(DeviceId device, std::vector<int> inputs, int output) {
    ExecutionStep made;
    made.device = device;
    made.inputs = std::move(inputs);
    made.outputs = {{output, TESSERA_REQUEST_WRITE}};
    plan.steps.push_back(std::move(made));
  }

  ExecutionPlan plan;
};

TEST(AddWaits, AChainThroughADeviceWaitsOnceForItsResult) {
  TestPlan test;
  const int input = test.buffer(kHostDevice, 0, 64, PlanBuffer::Kind::Input);
  const int on_device = test.buffer(kFirst, 0);
  const int result_on_device = test.buffer(kFirst, 64);
  const int result = test.buffer(kHostDevice, 0, 64, PlanBuffer::Kind::Output);
  test.step(kFirst, {input}, on_device);
  test.step(kFirst, {on_device}, result_on_device);
  test.step(kFirst, {result_on_device}, result);
  add_waits(test.plan);
  for (const ExecutionStep& step : test.plan.steps) EXPECT_THAT(step.waits, IsEmpty());
  EXPECT_THAT(test.plan.last_waits, ElementsAre(2));
  EXPECT_EQ(explain_race(test.plan), "");
}

TEST(AddWaits, TheHostWaitsBeforeItOverwritesWhatACopyReads) {
  TestPlan test;
  const int made = test.buffer(kHostDevice, 0);
  const int on_device = test.buffer(kFirst, 0);
  const int reuses = test.buffer(kHostDevice, 32);
  test.step(kHostDevice, {}, made);
  test.step(kFirst, {made}, on_device);
  test.step(kHostDevice, {}, reuses);
  add_waits(test.plan);
  EXPECT_THAT(test.plan.steps[2].waits, ElementsAre(1));
  // That wait has brought all that the end needs.
  EXPECT_THAT(test.plan.last_waits, IsEmpty());
  test.plan.steps[2].waits.clear();
  EXPECT_THAT(explain_race(test.plan), HasSubstr("step 2 writes memory that step 1 reads"));
}

TEST(AddWaits, AWaitForTheSecondDeviceImpliesTheFirst) {
  TestPlan test;
  const int on_first = test.buffer(kFirst, 0);
  const int on_second = test.buffer(kSecond, 0);
  const int on_host = test.buffer(kHostDevice, 0);
  const int from_first = test.buffer(kHostDevice, 64);
  test.step(kFirst, {}, on_first);
  test.step(kFirst, {on_first}, from_first);
  test.step(kSecond, {on_first}, on_second);
  test.step(kSecond, {on_second}, on_host);
  test.step(kHostDevice, {on_host, from_first}, test.buffer(kHostDevice, 128));
  add_waits(test.plan);
  EXPECT_THAT(test.plan.steps[2].waits, ElementsAre(0));
  // The second device waited for step 0 only, so step 1 needs a wait of its own.
  EXPECT_THAT(test.plan.steps[4].waits, ElementsAre(1, 3));
  EXPECT_EQ(explain_race(test.plan), "");
}

TEST(AddWaits, StepsOfTheHostAloneNeedNone) {
  TestPlan test;
  test.step(kHostDevice, {}, test.buffer(kHostDevice, 0));
  test.plan.last_waits = {};
  add_waits(test.plan);
  EXPECT_THAT(test.plan.steps[0].waits, IsEmpty());
  EXPECT_FALSE(uses_devices(test.plan));
}

ExecutionPlan random_plan(uint32_t seed) {
  std::mt19937 random(seed);
  const auto draw = [&](int count) {
    return std::uniform_int_distribution<int>(0, count - 1)(random);
  };
  TestPlan test;
  std::vector<std::vector<int>> buffers(3);
  for (int device = 0; device < 3; ++device) {
    for (int count = 0; count < 8; ++count) {
      buffers[static_cast<size_t>(device)].push_back(
          test.buffer(DeviceId{device}, int64_t{64} * draw(12), int64_t{64} * (1 + draw(3))));
    }
  }
  const auto any_of = [&](int device) {
    return buffers[static_cast<size_t>(device)][static_cast<size_t>(draw(8))];
  };
  const int steps = 10 + draw(40);
  for (int index = 0; index < steps; ++index) {
    const int device = draw(3);
    const int other = draw(3);
    if (draw(3) > 0) {
      test.step(DeviceId{device}, {any_of(device), any_of(device)}, any_of(device));
    } else if (device != 0) {
      // A copy to the device from anywhere, or from it to the host.
      const bool is_to_host = draw(2) == 0;
      test.step(DeviceId{device}, {any_of(is_to_host ? device : other)},
                any_of(is_to_host ? 0 : device));
    }
  }
  return test.plan;
}

// With vector clocks, explain_race() finds every wait necessary that add_waits() made.
TEST(AddWaits, InRandomPlansEveryWaitIsEnoughAndNecessary) {
  int removed = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    ExecutionPlan plan = random_plan(seed);
    add_waits(plan);
    ASSERT_EQ(explain_race(plan), "") << seed;
    for (size_t index = 0; index <= plan.steps.size(); ++index) {
      std::vector<int>& waits =
          index < plan.steps.size() ? plan.steps[index].waits : plan.last_waits;
      for (size_t wait = 0; wait < waits.size(); ++wait) {
        const std::vector<int> all = waits;
        waits.erase(waits.begin() + static_cast<ptrdiff_t>(wait));
        EXPECT_NE(explain_race(plan), "") << "seed " << seed << ", step " << index;
        waits = all;
        ++removed;
      }
    }
  }
  EXPECT_GT(removed, 1000);
}

TEST(ExplainRace, AWaitForALaterStepIsNone) {
  TestPlan test;
  const int on_device = test.buffer(kFirst, 0);
  test.step(kFirst, {}, on_device);
  test.plan.steps[0].waits = {0};
  EXPECT_THAT(explain_race(test.plan), HasSubstr("waits for no earlier step"));
}

}  // namespace
}  // namespace tessera
