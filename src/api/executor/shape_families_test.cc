// One plan for many shapes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/errors/error_test.h"
#include "base/files/temporary_folder_test.h"
#include "base/tensor/tensors_test.h"
#include "import/onnx/test_models.h"
#include "tessera/tessera.h"

namespace tessera {
namespace {

using onnx_import::add_input;
using onnx_import::add_node;
using onnx_import::add_output;
using onnx_import::add_weight;
using onnx_import::name_dimension;

constexpr int64_t kOpenDepth = 4;
constexpr int64_t kOpenWidth = 6;

// y = Softmax(Relu(x * w) + z), in which x and z have an unknown number of rows; and y expanded to
// the shape of z, which is its own; and that shape.
std::string open_model_bytes() {
  onnx::ModelProto model = onnx_import::make_model();
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {1, kOpenDepth});
  add_input(graph, "z", {1, kOpenWidth});
  for (const int input : {0, 1}) name_dimension(graph, input, 0, "rows");
  add_weight(graph, "w", {kOpenDepth, kOpenWidth}, 0.25F);
  add_node(graph, "MatMul", {"x", "w"}, {"product"}, "product");
  add_node(graph, "Relu", {"product"}, {"positive"}, "relu");
  add_node(graph, "Add", {"positive", "z"}, {"sum"}, "sum");
  add_node(graph, "Softmax", {"sum"}, {"y"}, "softmax");
  add_node(graph, "Shape", {"z"}, {"shape"}, "shape");
  add_node(graph, "Expand", {"y", "shape"}, {"same"}, "expand");
  add_output(graph, "y");
  add_output(graph, "same");
  add_output(graph, "shape");
  return model.SerializeAsString();
}

Tensor numbers(int64_t rows, int64_t columns) {
  Tensor tensor(DataType::Float32, {rows, columns});
  int64_t next = rows;
  for (float& element : tensor.mutable_as<float>()) {
    element = static_cast<float>(next++ * 7 % 23) / 23.0F - 0.25F;
  }
  return tensor;
}

std::map<std::string, Tensor> family_inputs(int64_t rows) {
  return {{"x", numbers(rows, kOpenDepth)}, {"z", numbers(rows, kOpenWidth)}};
}

bool has_native() {
  return std::ranges::any_of(Backends().describe(), [](const BackendDescription& backend) {
    return backend.name == "native" && backend.is_usable;
  });
}

class ShapeFamilies : public testing::Test {
 protected:
  ShapeFamilies() { model_.emplace(load(file_)); }

  Executor bind(int64_t rows, BindOptions options = {}) const {
    options.shapes = {{"x", {rows, kOpenDepth}}, {"z", {rows, kOpenWidth}}};
    if (options.backends.empty()) options.backends = same_bits();
    options.threads = 1;
    options.optimize = Optimize::Off;
    return model_->bind(options);
  }
  // Backends whose plans for a family and for exact shapes have the same kernels here.
  static std::vector<std::string> same_bits() { return {has_native() ? "native" : "reference"}; }

