#include "tessera/tessera.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "import/onnx/test_models.h"

namespace tessera {
namespace {

using onnx_import::add_input;
using onnx_import::add_node;
using onnx_import::add_output;
using onnx_import::add_weight;

// y = Relu(Identity(x * w)), in which both elements of w are 0.5; nothing reads the input 'unread'.
class ModelFile : public testing::Test {
 protected:
  ModelFile() {
    std::filesystem::create_directories(folder_);
    onnx::ModelProto model = onnx_import::make_model();
    onnx::GraphProto& graph = *model.mutable_graph();
    add_input(graph, "x", {1, 2});
    graph.mutable_input(0)
        ->mutable_type()
        ->mutable_tensor_type()
        ->mutable_shape()
        ->mutable_dim(0)
        ->set_dim_param("batch");
    add_input(graph, "unread", {7});
    add_weight(graph, "w", {2}, 0.5F);
    add_node(graph, "Mul", {"x", "w"}, {"product"}, "scale");
    add_node(graph, "Identity", {"product"}, {"same"}, "same");
    add_node(graph, "Relu", {"same"}, {"y"}, "relu");
    add_output(graph, "y");
    std::ofstream(file_, std::ios::binary) << model.SerializeAsString();
  }
  ~ModelFile() override { std::filesystem::remove_all(folder_); }

