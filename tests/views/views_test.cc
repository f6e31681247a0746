// Random graphs of reshapes, splits, slices, concats and sums between kernels: plans that share
// memory compute the same as the interpreter, on any backend.

#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "backend/catalog/catalog.h"
#include "backend/host.h"
#include "backend/plugin.h"
#include "base/errors/log.h"
#include "base/tensor/tensors_test.h"
#include "candidate_check.h"
#include "compile/build_plan.h"
#include "engine/interpreter.h"
#include "engine/plan_runner.h"
#include "infer/infer.h"
#include "tessera/error.h"

namespace tessera {
namespace {

constexpr int kThreads = 2;
using Dims = std::vector<int64_t>;

// Builds a graph node by node; later nodes may read the values of earlier ones.
class GraphMaker {
 public:
  GraphMaker(Dice& dice, const ops::Registry& registry) : dice_(dice), graph_(registry, 17) {
    const Dims picture = {dice.one_in(3) ? 2 : 1, dice.pick<int64_t>({3, 8, 16, 20, 32}),
                          dice.whole(2, 6), dice.whole(2, 6)};
    for (const char* name : {"a", "b"}) {
      graph_.input(name, dice.tensor(picture));
      add(name, picture);
    }
    if (dice.one_in(2)) {
      graph_.constant("fixed", dice.tensor(picture));
      add("fixed", picture);
    }
  }

  RandomGraph grow(int nodes) {
    while (made_ < nodes) add_node();
    for (const Known& value : known_) {
      const bool is_output = value.is_made && (value.readers == 0 || dice_.one_in(5));
      if (is_output) graph_.builder.output(value.name);
    }
    return std::move(graph_);
  }

 private:
  struct Known {
    std::string name;
    Dims dims;
    bool is_made = false;
    int readers = 0;
  };

  void add(const std::string& name, const Dims& dims, bool is_made = false) {
    known_.push_back({name, dims, is_made, 0});
  }

  // Prefers the newest values.
  Known& some() {
    const auto count = static_cast<int64_t>(known_.size());
    const int64_t oldest = dice_.one_in(3) ? 0 : std::max<int64_t>(0, count - 5);
    return known_[static_cast<size_t>(dice_.whole(oldest, count - 1))];
  }

  std::string constant(Tensor tensor) {
    const std::string name = "c" + std::to_string(++constants_);
    graph_.constant(name, std::move(tensor));
    return name;
  }

  void node(const std::string& op, const std::vector<std::string>& inputs,
            const std::vector<Dims>& outputs, Attributes attributes = {}) {
    for (Known& value : known_) {
      value.readers += static_cast<int>(std::count(inputs.begin(), inputs.end(), value.name));
    }
    std::vector<std::string> names;
    for (size_t index = 0; index < outputs.size(); ++index) {
      names.push_back("v" + std::to_string(made_) + "_" + std::to_string(index));
    }
    graph_.builder.node("n" + std::to_string(made_++), op, inputs, names, std::move(attributes));
    for (size_t index = 0; index < outputs.size(); ++index) add(names[index], outputs[index], true);
  }

  void add_node() {
    switch (dice_.whole(0, 9)) {
      case 0:
        return convolve();
      case 1:
        return apply_function();
      case 2:
      case 3:
        return sum();
      case 4:
        return split();
      case 5:
        return slice();
      case 6:
      case 7:
        return concat();
      case 8:
        return reshape();
      case 9:
        return pool();
      default:
        return;
    }
  }

  std::string some_name() {
    const Known& value = some();
    last_ = value.dims;
    return value.name;
  }

  void apply_function() {
    const std::string input = some_name();
    const std::string op = dice_.pick<std::string>({"Relu", "Abs", "Neg"});
    node(op, {input}, {last_});
  }

  void convolve() {
    const std::string input = some_name();
    if (last_.size() != 4) return;
    const int64_t channels = dice_.pick<int64_t>({4, 8, 16, 24, 32});
    const int64_t size = dice_.pick<int64_t>({1, 3});
    const int64_t pad = size / 2;
    const float scale = 1.0F / std::sqrt(static_cast<float>(last_[1] * size * size));
    const std::string weight =
        constant(dice_.tensor({channels, last_[1], size, size}, -scale, scale));
    Dims dims = last_;
    dims[1] = channels;
    node("Conv", {input, weight}, {dims}, attributes_of({{"pads", {pad, pad, pad, pad}}}));
  }

  void sum() {
    const std::string left = some_name();
    const Dims dims = last_;
    std::vector<std::string> others;
    for (const Known& value : known_) {
      if (value.dims == dims) others.push_back(value.name);
    }
    node("Add", {left, dice_.pick(others)}, {dims});
  }

