// One executor on inputs of several shapes.
#include <unistd.h>

// Every glibc header defines __GLIBC__.
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iostream>

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

constexpr int64_t kSwitchDepth = 4;
constexpr int64_t kSwitchWidth = 6;
constexpr double kMaxMicroseconds = 100;

// y = Softmax(Relu(x * w) + z), in which x and z have an unknown number of rows; and 'rows', the
// shape of 'like'.
std::string switched_model_bytes() {
  onnx::ModelProto model = onnx_import::make_model();
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {1, kSwitchDepth});
  add_input(graph, "z", {1, kSwitchWidth});
  add_input(graph, "like", {1, 1});
  for (const int input : {0, 1}) name_dimension(graph, input, 0, "rows");
  name_dimension(graph, 2, 0, "others");
  add_weight(graph, "w", {kSwitchDepth, kSwitchWidth}, 0.25F);
  add_node(graph, "MatMul", {"x", "w"}, {"product"}, "product");
  add_node(graph, "Relu", {"product"}, {"positive"}, "relu");
  add_node(graph, "Add", {"positive", "z"}, {"sum"}, "sum");
  add_node(graph, "Softmax", {"sum"}, {"y"}, "softmax");
  add_node(graph, "Shape", {"like"}, {"rows"}, "rows");
  add_output(graph, "y");
  add_output(graph, "rows");
  return model.SerializeAsString();
}

Tensor filled(int64_t rows, int64_t columns, int64_t seed) {
  Tensor tensor(DataType::Float32, {rows, columns});
  for (float& element : tensor.mutable_as<float>()) {
    element = static_cast<float>(seed++ * 7 % 23) / 23.0F - 0.25F;
  }
  return tensor;
}

using Inputs = std::map<std::string, Tensor>;

Inputs switch_inputs(int64_t rows, int64_t others = 1) {
  return {{"x", filled(rows, kSwitchDepth, rows)},
          {"z", filled(rows, kSwitchWidth, 3 * rows)},
          {"like", filled(others, 1, 0)}};
}

std::map<std::string, std::vector<int64_t>> shapes_of(const Inputs& inputs) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const auto& [name, tensor] : inputs) shapes[name] = tensor.dims();
  return shapes;
}

// The rows of x in each plan, most recently used first.
std::vector<int64_t> known_rows(const Executor& executor) {
  std::vector<int64_t> rows;
  for (const ShapePlanDescription& plan : executor.shapes().plans) {
    rows.push_back(plan.shapes.at("x")[0]);
  }
  return rows;
}

class SwitchedShapes : public testing::Test {
 protected:
  SwitchedShapes() { model_.emplace(load(file_)); }

  Executor bind(int64_t rows, BindOptions options = {}) const {
    options.shapes = shapes_of(switch_inputs(rows));
    options.threads = 1;
    options.run.families = false;  // shape_families_test.cc is about these
    if (!options.optimize) options.optimize = Optimize::Off;
    return model_->bind(options);
  }

  const TemporaryFolder folder_;
  const std::filesystem::path file_ = folder_.write("model.onnx", switched_model_bytes());
  std::optional<Model> model_;
};

TEST_F(SwitchedShapes, GiveTheBitsOfAFreshBind) {
  for (const std::vector<std::string>& backends :
       {std::vector<std::string>{}, std::vector<std::string>{"reference"}}) {
    Executor executor = bind(2, {.backends = backends});
    for (const int64_t rows : {5, 2, 1, 5, 40, 2}) {
      Executor fresh = bind(rows, {.backends = backends});
      const Inputs inputs = switch_inputs(rows);
      EXPECT_TRUE(has_same_bits(executor.run(inputs)[0], fresh.run(inputs)[0])) << rows;
    }
    EXPECT_THAT(known_rows(executor), ElementsAre(2, 40, 5, 1));
  }
}

TEST_F(SwitchedShapes, AreToldOfByWhatDescribesTheExecutor) {
  Executor executor = bind(2);
  EXPECT_EQ(executor.inputs()[0].text, "float32 2x4");
  executor.run(switch_inputs(3));
  EXPECT_EQ(executor.inputs()[0].text, "float32 3x4");
  EXPECT_EQ(executor.outputs()[0].text, "float32 3x6");
  EXPECT_EQ(executor.plan().steps.back().outputs[0].type, "float32 3x6");
  executor.record_steps(true);
  executor.run(switch_inputs(2));
  EXPECT_EQ(executor.steps().size(), executor.plan().steps.size());
}

