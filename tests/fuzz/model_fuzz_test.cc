// A small model with many features, truncated at every byte, and with randomly flipped bytes. Each
// damaged model either loads, binds and runs, or is refused with an error that blames the file.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compile/compile.h"
#include "engine/interpreter.h"
#include "graph/verify.h"
#include "import/onnx/import.h"
#include "import/onnx/test_models.h"
#include "ops/all_ops_test.h"
#include "ops/work.h"
#include "tessera/error.h"

namespace tessera {
namespace {

using onnx::TensorProto;
using onnx_import::add_input;
using onnx_import::add_node;
using onnx_import::add_output;
using onnx_import::add_weight;

// Damaged models are run only if they need no more memory and work than these limits.
constexpr int64_t kMaxPeakBytes = int64_t{1} << 24;
constexpr int64_t kMaxFlops = 10'000'000;

// Input shapes, with 2 for every unknown dimension.
std::map<std::string, std::vector<int64_t>> shapes_of_inputs(const Graph& graph) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const ValueId id : graph.inputs) {
    if (!graph[id].type.shape) continue;
    std::vector<int64_t>& dims = shapes[graph[id].name];
    for (const Dim& dim : *graph[id].type.shape) dims.push_back(dim.is_known() ? dim.value() : 2);
  }
  return shapes;
}

bool is_quick(const Graph& graph) {
  int64_t flops = 0;
  for (const Node& node : graph.nodes) {
    flops += std::min(kMaxFlops, ops::node_flops(graph, node, all_ops()).value_or(0));
  }
  return flops < kMaxFlops && make_schedule(graph).peak_bytes.value_or(0) < kMaxPeakBytes;
}

// Runs the graph on inputs of zeros.
void run(Graph graph) {
  std::vector<Tensor> inputs;
  for (const ValueId id : graph.inputs) {
    const Type& type = graph[id].type;
    if (type_bytes(type).value_or(kMaxPeakBytes) >= kMaxPeakBytes) return;
    Tensor input(type.element, dims_from(*type.shape));
    std::memset(input.mutable_data(), 0, static_cast<size_t>(input.bytes()));
    inputs.push_back(std::move(input));
  }
  Interpreter(std::move(graph), all_ops(), 1).run(inputs);
}

// Loads, binds and runs one damaged model. An error that blames the model is thrown as
// tessera::Error; anything else fails the test.
void exercise(std::string_view bytes) {
  const Log silent([](const std::string&) {});
  ThreadPool pool(1);
  ImportedModel imported = import_onnx_bytes(bytes, "/nonexistent", all_ops(), silent);
  ASSERT_EQ(explain_illegal(imported.graph), "");
  const LoadedModel model = load_model(std::move(imported), {}, all_ops(), pool, silent);
  Graph bound = bind_graph(model, shapes_of_inputs(model.graph), {}, all_ops(), pool, silent).graph;
  if (is_quick(bound)) run(std::move(bound));
}

bool is_the_models_fault(ErrorKind kind) {
  return kind == ErrorKind::InvalidModel || kind == ErrorKind::Unsupported ||
         kind == ErrorKind::InvalidArgument || kind == ErrorKind::OutOfMemory;
}

// "" if exercise() succeeded or refused `bytes` properly.
std::string explain_failure(std::string_view bytes) {
  try {
    exercise(bytes);
  } catch (const Error& error) {
    if (!is_the_models_fault(error.kind())) return error.what();
  } catch (const std::exception& error) {
    return std::string("not an Error: ") + error.what();
  }
  return {};
}

// Adds an initializer that nothing reads, with `count` elements in the field that `fill` sets.
template <class Fill>
void add_encoded(onnx::GraphProto& graph, int type, int64_t count, const Fill& fill) {
  TensorProto& tensor = *graph.add_initializer();
  tensor.set_name("encoded_" + std::to_string(graph.initializer_size()));
  tensor.set_data_type(type);
  tensor.add_dims(count);
  for (int64_t index = 0; index < count; ++index) fill(tensor, index);
}

void add_encodings(onnx::GraphProto& graph) {
  const auto int32_data = [](TensorProto& t, int64_t i) { t.add_int32_data(static_cast<int>(i)); };
  for (const int type :
       {TensorProto::INT32, TensorProto::INT16, TensorProto::INT8, TensorProto::UINT8,
        TensorProto::UINT16, TensorProto::BOOL, TensorProto::FLOAT16, TensorProto::BFLOAT16}) {
    add_encoded(graph, type, 2, int32_data);
  }
  add_encoded(graph, TensorProto::FLOAT, 2, [](TensorProto& t, int64_t) { t.add_float_data(1); });
  add_encoded(graph, TensorProto::DOUBLE, 2, [](TensorProto& t, int64_t) { t.add_double_data(1); });
  add_encoded(graph, TensorProto::INT64, 2, [](TensorProto& t, int64_t) { t.add_int64_data(-1); });
  add_encoded(graph, TensorProto::UINT64, 2, [](TensorProto& t, int64_t) { t.add_uint64_data(1); });
}