  void split() {
    const std::string input = some_name();
    const int64_t axis = dice_.one_in(2) && last_.size() > 1
                             ? 1
                             : dice_.whole(0, static_cast<int64_t>(last_.size()) - 1);
    const int64_t length = last_[static_cast<size_t>(axis)];
    if (length < 2) return;
    const int64_t first = length > 16 && dice_.one_in(2) ? 16 : dice_.whole(1, length - 1);
    std::vector<Dims> parts(2, last_);
    parts[0][static_cast<size_t>(axis)] = first;
    parts[1][static_cast<size_t>(axis)] = length - first;
    node("Split", {input, constant(ints({first, length - first}))}, parts,
         attributes_of({{"axis", axis}}));
  }

  void slice() {
    const std::string input = some_name();
    const int64_t axis = dice_.whole(0, static_cast<int64_t>(last_.size()) - 1);
    int64_t& length = last_[static_cast<size_t>(axis)];
    const int64_t start = dice_.whole(0, length - 1);
    const int64_t step = dice_.one_in(3) ? 2 : 1;
    const std::vector<std::string> inputs = {input, constant(ints({start})),
                                             constant(ints({length})), constant(ints({axis})),
                                             constant(ints({step}))};
    length = (length - start + step - 1) / step;
    node("Slice", inputs, {last_});
  }

  void concat() {
    std::vector<std::string> inputs = {some_name()};
    Dims dims = last_;
    const auto axis = static_cast<size_t>(
        dice_.one_in(3) ? dice_.whole(0, static_cast<int64_t>(dims.size()) - 1)
                        : std::min<int64_t>(1, static_cast<int64_t>(dims.size()) - 1));
    for (size_t index = known_.size(); index-- > 0 && inputs.size() < 4;) {
      Dims fitting = known_[index].dims;
      if (fitting.size() != dims.size() || dice_.one_in(3)) continue;
      if (known_[index].name == inputs[0] && !dice_.one_in(8)) continue;
      const int64_t length = fitting[axis];
      fitting[axis] = dims[axis];
      if (fitting != dims || dims[axis] + length > 100) continue;
      dims[axis] += length;
      inputs.push_back(known_[index].name);
    }
    node("Concat", inputs, {dims}, attributes_of({{"axis", static_cast<int64_t>(axis)}}));
  }

  void reshape() {
    const std::string input = some_name();
    if (dice_.one_in(4)) return node("Identity", {input}, {last_});
    Dims dims = last_;
    if (dims.size() > 2 && dice_.one_in(2)) {
      dims[dims.size() - 2] *= dims.back();
      dims.pop_back();
    } else if (dims.size() < 4 && dims.back() % 2 == 0) {
      dims.back() /= 2;
      dims.push_back(2);
    }
    node("Reshape", {input, constant(ints(dims))}, {dims});
  }

  void pool() {
    const std::string input = some_name();
    if (last_.size() != 4 || last_[2] < 2 || last_[3] < 2) return;
    Dims dims = last_;
    --dims[2];
    --dims[3];
    node("MaxPool", {input}, {dims}, attributes_of({{"kernel_shape", {2, 2}}}));
  }

  Dice& dice_;
  RandomGraph graph_;
  std::vector<Known> known_;
  Dims last_;
  int made_ = 0;
  int constants_ = 0;
};

class Views : public testing::Test {
 protected:
  Views() : registry_(ops::make_registry()), pool_(kThreads) {
    for (const char* name : {"onednn", "native"}) {
      const std::string file = std::string(TESSERA_PLUGIN_FOLDER) + "/backend_" + name + ".so";
      if (!std::filesystem::exists(file)) continue;
      plugins_.push_back(Plugin::open(file, std::make_shared<HostServices>()));
    }
    plugins_.push_back(
        Plugin::open_linked(catalog().back().open, "reference", std::make_shared<HostServices>()));
  }

  // Runs the plan and counts its steps; the results must equal the interpreter's.
  void check(const Graph& graph, const std::map<std::string, Tensor>& fed,
             const PlanOptions& options, const std::string& what) {
    const Graph typed = infer_types(graph, registry_, Log());
    std::vector<Tensor> inputs;
    for (const ValueId input : typed.inputs) inputs.push_back(fed.at(typed[input].name));
    const std::vector<Tensor> expected = Interpreter(typed, registry_, 1).run(inputs);
    PackStore packs;
    PlanResult result = std::get<PlanResult>(
        build_plan(typed, options,
                   {.registry = registry_, .packs = packs, .pool = pool_, .plugins = plugins_}));
    EXPECT_EQ(explain_violation(result.built.plan), "") << what;
    for (const ExecutionStep& step : result.built.plan.steps) {
      views_ += step.kind == ExecutionStep::Kind::View ? 1 : 0;
      copies_ += step.kind == ExecutionStep::Kind::Copy ? 1 : 0;
    }
    for (const PlanBuffer& buffer : result.built.plan.buffers) {
      odd_ += buffer.offset % TESSERA_ALIGNMENT_BYTES != 0 ? 1 : 0;
      strided_ += buffer.strides.empty() ? 0 : 1;
    }
    PlanRunner runner(std::move(result.built), kThreads);
    const std::vector<Tensor> first = runner.run(inputs);
    const std::vector<Tensor> second = runner.run(inputs);
    for (size_t index = 0; index < expected.size(); ++index) {
      const std::string place = what + ", output '" + typed[typed.outputs[index]].name + "'";
      expect_near(expected[index], first[index], place);
      expect_near(expected[index], second[index], place + ", second run");
    }
  }