  static Tensor input(const std::vector<float>& elements) {
    const auto rows = static_cast<int64_t>(elements.size()) / 2;
    return Tensor::from<float>(DataType::Float32, {rows, 2}, elements);
  }
  static std::vector<float> elements(const Tensor& tensor) {
    const auto values = tensor.as<float>();
    return {values.begin(), values.end()};
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() /
      ("tessera_api_test_" + std::to_string(::getpid()) + "_" +
       testing::UnitTest::GetInstance()->current_test_info()->name());
  const std::filesystem::path file_ = folder_ / "model.onnx";
};

std::string error_text(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(ModelFile, RunsOnBoundShapes) {
  const Model model = load(file_);
  Executor executor = model.bind({.shapes = {{"x", {2, 2}}}, .threads = 1});
  EXPECT_EQ(executor.threads(), 1);
  EXPECT_EQ(executor.outputs()[0].text, "float32 2x2");
  const std::vector<Tensor> outputs = executor.run({{"x", input({2, -2, 4, 6})}});
  ASSERT_EQ(outputs.size(), 1U);
  EXPECT_THAT(elements(outputs[0]), testing::ElementsAre(1, 0, 2, 3));
}

TEST_F(ModelFile, FetchesInnerValuesThatPassesLeave) {
  const BindOptions options = {.shapes = {{"x", {1, 2}}}, .fetch = {"product", "same"}};
  EXPECT_EQ(error_text([&] { load(file_).bind(options); }),
            "InvalidArgument: fetch 'same': a pass removed this value when the model was loaded; "
            "load the model with keeps_all_values to fetch it");
  Executor executor = load(file_, {.keeps_all_values = true}).bind(options);
  const std::vector<Tensor> results = executor.run({{"x", input({2, -2})}});
  ASSERT_EQ(results.size(), 3U);
  EXPECT_THAT(elements(results[1]), testing::ElementsAre(1, -1));
  EXPECT_THAT(elements(results[2]), testing::ElementsAre(1, -1));
}

TEST_F(ModelFile, TwoExecutorsInTwoThreadsShareWeights) {
  const Model model = load(file_);
  const BindOptions options = {.shapes = {{"x", {1, 2}}}, .fetch = {"w"}, .threads = 2};
  Executor first = model.bind(options);
  Executor second = model.bind(options);
  std::vector<Tensor> first_results;
  std::vector<Tensor> second_results;
  std::thread first_thread([&] { first_results = first.run({{"x", input({2, 4})}}); });
  std::thread second_thread([&] { second_results = second.run({{"x", input({6, 8})}}); });
  first_thread.join();
  second_thread.join();
  EXPECT_THAT(elements(first_results[0]), testing::ElementsAre(1, 2));
  EXPECT_THAT(elements(second_results[0]), testing::ElementsAre(3, 4));
  EXPECT_EQ(first_results[1].data(), second_results[1].data());
}

TEST_F(ModelFile, AnExecutorOutlivesItsModel) {
  Executor executor = load(file_).bind({.shapes = {{"x", {1, 2}}}});
  EXPECT_THAT(elements(executor.run({{"x", input({2, 4})}})[0]), testing::ElementsAre(1, 2));
}

TEST_F(ModelFile, WhatIsFedIsHeldAgainstWhatWasBound) {
  Executor executor = load(file_).bind({.shapes = {{"x", {1, 2}}}, .run = {.fixed_shapes = true}});
  EXPECT_EQ(error_text([&] { executor.run({}); }),
            "InvalidArgument: input 'x': expected a tensor (float32 1x2), found none given");
  EXPECT_EQ(error_text([&] { executor.run({{"x", input({1, 2, 3, 4})}}); }),
            "InvalidArgument: input 'x': expected float32 1x2, as it was bound with fixed_shapes, "
            "found float32 2x2");
  EXPECT_EQ(error_text([&] { executor.run({{"x", input({1, 2})}, {"z", input({1, 2})}}); }),
            "InvalidArgument: input 'z': the model has no such input; it has 'x', 'unread'");
  // A mistyped name is reported, and not the input that is missing because of it.
  EXPECT_EQ(error_text([&] { executor.run({{"unred", input({1, 2})}}); }),
            "InvalidArgument: input 'unred': the model has no such input; it has 'x', 'unread'; "
            "did you mean 'unread'?");
}

TEST_F(ModelFile, StepsAreRecordedWhenAskedFor) {
  // Only the reference, which fuses nothing, so that the steps do not depend on the installed
  // libraries.
  Executor executor = load(file_).bind({.shapes = {{"x", {1, 2}}}, .backends = {"reference"}});
  executor.run({{"x", input({1, 2})}});
  EXPECT_THAT(executor.steps(), testing::IsEmpty());
  executor.record_steps(true);
  executor.run({{"x", input({1, 2})}});
  ASSERT_EQ(executor.steps().size(), 2U);
  EXPECT_EQ(executor.steps()[0].node, "scale");
  EXPECT_EQ(executor.steps()[0].bytes, 4 * (2 + 2 + 2));
}

TEST_F(ModelFile, DescribesWhatItLoaded) {
  const ModelDescription description = load(file_).describe();
  ASSERT_EQ(description.inputs.size(), 2U);
  EXPECT_EQ(description.inputs[0].text, "float32 batchx2");
  EXPECT_TRUE(description.inputs[0].is_read);
  EXPECT_FALSE(description.inputs[1].is_read);
  EXPECT_EQ(description.weight_bytes, 8);
  EXPECT_EQ(description.peak_bytes, std::nullopt);
  EXPECT_THAT(description.fetchable, testing::ElementsAre("product", "y"));
  EXPECT_EQ(load(file_).describe({{"x", {3, 2}}}).peak_bytes, 2 * 24);
}

TEST_F(ModelFile, WarningsGoToTheCallback) {
  std::ifstream source(file_, std::ios::binary);
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromIstream(&source));
  onnx_import::set_type(*model.mutable_graph()->add_value_info(), "product", {3, 3});
  std::ofstream(file_, std::ios::binary) << model.SerializeAsString();
  std::vector<std::string> messages;
  load(file_, {.log = [&](const std::string& message) { messages.push_back(message); }});
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_THAT(messages[0], testing::HasSubstr("product"));
  EXPECT_THAT(error_text([&] { load(file_, {.is_strict = true}); }), testing::HasSubstr("product"));
}

}  // namespace
}  // namespace tessera