  const TemporaryFolder folder_;
  const std::filesystem::path file_ = folder_.write("model.onnx", open_model_bytes());
  std::optional<Model> model_;
};

TEST_F(ShapeFamilies, HaveOnePlanThatGivesTheBitsOfExactOnes) {
  for (const std::vector<std::string>& backends :
       {std::vector<std::string>{}, std::vector<std::string>{"reference"}}) {
    Executor executor = bind(2, {.backends = backends});
    for (const int64_t rows : {5, 2, 41, 5, 40, 300, 2}) {
      Executor exact = bind(rows, {.backends = backends});
      const std::vector<Tensor> expected = exact.run(family_inputs(rows));
      const std::vector<Tensor> found = executor.run(family_inputs(rows));
      for (size_t output = 0; output < expected.size(); ++output) {
        EXPECT_TRUE(has_same_bits(found[output], expected[output])) << rows;
      }
    }
    EXPECT_EQ(executor.shapes().plans.size(), 2U);
  }
}

TEST_F(ShapeFamilies, DescribeTheNewestRun) {
  Executor executor = bind(2);
  for (const int64_t rows : {7, 30}) {
    executor.run(family_inputs(rows));
    const std::string text = "float32 " + std::to_string(rows) + "x6";
    EXPECT_EQ(executor.inputs()[1].text, text);
    EXPECT_EQ(executor.outputs()[0].text, text);
    EXPECT_EQ(executor.inputs().size(), 2U) << "sizes that are passed are not the caller's";
    EXPECT_EQ(executor.plan().steps.back().outputs[0].type, text);
    EXPECT_EQ(executor.shapes().plans[0].shapes.at("x"), (std::vector<int64_t>{rows, kOpenDepth}));
  }
}

TEST_F(ShapeFamilies, SayWhichDimensionsTheirKernelsAreBuiltFor) {
  Executor executor = bind(2, {.backends = {"reference"}});
  executor.run(family_inputs(7));
  for (const PlanStep& step : executor.plan().steps) EXPECT_EQ(step.built_for, "") << step.name;
}

TEST_F(ShapeFamilies, KeepABatchOfOneApart) {
  Executor executor = bind(2);
  for (const int64_t rows : {9, 1, 12, 1, 9}) {
    Executor exact = bind(rows);
    EXPECT_TRUE(
        has_same_bits(executor.run(family_inputs(rows))[0], exact.run(family_inputs(rows))[0]));
  }
  EXPECT_EQ(executor.shapes().plans.size(), 3U);
}

TEST_F(ShapeFamilies, RefuseWhatContradictsAndStayUsable) {
  Executor executor = bind(2);
  executor.run(family_inputs(9));
  std::map<std::string, Tensor> unequal = family_inputs(9);
  unequal["z"] = numbers(8, kOpenWidth);
  for (int count = 0; count < 2; ++count) {
    EXPECT_THROW(executor.run(unequal), Error);
    EXPECT_EQ(executor.run(family_inputs(9))[0].dims(), (std::vector<int64_t>{9, kOpenWidth}));
    EXPECT_EQ(executor.run(family_inputs(20))[0].dims(), (std::vector<int64_t>{20, kOpenWidth}));
  }
}

TEST_F(ShapeFamilies, RefuseWhatTheModelDeclaresOtherwise) {
  Executor executor = bind(2);
  executor.run(family_inputs(9));
  std::map<std::string, Tensor> wide = family_inputs(9);
  wide["z"] = numbers(9, kOpenWidth + 1);
  EXPECT_EQ(kind_of_error([&] { executor.run(wide); }), ErrorKind::InvalidArgument);
  wide["z"] = Tensor(DataType::Float32, {9, kOpenWidth, 1});
  EXPECT_EQ(kind_of_error([&] { executor.run(wide); }), ErrorKind::InvalidArgument);
  EXPECT_EQ(executor.run(family_inputs(8))[0].dims(), (std::vector<int64_t>{8, kOpenWidth}));
}

// Reshape of a, whose size is open, to 2x3; and z, whose size makes the family.
std::string reshaping_model_bytes() {
  onnx::ModelProto model = onnx_import::make_model();
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "a", {1});
  add_input(graph, "z", {1});
  add_input(graph, "unread", {1});
  name_dimension(graph, 0, 0, "a size");
  name_dimension(graph, 1, 0, "z size");
  name_dimension(graph, 2, 0, "?");
  onnx::TensorProto& shape = *graph.add_initializer();
  shape.set_name("shape");
  shape.set_data_type(onnx::TensorProto::INT64);
  shape.add_dims(2);
  shape.add_int64_data(2);
  shape.add_int64_data(3);
  add_node(graph, "Reshape", {"a", "shape"}, {"reshaped"}, "reshape");
  add_node(graph, "Relu", {"z"}, {"positive"}, "relu");
  add_output(graph, "reshaped");
  add_output(graph, "positive");
  return model.SerializeAsString();
}

