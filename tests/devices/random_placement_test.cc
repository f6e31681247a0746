// Random graphs whose nodes run on random devices give the same bits as the interpreter, because
// all of them use the reference kernels. The fake devices find every access that nothing orders.

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "fake_plugin.h"
#include "graph/attributes_test.h"

namespace tessera {
namespace {

using Dims = std::vector<int64_t>;

class GraphMaker {
 public:
  GraphMaker(Dice& dice, const ops::Registry& registry) : dice_(dice), graph_(registry, 17) {
    const Dims dims = {dice.whole(1, 9), dice.whole(1, 40)};
    graph_.input("a", dice.tensor(dims));
    graph_.input("b", dice.tensor(dims));
    graph_.constant("c", dice.tensor(dims));
    known_ = {{"a", dims}, {"b", dims}, {"c", dims}};
  }

  RandomGraph grow(int nodes) {
    for (int index = 0; index < nodes; ++index) add_node();
    graph_.builder.output(known_.back().first);
    for (const auto& [name, dims] : known_) {
      if (name[0] == 'v' && name != known_.back().first && dice_.one_in(6)) {
        graph_.builder.output(name);
      }
    }
    return std::move(graph_);
  }

 private:
  using Known = std::pair<std::string, Dims>;

  const Known& any() {
    const auto count = static_cast<int64_t>(known_.size());
    return known_[static_cast<size_t>(dice_.whole(std::max<int64_t>(0, count - 6), count - 1))];
  }

  void add_node() {
    const Known first = any();
    const std::string name = "v" + std::to_string(made_);
    const std::string node = "n" + std::to_string(made_++);
    switch (dice_.whole(0, 4)) {
      case 0:
      case 1: {
        const auto op = dice_.pick<std::string>({"Relu", "Neg", "Abs", "Sigmoid", "Floor"});
        graph_.builder.node(node, op, {first.first}, {name});
        break;
      }
      case 2:
        graph_.builder.node(node, "Softmax", {first.first}, {name}, attributes_of({{"axis", 1}}));
        break;
      case 3: {
        // Every value has the same sizes but for those of Concat.
        std::vector<Known> fitting;
        for (const Known& known : known_) {
          if (known.second == first.second) fitting.push_back(known);
        }
        const auto op = dice_.pick<std::string>({"Add", "Mul", "Sub", "Max"});
        graph_.builder.node(node, op, {first.first, dice_.pick(fitting).first}, {name});
        break;
      }
      default: {
        if (first.second[0] > 30) return add_node();
        graph_.builder.node(node, "Concat", {first.first, first.first}, {name},
                            attributes_of({{"axis", 0}}));
        known_.emplace_back(name, Dims{2 * first.second[0], first.second[1]});
        return;
      }
    }
    known_.emplace_back(name, first.second);
  }

  Dice& dice_;
  RandomGraph graph_;
  std::vector<Known> known_;
  int made_ = 0;
};

// Puts half of the inputs and outputs into memory of a device.
void exchange_on_devices(Dice& dice, Graph& graph) {
  for (const std::vector<ValueId>* ids : {&graph.inputs, &graph.outputs}) {
    for (const ValueId id : *ids) {
      graph[id].io_device = dice.pick<std::string>({"", "", "fake", "fake:1"});
    }
  }
}

// How often each value is copied to each device in a run.
int most_crossings(const ExecutionPlan& plan) {
  std::map<std::pair<ValueId, DeviceId>, int> crossings;
  int most = 0;
  for (const ExecutionStep& step : plan.steps) {
    if (step.kind != ExecutionStep::Kind::Convert) continue;
    const PlanBuffer& from = plan.buffers[static_cast<size_t>(step.inputs[0])];
    const PlanBuffer& to = plan.buffers[static_cast<size_t>(step.outputs[0].buffer)];
    if (from.device == to.device) continue;
    most = std::max(most, ++crossings[{to.value, to.device}]);
  }
  return most;
}

class RandomPlacement : public FakeDevices, public testing::WithParamInterface<int> {
 protected:
  RandomPlacement() : FakeDevices(GetParam()) {}
};

// 1,000 graphs with each kind of peer copy.
TEST_P(RandomPlacement, GivesTheBitsOfTheInterpreter) {
  int waits = 0;
  int devices = 0;
  double worst_arena = 1;
  for (uint64_t seed = 1; seed <= 1000 && !HasFailure(); ++seed) {
    fake_.configure("devices=2,peer=" + std::to_string(GetParam()) +
                    (seed % 4 == 0 ? ",delay_us=20" : "") + ",seed=" + std::to_string(seed));
    Dice dice(seed);
    const RandomGraph made = GraphMaker(dice, registry_).grow(static_cast<int>(dice.whole(3, 25)));
    Graph graph = typed(made);
    exchange_on_devices(dice, graph);
    std::map<std::string, Where> where;
    for (const Node& node : graph.nodes) {
      where[node.name] = dice.pick<Where>({Where::Host, Where::First, Where::Second});
    }
    const std::vector<Tensor> inputs = inputs_of(graph, made);
    PackStore packs;
    BuiltPlan built = build(graph, where, packs);
    const ExecutionPlan& plan = built.plan;
    ASSERT_EQ(explain_violation(plan), "") << seed;
    ASSERT_EQ(explain_race(plan), "") << seed;
    EXPECT_LE(most_crossings(plan), 1) << seed;
    devices += uses_devices(plan) ? 1 : 0;
    waits += static_cast<int>(plan.last_waits.size());
    for (const ExecutionStep& step : plan.steps) waits += static_cast<int>(step.waits.size());
    for (const ArenaSize& arena : plan.device_arenas) {
      if (arena.bytes == 0) continue;
      worst_arena = std::max(worst_arena, static_cast<double>(arena.bytes) /
                                              static_cast<double>(arena.lower_bound_bytes));
    }
    const std::vector<Tensor> given = placed(built, inputs);
    PlanRunner runner(std::move(built), 1);
    const std::vector<Tensor> wanted = expected(graph, inputs);
    const std::string name = "seed " + std::to_string(seed);
    expect_equal(wanted, runner.run(given), name);
    expect_equal(wanted, runner.run(given), name + ", second run");
    for (size_t index = 0; index < given.size(); ++index) {
      runner.io_binding().bind_input(index, given[index]);
    }
    runner.run_bound();
    expect_equal(inputs, given, name + ", inputs afterwards");
    ASSERT_EQ(fake_.violations(), "") << name;
  }
  const fake_counters counters = fake_.counters();
  EXPECT_EQ(counters.live_allocations, 0);
  EXPECT_EQ(counters.live_queues, 0);
  EXPECT_EQ(counters.live_events, 0);
  EXPECT_GT(devices, 900);
  EXPECT_GT(waits, 2000);
  EXPECT_LE(worst_arena, 1.02);
  std::cout << waits << " waits; the largest arena is " << worst_arena
            << " times its lower bound\n";
}

INSTANTIATE_TEST_SUITE_P(PeerCopies, RandomPlacement,
                         testing::Values(int{FAKE_NO_PEER_COPIES}, int{FAKE_PEER_COPIES}));

}  // namespace
}  // namespace tessera