  static void expect_near(const Tensor& expected, const Tensor& actual, const std::string& place) {
    ASSERT_EQ(expected.dims(), actual.dims()) << place;
    float largest = 1;
    for (const float value : expected.as<float>()) largest = std::max(largest, std::abs(value));
    for (int64_t index = 0; index < expected.elements(); ++index) {
      const auto at = static_cast<size_t>(index);
      ASSERT_NEAR(expected.as<float>()[at], actual.as<float>()[at], largest * 1e-4)
          << place << ", element " << index;
    }
  }

  ops::Registry registry_;
  ThreadPool pool_;
  std::vector<std::shared_ptr<const Plugin>> plugins_;
  int views_ = 0;
  int copies_ = 0;
  int odd_ = 0;      // buffers at offsets that are not aligned as kernels expect
  int strided_ = 0;  // buffers with strides
};

TEST_F(Views, OfRandomGraphsGiveWhatTheInterpreterGives) {
  for (uint64_t seed = 1; seed <= 200 && !HasFailure(); ++seed) {
    Dice dice(seed);
    const RandomGraph made = GraphMaker(dice, registry_).grow(static_cast<int>(dice.whole(5, 40)));
    const Graph graph = made.builder.graph();
    check(graph, made.fed, {}, "seed " + std::to_string(seed));
    // Pins each node to a random backend, at any cost.
    PlanOptions options;
    for (const Node& node : graph.nodes) {
      if (dice.one_in(3)) continue;
      const Plugin& plugin = *dice.pick(plugins_);
      options.selection.pins.push_back({node.name, plugin.name(), ""});
    }
    for (bool is_served = false; !is_served;) {
      try {
        check(graph, made.fed, options, "pinned, seed " + std::to_string(seed));
        is_served = true;
      } catch (const Error& error) {
        // The error names a pin that cannot be served; remove it and try again with the others.
        ASSERT_EQ(error.kind(), ErrorKind::Unsupported) << error.what();
        const auto gone = std::erase_if(options.selection.pins, [&](const NodePin& pin) {
          return error.where() == "pin '" + pin.nodes + "=" + pin.backend + "'";
        });
        ASSERT_EQ(gone, 1U) << error.what();
      }
    }
  }
  std::cout << views_ << " views, " << copies_ << " copies, " << odd_ << " buffers at odd offsets, "
            << strided_ << " with strides\n";
  EXPECT_GT(views_, 1000);
  EXPECT_GT(odd_, 200);
  EXPECT_GT(strided_, 100);
  EXPECT_GT(copies_, 100);
}

// Views that begin at odd offsets feed the kernels of one backend after the other.
TEST_F(Views, AtOddOffsetsFeedEveryBackend) {
  for (const auto& plugin : plugins_) {
    for (int64_t first = 1; first <= 17; ++first) {
      Dice dice(static_cast<uint64_t>(first));
      RandomGraph made(registry_, 17);
      made.input("x", dice.tensor({1, 20, 3, 3}));
      made.constant("sizes", ints({first, 20 - first}));
      made.constant("starts", ints({first}));
      made.constant("ends", ints({20}));
      made.constant("axes", ints({1}));
      made.constant("weight", dice.tensor({4, 20 - first, 3, 3}, -0.1F, 0.1F));
      made.node("up", "Neg", {"x"})
          .node("split", "Split", {"up", "sizes"}, {"low", "high"}, attributes_of({{"axis", 1}}))
          .node("slice", "Slice", {"up", "starts", "ends", "axes"}, {"cut"})
          .node("abs_low", "Abs", {"low"})
          .node("abs_high", "Abs", {"high"})
          .node("sum", "Add", {"high", "cut"})
          .node("conv", "Conv", {"cut", "weight"})
          .node("pool", "MaxPool", {"high"}, attributes_of({{"kernel_shape", {2, 2}}}))
          .node("join", "Concat", {"abs_low", "abs_high"}, attributes_of({{"axis", 1}}));
      for (const char* name : {"sum", "conv", "pool", "join"}) made.builder.output(name);
      // Uses this plug-in's kernels for the nodes that it supports; the views are pinned to native.
      PlanOptions options;
      for (const char* view : {"split", "slice", "join"}) {
        options.selection.pins.push_back({view, "native", ""});
      }
      std::vector<std::shared_ptr<const Plugin>> order = {plugin};
      for (const auto& other : plugins_) {
        if (other != plugin) order.push_back(other);
      }
      std::swap(plugins_, order);
      check(made.builder.graph(), made.fed, options,
            plugin->name() + ", from channel " + std::to_string(first));
      std::swap(plugins_, order);
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(odd_, 50);
}

}  // namespace
}  // namespace tessera