// The type of the output is known when the model is loaded, whatever size the input has.
TEST_F(ShapeFamilies, AskTheRulesOfNodesWhoseOutputsAreKnown) {
  const Model model = load(folder_.write("reshaping.onnx", reshaping_model_bytes()));
  const auto sized = [](int64_t a, int64_t z) -> std::map<std::string, Tensor> {
    return {{"a", numbers(1, a).reshaped({a})}, {"z", numbers(1, z).reshaped({z})}};
  };
  Executor executor = model.bind({.shapes = {{"a", {6}}, {"z", {4}}},
                                  .threads = 1,
                                  .backends = {"reference"},
                                  .optimize = Optimize::Off});
  for (const int64_t z : {9, 12, 7}) executor.run(sized(6, z));
  EXPECT_EQ(executor.shapes().plans.size(), 2U) << "an input that nothing reads prevents no family";
  for (const int64_t a : {5, 7, 600}) {
    EXPECT_EQ(kind_of_error([&] { executor.run(sized(a, 8)); }), ErrorKind::InvalidModel) << a;
  }
  EXPECT_EQ(executor.run(sized(6, 8))[1].elements(), 8);
}

TEST_F(ShapeFamilies, WriteToBoundMemoryOfEachShape) {
  Executor executor = bind(2);
  for (const int64_t rows : {6, 60, 6}) {
    const std::map<std::string, Tensor> inputs = family_inputs(rows);
    for (const auto& [name, tensor] : inputs) executor.bind_input(name, tensor);
    std::vector<float> memory(static_cast<size_t>(rows * kOpenWidth));
    std::vector<float> other(memory.size());
    Tensor shape(DataType::Int64, {2});
    executor.bind_output("y",
                         Tensor::over(DataType::Float32, {rows, kOpenWidth}, {}, memory.data()));
    executor.bind_output("same",
                         Tensor::over(DataType::Float32, {rows, kOpenWidth}, {}, other.data()));
    executor.bind_output("shape", shape);
    executor.run_bound();
    executor.run_bound();
    executor.clear_bindings();
    const Tensor expected = bind(rows).run(inputs)[0];
    EXPECT_EQ(std::memcmp(memory.data(), expected.data(), static_cast<size_t>(expected.bytes())),
              0);
    EXPECT_EQ(memory, other);
    EXPECT_EQ(integers(shape), (std::vector<int64_t>{rows, kOpenWidth}));
  }
}

TEST_F(ShapeFamilies, AreNotUsedIfNotWanted) {
  Executor executor = bind(2, {.run = {.families = false}});
  for (const int64_t rows : {5, 6, 7}) executor.run(family_inputs(rows));
  EXPECT_EQ(executor.shapes().plans.size(), 4U);
}