TEST_F(SwitchedShapes, CountWhereOnlyTheShapeIsRead) {
  Executor executor = bind(2);
  EXPECT_FALSE(executor.inputs()[2].is_read);
  const auto rows_of = [](const Tensor& shape) { return shape.as<int64_t>()[0]; };
  EXPECT_EQ(rows_of(executor.run(switch_inputs(2))[1]), 1);
  EXPECT_EQ(rows_of(executor.run(switch_inputs(2, 9))[1]), 9);
  EXPECT_EQ(rows_of(executor.run(
                {{"x", filled(2, kSwitchDepth, 0)}, {"z", filled(2, kSwitchWidth, 0)}})[1]),
            9);
}

TEST_F(SwitchedShapes, AreCheckedWhereOnlyTheShapeIsRead) {
  Executor executor = bind(2);
  Inputs inputs = switch_inputs(2);
  inputs.insert_or_assign("like", Tensor(DataType::Float32, {1, 1, 1}));
  EXPECT_THAT(error_of([&] { executor.run(inputs); }),
              HasSubstr("input 'like': the model declares float32 othersx1"));
  inputs.insert_or_assign("like", Tensor(DataType::Int32, {1, 1}));
  EXPECT_THAT(error_of([&] { executor.run(inputs); }),
              HasSubstr("input 'like': expected float32 1x1, found int32 1x1"));
}

// The plan has no such input, because its size is a constant.
TEST(UnreadInputs, AreAsTheModelDeclares) {
  for (const std::vector<int64_t>& declared : {std::vector<int64_t>{3}, std::vector<int64_t>{}}) {
    onnx::ModelProto model = onnx_import::make_model();
    add_input(*model.mutable_graph(), "x", declared);
    add_node(*model.mutable_graph(), "Size", {"x"}, {"y"}, "size");
    add_output(*model.mutable_graph(), "y");
    Executor executor = load(ModelBytes{.bytes = model.SerializeAsString(), .name = "size"}).bind();
    EXPECT_EQ(executor.run({}).size(), 1U);
    EXPECT_EQ(executor.run({{"x", Tensor(DataType::Float32, declared)}}).size(), 1U);
    const auto feed = [&](DataType type, std::vector<int64_t> dims) {
      return error_of([&] { executor.run({{"x", Tensor(type, std::move(dims))}}); });
    };
    const std::string expected = declared.empty() ? "float32 scalar" : "float32 3";
    EXPECT_THAT(feed(DataType::Float32, {2}),
                HasSubstr("input 'x': expected " + expected + ", found float32 2"));
    EXPECT_THAT(feed(DataType::Int64, declared), HasSubstr("found int64"));
  }
}

TEST_F(SwitchedShapes, AreForgottenByLastUse) {
  EXPECT_THAT(error_of([&] { bind(1, {.limits = {.most_shapes = 0}}); }),
              HasSubstr("most_shapes: expected at least 1, found 0"));
  Executor executor = bind(1, {.limits = {.most_shapes = 2}});
  executor.run(switch_inputs(2));
  executor.run(switch_inputs(1));
  executor.run(switch_inputs(3));
  EXPECT_THAT(known_rows(executor), ElementsAre(3, 1));
  Executor lonely = bind(1, {.limits = {.most_shapes = 1}});
  for (const int64_t rows : {4, 1, 4}) {
    const Inputs inputs = switch_inputs(rows);
    EXPECT_TRUE(has_same_bits(lonely.run(inputs)[0], executor.run(inputs)[0]));
    EXPECT_THAT(known_rows(lonely), ElementsAre(rows));
  }
}

TEST_F(SwitchedShapes, ShareArenaAndKernels) {
  Executor executor = bind(2, {.backends = {"reference"}});
  const int64_t small = executor.shapes().arena_bytes;
  executor.run(switch_inputs(1000));
  executor.run(switch_inputs(3));
  const ShapesDescription shapes = executor.shapes();
  ASSERT_EQ(shapes.plans.size(), 3U);
  EXPECT_EQ(shapes.arena_bytes, shapes.plans[1].arena_bytes);
  EXPECT_GT(shapes.arena_bytes, 100 * small);
  EXPECT_EQ(executor.plan().arena_bytes, shapes.plans[0].arena_bytes);
  // No dimension is a constant in reference kernels.
  EXPECT_GT(shapes.plans[0].kernels, 2);
  EXPECT_EQ(shapes.plans[0].reused_kernels, shapes.plans[0].kernels);
  EXPECT_EQ(shapes.plans[2].reused_kernels, 0);
}

// The bytes that malloc has given and that were not freed.
int64_t allocated_bytes() {
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
  const auto figures = ::mallinfo2();
  return static_cast<int64_t>(figures.uordblks + figures.hblkhd);
#else
  return 0;
#endif
}