void add_function(onnx::ModelProto& model) {
  onnx::FunctionProto& function = *model.add_functions();
  function.set_domain("local");
  function.set_name("twice");
  function.add_input("a");
  function.add_output("b");
  function.add_attribute("slope");
  function.add_opset_import()->set_version(13);
  add_node(function, "Relu", {"a"}, {"m"});
  auto& attribute = *add_node(function, "Elu", {"m"}, {"b"}).add_attribute();
  attribute.set_name("alpha");
  attribute.set_ref_attr_name("slope");
  attribute.set_type(onnx::AttributeProto::FLOAT);
}

// x -> Conv -> Relu -> Reshape -> a function -> y.
onnx::ModelProto plain_model() {
  onnx::ModelProto model = onnx_import::make_model();
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {1, 1, 3, 3});
  onnx_import::name_dimension(graph, 0, 0, "batch");
  add_weight(graph, "w", {2, 1, 2, 2}, 0.5F);
  auto& pads = *add_node(graph, "Conv", {"x", "w"}, {"c"}, "conv").add_attribute();
  pads.set_name("pads");
  pads.set_type(onnx::AttributeProto::INTS);
  for (int side = 0; side < 4; ++side) pads.add_ints(1);
  add_node(graph, "Relu", {"c"}, {"r"}, "relu");
  add_encoded(graph, TensorProto::INT64, 2,
              [](TensorProto& t, int64_t i) { t.add_int64_data(i == 0 ? 0 : -1); });
  graph.mutable_initializer(graph.initializer_size() - 1)->set_name("shape");
  add_node(graph, "Reshape", {"r", "shape"}, {"f"});
  onnx::NodeProto& call = add_node(graph, "twice", {"f"}, {"y"}, "call");
  call.set_domain("local");
  auto& slope = *call.add_attribute();
  slope.set_name("slope");
  slope.set_type(onnx::AttributeProto::FLOAT);
  slope.set_f(0.5F);
  add_output(graph, "y");
  add_function(model);
  add_encodings(graph);
  return model;
}

// plain_model() and an If whose branches read its value.
onnx::ModelProto nested_model() {
  onnx::ModelProto model = plain_model();
  onnx::GraphProto& graph = *model.mutable_graph();
  onnx_import::set_type(*graph.add_input(), "c0", {}, TensorProto::BOOL);
  onnx::NodeProto& node = add_node(graph, "If", {"c0"}, {"z"}, "if");
  for (const char* name : {"then_branch", "else_branch"}) {
    auto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::GRAPH);
    add_weight(*attribute.mutable_g(), "k", {1});
    add_node(*attribute.mutable_g(), "Add", {"y", "k"}, {"s"});
    add_output(*attribute.mutable_g(), "s");
  }
  add_output(graph, "z");
  return model;
}

void set_ints(onnx::NodeProto& node, const char* name, const std::vector<int64_t>& numbers) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INTS);
  for (const int64_t number : numbers) attribute.add_ints(number);
}

void set_int(onnx::NodeProto& node, const char* name, int64_t number) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(number);
}

// An int64 list as an initializer called `name`.
void add_list(onnx::GraphProto& graph, const char* name, const std::vector<int64_t>& numbers) {
  TensorProto& tensor = *graph.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(TensorProto::INT64);
  tensor.add_dims(static_cast<int64_t>(numbers.size()));
  for (const int64_t number : numbers) tensor.add_int64_data(number);
}

// Of "x": "a", "c" and "d".
void add_windows(onnx::GraphProto& graph) {
  auto& pool = add_node(graph, "MaxPool", {"x"}, {"a"}, "max");
  set_ints(pool, "kernel_shape", {2, 3});
  set_ints(pool, "strides", {1, 2});
  set_ints(pool, "dilations", {2, 1});
  set_int(pool, "ceil_mode", 1);
  auto& average = add_node(graph, "AveragePool", {"x"}, {"b"}, "average");
  set_ints(average, "kernel_shape", {3, 3});
  set_ints(average, "pads", {1, 1, 1, 1});
  add_weight(graph, "w", {4, 1, 2, 2}, 0.5F);
  auto& transposed = add_node(graph, "ConvTranspose", {"x", "w"}, {"c"}, "up");
  set_ints(transposed, "strides", {2, 2});
  set_ints(transposed, "output_padding", {1, 0});
  set_int(transposed, "group", 4);
  set_int(add_node(graph, "LRN", {"b"}, {"d"}, "lrn"), "size", 3);
}