// In an order in which large and small ones follow each other, so that times can be compared.
TEST_F(ShapeFamilies, ServeTenThousandShapesWithoutMorePlans) {
  constexpr int64_t kShapes = 10'000;
  constexpr int64_t kPrime = 10'007;
  constexpr int64_t kPart = 1'000;
  Executor executor = bind(2);
  std::vector<double> part_seconds;  // of each part
  for (int64_t index = 0; index < kShapes; ++index) {
    if (index % kPart == 0) part_seconds.push_back(0);
    const std::map<std::string, Tensor> inputs = family_inputs(3 + index * 4999 % kPrime);
    const auto begin = std::chrono::steady_clock::now();
    executor.run(inputs);
    part_seconds.back() +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  EXPECT_EQ(executor.shapes().plans.size(), 2U);
  EXPECT_LE(executor.memory().arena_bytes, kPrime * 2 * (kOpenDepth + 2 * kOpenWidth) * 4);
  // The first part makes the family.
  EXPECT_LT(part_seconds.back(), 3 * part_seconds[1])
      << "another process may have slowed this one down";
}

class RangesOfSizes : public ShapeFamilies {
 protected:
  Executor bind(SizeRange rows, BindOptions options = {}) const {
    options.shape_ranges = {{"x", {rows, {kOpenDepth, kOpenDepth}}},
                            {"z", {rows, {kOpenWidth, kOpenWidth}}}};
    options.backends = same_bits();
    options.threads = 1;
    options.optimize = Optimize::Off;
    return model_->bind(options);
  }
};

TEST_F(RangesOfSizes, ArePlannedForInBind) {
  Executor executor = bind({2, 300});
  EXPECT_EQ(executor.inputs()[0].text, "float32 24x4") << "the geometric mean";
  const ShapesDescription bound = executor.shapes();
  EXPECT_EQ(bound.plans.size(), 1U);
  for (const int64_t rows : {300, 2, 17, 24, 299, 300}) {
    const Tensor expected = ShapeFamilies::bind(rows).run(family_inputs(rows))[0];
    EXPECT_TRUE(has_same_bits(executor.run(family_inputs(rows))[0], expected)) << rows;
  }
  EXPECT_EQ(executor.shapes().plans.size(), 1U);
  EXPECT_EQ(executor.shapes().arena_bytes, bound.arena_bytes);
}

TEST_F(RangesOfSizes, EndWhereTheySay) {
  Executor executor = bind({2, 300});
  for (const int64_t rows : {1, 301, 0}) {
    EXPECT_EQ(error_of([&] { executor.run(family_inputs(rows)); }),
              "InvalidArgument: input 'x': expected float32 2..300x4, the ranges that bind() was "
              "given, found float32 " +
                  std::to_string(rows) + "x4");
    EXPECT_THROW(executor.bind_input("x", numbers(rows, kOpenDepth)), Error);
    EXPECT_EQ(executor.run(family_inputs(7))[0].dims(), (std::vector<int64_t>{7, kOpenWidth}));
  }
}

TEST_F(RangesOfSizes, AreCheckedInBind) {
  const SizeRange depth{kOpenDepth, kOpenDepth};
  const struct {
    BindOptions options;
    const char* text;
  } wrong[] = {
      {{.shape_ranges = {{"q", {{1, 2}}}}}, "the model has no such input"},
      {{.shape_ranges = {{"x", {{2, 1}, depth}}}}, "found 2..1"},
      {{.shape_ranges = {{"x", {{-1, 1}, depth}}}}, "found -1..1"},
      {{.shape_ranges = {{"x", {{1, 2}}}}}, "the model declares float32 rowsx4"},
      {{.shape_ranges = {{"x", {{1, 2}, {4, 5}}}}}, "the model declares float32 rowsx4"},
      {{.shape_ranges = {{"x", {{1, INT64_MAX}, depth}}}}, "input 'x'"},
      {{.shapes = {{"x", {2, 4}}}, .shape_ranges = {{"x", {{1, 2}, depth}}}}, "found both"},
      {{.shape_ranges = {{"x", {{1, 2}, depth}}, {"z", {{1, 3}, {6, 6}}}}},
       "expected sizes 1..2 for dimension 'rows', which another dimension of this name has, found "
       "1..3"},
  };
  for (const auto& [options, text] : wrong) {
    EXPECT_THAT(error_of(ErrorKind::InvalidArgument, [&] { model_->bind(options); }),
                testing::HasSubstr(text));
  }
}

// Each time with another store of this process, as in another process. What takes less than 5 ms to
// measure is not stored, hence the sizes.
TEST_F(RangesOfSizes, AreFoundInTheCache) {
  if (!has_native()) GTEST_SKIP() << "the reference alone measures nothing";
  std::vector<std::string> first;
  for (const int64_t high : {200000, 200000, 150000}) {
    const Model model = load(file_, {.backends = Backends()});
    Executor executor =
        model.bind({.shape_ranges = {{"x", {{100000, high}, {kOpenDepth, kOpenDepth}}}},
                    .threads = 1,
                    .backends = {"native"},
                    .optimize = Optimize::Now,
                    .tune = {.tune_all = true, .in_process = true},
                    .cache = {.cache_dir = folder_.path()}});
    std::vector<std::string> chosen;
    for (const PlanStep& step : executor.plan().steps) {
      chosen.push_back(step.name + step.backend + step.algorithm);
    }
    const bool is_new = first.empty();
    if (is_new) first = chosen;
    EXPECT_EQ(executor.plan().candidates.empty(), !is_new) << "a known plan is not chosen again";
    EXPECT_EQ(chosen, first);
    EXPECT_EQ(executor.shapes().plans.size(), 1U);
    const Tensor expected = ShapeFamilies::bind(100001).run(family_inputs(100001))[0];
    const Tensor found = executor.run(family_inputs(100001))[0];
    for (int64_t index = 0; index < found.elements(); ++index) {
      EXPECT_NEAR(found.as<float>()[index], expected.as<float>()[index], 1e-5);
    }
  }
}

// The second process knows what was chosen for small, middle and large sizes.
TEST_F(RangesOfSizes, AreChosenForAtSeveralSizesIfWide) {
  if (!has_native()) GTEST_SKIP() << "the reference alone measures nothing";
  std::vector<std::vector<std::string>> first;
  for (const bool is_first : {true, false}) {
    const Model model = load(file_, {.backends = Backends()});
    Executor executor =
        model.bind({.shape_ranges = {{"x", {{20000, 400000}, {kOpenDepth, kOpenDepth}}}},
                    .threads = 1,
                    .backends = {"native"},
                    .optimize = Optimize::Now,
                    .tune = {.tune_all = true, .in_process = true},
                    .cache = {.cache_dir = folder_.path(), .frozen = !is_first}});
    EXPECT_LE(executor.shapes().plans.size(), 3U);
    for (size_t index = 0; const int64_t rows : {21000, 90000, 390000}) {
      const Tensor expected = ShapeFamilies::bind(rows).run(family_inputs(rows))[0];
      const Tensor found = executor.run(family_inputs(rows))[0];
      for (int64_t element = 0; element < found.elements(); ++element) {
        ASSERT_NEAR(found.as<float>()[element], expected.as<float>()[element], 1e-5);
      }
      std::vector<std::string> chosen;
      for (const PlanStep& step : executor.plan().steps) {
        EXPECT_NE(step.backend, "reference") << step.name;
        chosen.push_back(step.name + step.backend + step.algorithm);
      }
      if (is_first) first.push_back(chosen);
      EXPECT_EQ(chosen, first[index++]) << rows;
      if (is_first) continue;
      EXPECT_TRUE(executor.plan().candidates.empty()) << "it is not chosen again";
    }
    EXPECT_LE(executor.shapes().plans.size(), 3U);
  }
}

TEST_F(RangesOfSizes, GiveDimensionsOfOneNameOneRange) {
  Executor executor = model_->bind({.shape_ranges = {{"x", {{2, 50}, {kOpenDepth, kOpenDepth}}}},
                                    .threads = 1,
                                    .optimize = Optimize::Off});
  EXPECT_EQ(executor.inputs()[1].text, "float32 10x6");
  const int64_t arena_bytes = executor.shapes().arena_bytes;
  EXPECT_EQ(executor.run(family_inputs(50))[0].elements(), 50 * kOpenWidth);
  EXPECT_EQ(executor.shapes().arena_bytes, arena_bytes) << "the arena suffices for all sizes";
}

TEST_F(RangesOfSizes, AreKeptByAnExecutorWithoutShapes) {
  const Model model = load(folder_.write("reshaping.onnx", reshaping_model_bytes()));
  Executor executor =
      model.bind({.shape_ranges = {{"z", {{2, 9}}}}, .threads = 1, .optimize = Optimize::Off});
  EXPECT_FALSE(executor.has_shapes());
  const auto sized = [](int64_t z) -> std::map<std::string, Tensor> {
    return {{"a", numbers(1, 6).reshaped({6})}, {"z", numbers(1, z).reshaped({z})}};
  };
  EXPECT_THROW(executor.run(sized(10)), Error);
  EXPECT_FALSE(executor.has_shapes());
  for (const int64_t z : {2, 9, 5}) EXPECT_EQ(executor.run(sized(z))[1].elements(), z);
  EXPECT_THROW(executor.run(sized(10)), Error);
}

TEST_F(RangesOfSizes, HoldWithoutFamilies) {
  Executor executor = bind({2, 30}, {.run = {.families = false}});
  for (const int64_t rows : {2, 30})
    EXPECT_EQ(executor.run(family_inputs(rows))[0].dims()[0], rows);
  EXPECT_THROW(executor.run(family_inputs(31)), Error);
  EXPECT_EQ(executor.shapes().plans.size(), 3U);
}

TEST_F(ShapeFamilies, LeavePlansOfNamedShapes) {
  const auto shapes = [](int64_t rows) -> std::map<std::string, std::vector<int64_t>> {
    return {{"x", {rows, kOpenDepth}}, {"z", {rows, kOpenWidth}}};
  };
  Executor executor =
      bind(2, {.more_shapes = {shapes(5), shapes(60)}, .limits = {.most_shapes = 1}});
  EXPECT_EQ(executor.inputs()[0].text, "float32 2x4");
  EXPECT_EQ(executor.shapes().plans.size(), 3U);
  for (const int64_t rows : {60, 5, 2}) {
    const Tensor expected = bind(rows).run(family_inputs(rows))[0];
    EXPECT_TRUE(has_same_bits(executor.run(family_inputs(rows))[0], expected));
  }
  EXPECT_EQ(executor.shapes().plans.size(), 3U);
  EXPECT_THROW(bind(2, {.more_shapes = {{{"q", {1}}}}}), Error);
}

class BoundWithoutShapes : public ShapeFamilies {
 protected:
  Executor bind() const {
    return model_->bind({.threads = 1, .backends = same_bits(), .optimize = Optimize::Off});
  }
};

TEST_F(BoundWithoutShapes, PlansInTheFirstRun) {
  Executor executor = bind();
  EXPECT_FALSE(executor.has_shapes());
  EXPECT_EQ(executor.inputs()[0].text, "float32 rowsx4");
  EXPECT_EQ(executor.shapes().plans.size(), 0U);
  for (const int64_t rows : {7, 30}) {
    const Tensor expected = ShapeFamilies::bind(rows).run(family_inputs(rows))[0];
    EXPECT_TRUE(has_same_bits(executor.run(family_inputs(rows))[0], expected));
    EXPECT_TRUE(executor.has_shapes());
  }
  EXPECT_EQ(executor.inputs()[0].text, "float32 30x4");
}

TEST_F(BoundWithoutShapes, NeedsARunForWhatDescribesAPlan) {
  Executor executor = bind();
  EXPECT_EQ(error_of([&] { executor.plan(); }),
            "InvalidArgument: executor: expected one with a plan, found one without shapes: run it "
            "once, or give bind() the shapes of the inputs");
  EXPECT_EQ(error_of([&] { executor.run({{"x", numbers(3, kOpenDepth)}}); }),
            "InvalidArgument: input 'z': expected a tensor (float32 rowsx6), found none given");
  std::map<std::string, Tensor> wrong = family_inputs(3);
  wrong["y"] = numbers(3, 3);
  EXPECT_THROW(executor.run(wrong), Error);
  EXPECT_FALSE(executor.has_shapes());
  EXPECT_NO_THROW(executor.run(family_inputs(3)));
}

TEST_F(BoundWithoutShapes, KeepsWhatWasBoundAndSet) {
  Executor executor = bind();
  executor.record_steps(true);
  executor.set_time_limit(1000);
  const std::map<std::string, Tensor> inputs = family_inputs(5);
  for (const auto& [name, tensor] : inputs) executor.bind_input(name, tensor);
  EXPECT_THROW(executor.bind_input("w", numbers(1, 1)), Error);
  std::vector<float> memory(static_cast<size_t>(5 * kOpenWidth));
  executor.bind_output("y", Tensor::over(DataType::Float32, {5, kOpenWidth}, {}, memory.data()));
  executor.run({});
  const Tensor expected = ShapeFamilies::bind(5).run(inputs)[0];
  EXPECT_EQ(std::memcmp(memory.data(), expected.data(), static_cast<size_t>(expected.bytes())), 0);
  EXPECT_FALSE(executor.steps().empty());
}

// Each call of cancel() ends the first run, which measures.
TEST_F(BoundWithoutShapes, IsCancelledWhileItBinds) {
  Executor executor = model_->bind({.threads = 1,
                                    .backends = {"reference"},
                                    .optimize = Optimize::Now,
                                    .cache = {.cache_dir = folder_.path()}});
  std::atomic<bool> is_over = false;
  std::thread canceller([&] {
    while (!is_over) executor.cancel();
  });
  EXPECT_EQ(kind_of_error([&] { executor.run(family_inputs(3)); }), ErrorKind::Cancelled);
  is_over = true;
  canceller.join();
  EXPECT_FALSE(executor.has_shapes());
  EXPECT_EQ(executor.run(family_inputs(3))[0].elements(), 3 * kOpenWidth);
}

}  // namespace
}  // namespace tessera
