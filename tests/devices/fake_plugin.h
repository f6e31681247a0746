// The fake devices of tests/backends/fake, and plans over them and the host.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend/plugin.h"
#include "compile/build_plan.h"
#include "engine/interpreter.h"
#include "engine/plan_runner.h"
#include "fake_control.h"
#include "graph/graph.h"
#include "ops/registry.h"
#include "random_graph.h"

namespace tessera {

// The control functions of the plug-in that the host has opened.
class FakeControl {
 public:
  FakeControl();

  void configure(const std::string& settings) const;
  fake_counters counters(int device = -1) const;
  void reset() const { reset_(); }
  // All violations that were found, or "".
  std::string violations() const;

 private:
  decltype(&fake_configure_text) configure_;
  decltype(&fake_get_counters) get_counters_;
  decltype(&fake_reset_counters) reset_;
  decltype(&fake_violation) violation_;
};

// Where a node runs.
enum class Where { Host, First, Second };

class FakeDevices : public testing::Test {
 protected:
  // Opens the plug-in with two devices; `peer` sets peer copies.
  explicit FakeDevices(int peer = FAKE_PEER_COPIES);

  Graph typed(const RandomGraph& made) const;
  // A plan in which each node runs where `where` says, by name; others run anywhere.
  BuiltPlan build(const Graph& graph, const std::map<std::string, Where>& where,
                  PackStore& packs) const;
  static std::vector<Tensor> inputs_of(const Graph& graph, const RandomGraph& made);
  // Copies of `inputs`, each in the memory in which `built` expects it.
  static std::vector<Tensor> placed(const BuiltPlan& built, const std::vector<Tensor>& inputs);
  // A tensor in memory of a device of `built`, with the elements of `tensor`.
  static Tensor on_device(const BuiltPlan& built, const std::string& device, const Tensor& tensor);
  std::vector<Tensor> expected(const Graph& graph, const std::vector<Tensor>& inputs) const;
  // Whether all elements are equal to the bit.
  static void expect_equal(const std::vector<Tensor>& expected, const std::vector<Tensor>& found,
                           const std::string& where);

  // x -> Relu or Neg, `length` times.
  RandomGraph chain(int length) const;
  // All nodes of `graph` on `where`.
  static std::map<std::string, Where> all_on(const Graph& graph, Where where);

  ops::Registry registry_;
  mutable ThreadPool pool_;
  FakeControl fake_;
  std::vector<std::shared_ptr<const Plugin>> plugins_;
};

}  // namespace tessera