// Ops whose attributes and index tensors decide which memory is accessed: windows, slices, pads,
// gathers.
onnx::ModelProto wide_model() {
  onnx::ModelProto model = onnx_import::make_model();
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {1, 4, 6, 6});
  add_windows(graph);
  add_list(graph, "starts", {1, -4});
  add_list(graph, "ends", {3, 9223372036854775807});
  add_list(graph, "axes", {1, 2});
  add_list(graph, "steps", {1, 2});
  add_node(graph, "Slice", {"d", "starts", "ends", "axes", "steps"}, {"e"}, "slice");
  add_list(graph, "pads", {0, 1, 0, 0, 0, 0, 2, -1});
  add_node(graph, "Pad", {"e", "pads"}, {"f"}, "pad");
  add_list(graph, "indices", {0, -1, 2});
  set_int(add_node(graph, "Gather", {"f", "indices"}, {"g"}, "gather"), "axis", 1);
  set_ints(add_node(graph, "Transpose", {"g"}, {"h"}, "transpose"), "perm", {0, 2, 1, 3});
  add_list(graph, "repeats", {1, 2, 1, 1});
  add_node(graph, "Tile", {"h", "repeats"}, {"i"}, "tile");
  add_list(graph, "split", {1, 5});
  set_int(add_node(graph, "Split", {"x", "split"}, {"j", "k"}, "split"), "axis", 3);
  set_int(add_node(graph, "Concat", {"k", "j"}, {"l"}, "concat"), "axis", 3);
  add_list(graph, "sizes", {1, 4, 3, 9});
  add_node(graph, "Resize", {"l", "", "", "sizes"}, {"m"}, "resize");
  add_list(graph, "reduced", {-1, 0});
  set_int(add_node(graph, "ReduceSum", {"m", "reduced"}, {"n"}, "sum"), "keepdims", 0);
  add_weight(graph, "matrix", {3, 2}, 0.5F);
  add_node(graph, "MatMul", {"n", "matrix"}, {"o"}, "product");
  set_int(add_node(graph, "ArgMax", {"o"}, {"p"}, "largest"), "axis", -1);
  for (const char* output : {"a", "c", "i", "o", "p"}) add_output(graph, output);
  return model;
}

// Sparse constants of both forms of indices, as an initializer and in a node.
onnx::ModelProto sparse_model() {
  onnx::ModelProto model = onnx_import::make_model();
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {2, 3});
  const auto fill = [](onnx::SparseTensorProto& sparse, const char* name,
                       const std::vector<int64_t>& dims, const std::vector<int64_t>& indices,
                       int64_t tuple) {
    for (const int64_t dim : dims) sparse.add_dims(dim);
    TensorProto& values = *sparse.mutable_values();
    values.set_name(name);
    values.set_data_type(TensorProto::FLOAT);
    const int64_t stored = static_cast<int64_t>(indices.size()) / tuple;
    values.add_dims(stored);
    for (int64_t at = 0; at < stored; ++at) values.add_float_data(1.5F);
    TensorProto& places = *sparse.mutable_indices();
    places.set_data_type(TensorProto::INT64);
    places.add_dims(stored);
    if (tuple > 1) places.add_dims(tuple);
    for (const int64_t index : indices) places.add_int64_data(index);
  };
  fill(*graph.add_sparse_initializer(), "a", {3, 4}, {1, 4, 11}, 1);
  fill(*graph.add_sparse_initializer(), "b", {4, 5}, {0, 2, 3, 4}, 2);
  auto& attribute = *add_node(graph, "Constant", {}, {"c"}, "constant").add_attribute();
  attribute.set_name("sparse_value");
  attribute.set_type(onnx::AttributeProto::SPARSE_TENSOR);
  fill(*attribute.mutable_sparse_tensor(), "", {2, 5}, {5, 6, 7, 8, 9}, 1);
  add_node(graph, "MatMul", {"x", "a"}, {"d"}, "first");
  add_node(graph, "MatMul", {"d", "b"}, {"e"}, "second");
  add_node(graph, "Add", {"e", "c"}, {"y"}, "sum");
  add_output(graph, "y");
  return model;
}

class ModelFuzz : public testing::TestWithParam<onnx::ModelProto (*)()> {
 protected:
  const std::string bytes_ = GetParam()().SerializeAsString();
};

TEST_P(ModelFuzz, WholeModelIsUnderstood) {
  try {
    exercise(bytes_);
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("control flow is understood"));
  }
}

TEST_P(ModelFuzz, CutAtEveryByte) {
  for (size_t length = 0; length < bytes_.size(); ++length) {
    // An exact copy, so that a sanitizer detects each read beyond the end.
    const std::string cut(bytes_, 0, length);
    ASSERT_EQ(explain_failure(cut), "") << "cut at byte " << length;
  }
}

TEST_P(ModelFuzz, FlippedBytes) {
  constexpr int kAttempts = 10000;
  std::mt19937 random(20240607);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::string damaged = bytes_;
    // Usually one byte; sometimes several, because several errors may compensate each other.
    const int flips = 1 + (attempt % 4 == 3 ? static_cast<int>(random() % 4) : 0);
    for (int flip = 0; flip < flips; ++flip) {
      char& byte = damaged[random() % damaged.size()];
      byte = static_cast<char>(byte ^ static_cast<char>(1 + random() % 255));
    }
    ASSERT_EQ(explain_failure(damaged), "") << "attempt " << attempt;
  }
}

std::string model_name(const testing::TestParamInfo<onnx::ModelProto (*)()>& model) {
  const char* const names[] = {"Plain", "Nested", "Wide", "Sparse"};
  return names[model.index];
}

INSTANTIATE_TEST_SUITE_P(Models, ModelFuzz,
                         testing::Values(plain_model, nested_model, wide_model, sparse_model),
                         model_name);

}  // namespace
}  // namespace tessera
