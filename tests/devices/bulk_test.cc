// Small steps of a device: how often the host waits, and how long it takes.

#include <chrono>
#include <iostream>
#include <string>
#include <vector>

#include "fake_plugin.h"

namespace tessera {
namespace {

constexpr int kSteps = 1100;

using Bulk = FakeDevices;

TEST_F(Bulk, OneSynchronisationForAThousandSteps) {
  const RandomGraph made = chain(kSteps);
  const Graph graph = typed(made);
  const std::vector<Tensor> inputs = inputs_of(graph, made);
  const std::vector<Tensor> wanted = expected(graph, inputs);
  PackStore packs;
  PlanRunner runner(build(graph, all_on(graph, Where::First), packs), 1);
  struct Row {
    int bulk;
    int64_t synchronisations;
  };
  // A copy to the device and one from it are steps of the same queue.
  for (const Row& row : {Row{0, 1}, Row{1, kSteps + 2}, Row{8, (kSteps + 2 + 7) / 8},
                         Row{64, (kSteps + 2 + 63) / 64}}) {
    runner.set_max_bulk_steps(row.bulk);
    fake_.reset();
    const auto start = std::chrono::steady_clock::now();
    const std::vector<Tensor> found = runner.run(inputs);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const fake_counters counters = fake_.counters(0);
    EXPECT_EQ(counters.kernels, kSteps) << row.bulk;
    EXPECT_EQ(counters.copies_to_device, 1) << row.bulk;
    EXPECT_EQ(counters.copies_to_host, 1) << row.bulk;
    // The last bulk may be full; then the end of the run has nothing left to wait for, but asks.
    EXPECT_GE(counters.synchronisations, row.synchronisations) << row.bulk;
    EXPECT_LE(counters.synchronisations, row.synchronisations + 1) << row.bulk;
    expect_equal(wanted, found, "bulk of " + std::to_string(row.bulk));
    std::cout << "bulk of " << row.bulk << ": " << 1e6 * seconds << " us, "
              << counters.synchronisations << " synchronisations\n";
  }
  EXPECT_EQ(fake_.violations(), "");
}

TEST_F(Bulk, TheHostsOwnTimeForAStepIsShort) {
  const RandomGraph made = chain(kSteps);
  const Graph graph = typed(made);
  PackStore packs;
  PlanRunner runner(build(graph, all_on(graph, Where::First), packs), 1);
  const double nanoseconds = runner.measure_dispatch_ns();
  std::cout << nanoseconds << " ns a step, without the plug-in's function\n";
  EXPECT_GT(nanoseconds, 0);
  EXPECT_LT(nanoseconds, 200);
}

TEST_F(Bulk, AStepOfTheHostInBetweenIsWaitedForOnce) {
  const RandomGraph made = chain(9);
  const Graph graph = typed(made);
  std::map<std::string, Where> where = all_on(graph, Where::First);
  where["n4"] = Where::Host;
  const std::vector<Tensor> inputs = inputs_of(graph, made);
  PackStore packs;
  PlanRunner runner(build(graph, where, packs), 1);
  fake_.reset();
  expect_equal(expected(graph, inputs), runner.run(inputs), "one step on the host");
  EXPECT_EQ(fake_.counters(0).synchronisations, 2);
  EXPECT_EQ(fake_.counters(0).copies_to_host, 2);
  EXPECT_EQ(fake_.violations(), "");
}

TEST_F(Bulk, TwoDevicesAreOrderedByEventsWithoutTheHost) {
  const RandomGraph made = chain(6);
  const Graph graph = typed(made);
  std::map<std::string, Where> where = all_on(graph, Where::First);
  where["n3"] = where["n4"] = where["n5"] = Where::Second;
  const std::vector<Tensor> inputs = inputs_of(graph, made);
  PackStore packs;
  PlanRunner runner(build(graph, where, packs), 1);
  fake_.reset();
  expect_equal(expected(graph, inputs), runner.run(inputs), "two devices");
  // Only the end of the run waits.
  EXPECT_EQ(fake_.counters(-1).synchronisations, 1);
  EXPECT_EQ(fake_.counters(-1).events_waited, 1);
  EXPECT_EQ(fake_.counters(-1).copies_from_peer, 1);
  EXPECT_EQ(fake_.violations(), "");
}

TEST_F(Bulk, AWatchedRunWaitsAfterEachStep) {
  const RandomGraph made = chain(5);
  const Graph graph = typed(made);
  const std::vector<Tensor> inputs = inputs_of(graph, made);
  PackStore packs;
  PlanRunner runner(build(graph, all_on(graph, Where::First), packs), 1);
  fake_.configure("devices=2,peer=1,kernel_ns=300000");
  fake_.reset();
  int watched = 0;
  runner.run(inputs, [&](const PlanEvent& event) {
    const bool is_kernel =
        runner.built().plan.steps[event.step].kind == ExecutionStep::Kind::Kernel;
    if (!is_kernel) return;
    ++watched;
    EXPECT_GE(event.duration.count(), 300000);
  });
  EXPECT_EQ(watched, 5);
}

}  // namespace
}  // namespace tessera
