// Several executors of one model that run concurrently.
#include <gmock/gmock.h>
#include <unistd.h>

#include "base/files/temporary_folder_test.h"
#include "base/tensor/tensors_test.h"
#include "base/threads/threads_test.h"
#include "import/onnx/test_models.h"
#include "tessera/tessera.h"

namespace tessera {
namespace {

constexpr int kExecutors = 8;
constexpr int kRuns = 20;
constexpr int64_t kRows = 24;
constexpr int64_t kColumns = 40;

// y = Softmax(Relu(x * w) * v) + x, with enough elements for several threads.
std::string model_bytes() {
  onnx::ModelProto model = onnx_import::make_model();
  onnx::GraphProto& graph = *model.mutable_graph();
  onnx_import::add_input(graph, "x", {kRows, kColumns});
  onnx_import::add_weight(graph, "w", {kColumns, kColumns}, 0.125F);
  onnx_import::add_weight(graph, "v", {kColumns}, 0.25F);
  onnx_import::add_node(graph, "MatMul", {"x", "w"}, {"product"}, "product");
  onnx_import::add_node(graph, "Relu", {"product"}, {"positive"}, "relu");
  onnx_import::add_node(graph, "Mul", {"positive", "v"}, {"scaled"}, "scale");
  onnx_import::add_node(graph, "Softmax", {"scaled"}, {"shares"}, "softmax");
  onnx_import::add_node(graph, "Add", {"shares", "x"}, {"y"}, "add");
  onnx_import::add_output(graph, "y");
  return model.SerializeAsString();
}

// A tensor that differs for each executor.
Tensor input_of(int executor) {
  Tensor tensor(DataType::Float32, {kRows, kColumns});
  int64_t index = 0;
  for (float& element : tensor.mutable_as<float>()) {
    element = static_cast<float>((index++ * 7 + executor) % 23) / 23.0F;
  }
  return tensor;
}

TEST(Executors, EightAtOnceGiveEachItsOwnBits) {
  const TemporaryFolder folder;
  const Model model = load(folder.write("model.onnx", model_bytes()), {.threads = 1});
  std::vector<Tensor> expected;
  Executor one = model.bind({.threads = 2});
  for (int index = 0; index < kExecutors; ++index) {
    expected.push_back(one.run({{"x", input_of(index)}})[0]);
  }
  std::vector<int> equal(kExecutors, 0);
  run_at_once(kExecutors, [&](int index) {
    const auto at = static_cast<size_t>(index);
    Executor executor = model.bind({.threads = 2});
    executor.bind_input("x", input_of(index));
    Tensor output(DataType::Float32, {kRows, kColumns});
    executor.bind_output("y", output);
    for (int run = 0; run < kRuns; ++run) {
      executor.run_bound();
      equal[at] += has_same_bits(output, expected[at]) ? 1 : 0;
    }
  });
  EXPECT_THAT(equal, testing::Each(kRuns));
}

}  // namespace
}  // namespace tessera