// Kernels go from plan to plan, so one that is used in every plan outlives all of them.
TEST_F(SwitchedShapes, InTurnTakeNoMoreMemory) {
#ifdef TESSERA_SANITIZED
  GTEST_SKIP() << "the sanitizer's allocator keeps what was freed";
#endif
  constexpr int64_t kShapes = 5;
  constexpr int kRounds = 40;
  for (const std::string backend : {"reference", ""}) {
    Executor executor =
        bind(1, {.backends = backend.empty() ? std::vector<std::string>() : std::vector{backend},
                 .limits = {.most_shapes = 3}});
    const auto run_all = [&] {
      for (int64_t rows = 1; rows <= kShapes; ++rows) executor.run(switch_inputs(rows));
    };
    for (int round = 0; round < kRounds; ++round) run_all();
    const int64_t before = allocated_bytes();
    for (int round = 0; round < kRounds; ++round) run_all();
    const int64_t grown = allocated_bytes() - before;
    EXPECT_LT(grown / (kRounds * kShapes), 64) << "bytes a plan, backend '" << backend << "'";
  }
}

TEST_F(SwitchedShapes, SayWhatTheyKeepInMemory) {
  Executor executor = bind(1, {.limits = {.most_shapes = 3}});
  for (int64_t rows = 1; rows < 6; ++rows) executor.run(switch_inputs(rows));
  const HeldMemoryDescription held = executor.memory();
  EXPECT_EQ(held.plan_count, 3);
  EXPECT_EQ(held.max_plan_count, 3);
  EXPECT_EQ(held.arena_bytes, executor.shapes().arena_bytes);
  ASSERT_FALSE(held.caches.empty());
  for (const HeldCacheDescription& cache : held.caches) {
    EXPECT_GT(cache.max_count + cache.max_bytes, 0) << cache.name << " has a bound";
    EXPECT_TRUE(cache.max_count == 0 || cache.count <= cache.max_count) << cache.name;
    EXPECT_TRUE(cache.max_bytes == 0 || cache.bytes <= cache.max_bytes) << cache.name;
  }
}

TEST_F(SwitchedShapes, AreRefusedWhereTheyContradict) {
  Executor executor = bind(2);
  const Inputs fine = switch_inputs(2);
  const Tensor expected = executor.run(fine)[0];
  Inputs inputs = switch_inputs(3);
  inputs["x"] = filled(3, 5, 0);
  EXPECT_EQ(error_of([&] { executor.run(inputs); }),
            "InvalidArgument: input 'x': the model declares float32 rowsx4, but the shape given is "
            "3x5");
  inputs["x"] = filled(4, kSwitchDepth, 0);
  EXPECT_THAT(
      error_of([&] { executor.run(inputs); }),
      HasSubstr("expected a shape that broadcasts with 4x6, found 3x6; the model calls several "
                "dimensions 'rows', but they are 3 (dimension 0 of input 'z'), 4 "
                "(dimension 0 of input 'x')"));
  inputs["x"] = Tensor(DataType::Int32, {3, kSwitchDepth});
  EXPECT_EQ(error_of([&] { executor.run(inputs); }),
            "InvalidArgument: input 'x': expected float32 2x4, found int32 3x4");
  EXPECT_THAT(known_rows(executor), ElementsAre(2));
  EXPECT_TRUE(has_same_bits(executor.run(fine)[0], expected));
}

TEST_F(SwitchedShapes, AreRefusedWhereTheyAreFixed) {
  Executor executor = bind(2, {.run = {.fixed_shapes = true}});
  EXPECT_EQ(error_of([&] { executor.run(switch_inputs(3)); }),
            "InvalidArgument: input 'x': expected float32 2x4, as it was bound with fixed_shapes, "
            "found float32 3x4");
  EXPECT_THAT(error_of([&] { executor.bind_input("x", filled(3, kSwitchDepth, 0)); }),
              HasSubstr("expected float32 2x4, as it was bound with fixed_shapes"));
  EXPECT_THAT(error_of([&] { executor.bind_output("y", filled(3, kSwitchWidth, 0)); }),
              HasSubstr("expected memory for float32 2x6, found float32 3x6"));
  executor.run(switch_inputs(2));
}

TEST_F(SwitchedShapes, FollowWhatIsBound) {
  Executor executor = bind(2);
  const auto bind_rows = [&](int64_t rows) {
    for (const auto& [name, tensor] : switch_inputs(rows)) executor.bind_input(name, tensor);
  };
  Tensor shape(DataType::Int64, {2});
  executor.bind_output("rows", shape);
  for (const int64_t rows : {3, 2, 3}) {
    Tensor y(DataType::Float32, {rows, kSwitchWidth});
    bind_rows(rows);
    executor.bind_output("y", y);
    executor.run_bound();
    Executor fresh = bind(rows);
    EXPECT_TRUE(has_same_bits(y, fresh.run(switch_inputs(rows))[0])) << rows;
  }
  // A tensor that is passed to run() replaces bound memory, but the bound outputs must fit it.
  EXPECT_EQ(error_of([&] { executor.run(switch_inputs(5)); }),
            "InvalidArgument: output 'y': expected memory for float32 5x6, which it is for these "
            "inputs, found float32 3x6; bind other memory, or clear the bindings");
  executor.run_bound();
  EXPECT_EQ(executor.outputs()[0].text, "float32 3x6");
  executor.clear_bindings();
  EXPECT_THAT(error_of([&] { executor.run_bound(); }), HasSubstr("none bound for this one"));
  executor.run(switch_inputs(5));
}

bool is_same(const CandidateDescription& left, const CandidateDescription& right) {
  const auto layout_of = [](const CandidateDescription& of) { return of.outputs[0].layout; };
  return left.nodes == right.nodes && left.backend == right.backend &&
         left.algorithm == right.algorithm && left.threads == right.threads &&
         layout_of(left) == layout_of(right);
}

TEST_F(SwitchedShapes, GoByWhatWasMeasured) {
  const BindOptions options = {.optimize = Optimize::Now,
                               .tune = {.tune_all = true, .in_process = true},
                               .cache = {.cache_dir = folder_.path()}};
  Executor executor = bind(64, options);
  const auto algorithms = [&] {
    std::vector<std::string> all;
    for (const PlanStep& step : executor.plan().steps) {
      all.push_back(step.name + " " + step.backend + " " + step.algorithm);
    }
    return all;
  };
  const std::vector<std::string> chosen = algorithms();
  const std::string costs = executor.costs();
  const std::vector<CandidateDescription> measured = executor.plan().candidates;
  executor.run(switch_inputs(256));
  EXPECT_EQ(algorithms(), chosen);
  EXPECT_EQ(executor.plan().tuning.measured, 0);
  EXPECT_EQ(executor.costs(), costs);
  // Four times as many rows are four times as much work, except for reading the weights.
  int scaled = 0;
  for (const CandidateDescription& now : executor.plan().candidates) {
    for (const CandidateDescription& before : measured) {
      if (!is_same(now, before) || !now.time || !before.time) continue;
      ++scaled;
      EXPECT_EQ(now.time->rounds, 0);
      EXPECT_GE(now.time->seconds, before.time->seconds);
      EXPECT_LE(now.time->seconds, 4.001 * before.time->seconds);
    }
  }
  EXPECT_GT(scaled, 3);
  ASSERT_TRUE(executor.plan().placement);
  EXPECT_GT(executor.plan().placement->predicted_seconds, 0);
}

TEST_F(SwitchedShapes, StayPlannedWhereTheRunIsOutOfTime) {
  Executor executor = bind(2);
  executor.set_time_limit(1e-9);
  EXPECT_THAT(error_of([&] { executor.run(switch_inputs(3)); }),
              HasSubstr("expected the run to end within"));
  EXPECT_THAT(known_rows(executor), ElementsAre(3, 2));
  executor.set_time_limit(0);
  EXPECT_EQ(executor.run(switch_inputs(3))[0].dims()[0], 3);
}

// The time of the fastest of many runs, at most a second.
double min_seconds(const std::function<void()>& run) {
  double least = 1;
  for (int round = 0; round < 500; ++round) {
    const auto start = std::chrono::steady_clock::now();
    run();
    least = std::min(
        least, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return least;
}

TEST_F(SwitchedShapes, ComeBackInMicroseconds) {
  Executor executor = bind(2);
  const Inputs two = switch_inputs(2);
  const Inputs three = switch_inputs(3);
  executor.run(three);
  const double staying =
      min_seconds([&] { executor.run(three); }) + min_seconds([&] { executor.run(two); });
  const double switching = min_seconds([&] {
    executor.run(two);
    executor.run(three);
  });
  const double microseconds = (switching - staying) / 2 * 1e6;
  std::cout << "a switch between known shapes: " << microseconds
            << " us; planning one: " << executor.shapes().plans[0].seconds * 1e6 << " us\n";
  EXPECT_LT(microseconds, kMaxMicroseconds);
}

}  // namespace
}  // namespace tessera
