#include "tessera/tessera.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/errors/error_test.h"
#include "base/files/temporary_folder_test.h"
#include "base/matchers_test.h"
#include "base/tensor/tensors_test.h"
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
    onnx::ModelProto model = onnx_import::make_model();
    onnx::GraphProto& graph = *model.mutable_graph();
    add_input(graph, "x", {1, 2});
    onnx_import::name_dimension(graph, 0, 0, "batch");
    add_input(graph, "unread", {7});
    add_weight(graph, "w", {2}, 0.5F);
    add_node(graph, "Mul", {"x", "w"}, {"product"}, "scale");
    add_node(graph, "Identity", {"product"}, {"same"}, "same");
    add_node(graph, "Relu", {"same"}, {"y"}, "relu");
    add_output(graph, "y");
    write_text(file_, model.SerializeAsString());
  }

  static Tensor input(const std::vector<float>& elements) {
    return floats({static_cast<int64_t>(elements.size()) / 2, 2}, elements);
  }

  const TemporaryFolder folder_;
  const std::filesystem::path file_ = folder_ / "model.onnx";
};

TEST_F(ModelFile, RunsOnBoundShapes) {
  const Model model = load(file_);
  Executor executor = model.bind({.shapes = {{"x", {2, 2}}}, .threads = 1});
  EXPECT_EQ(executor.threads(), 1);
  EXPECT_EQ(executor.outputs()[0].text, "float32 2x2");
  const std::vector<Tensor> outputs = executor.run({{"x", input({2, -2, 4, 6})}});
  ASSERT_EQ(outputs.size(), 1U);
  EXPECT_THAT(values(outputs[0]), ElementsAre(1, 0, 2, 3));
}

TEST_F(ModelFile, FetchesInnerValuesThatPassesLeave) {
  const BindOptions options = {.shapes = {{"x", {1, 2}}}, .fetch = {"product", "same"}};
  EXPECT_EQ(error_of([&] { load(file_).bind(options); }),
            "InvalidArgument: fetch 'same': a pass removed this value when the model was loaded; "
            "load the model with keeps_all_values to fetch it");
  Executor executor = load(file_, {.keeps_all_values = true}).bind(options);
  const std::vector<Tensor> results = executor.run({{"x", input({2, -2})}});
  ASSERT_EQ(results.size(), 3U);
  EXPECT_THAT(values(results[1]), ElementsAre(1, -1));
  EXPECT_THAT(values(results[2]), ElementsAre(1, -1));
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
  EXPECT_THAT(values(first_results[0]), ElementsAre(1, 2));
  EXPECT_THAT(values(second_results[0]), ElementsAre(3, 4));
  EXPECT_EQ(first_results[1].data(), second_results[1].data());
}

TEST_F(ModelFile, AnExecutorOutlivesItsModel) {
  Executor executor = load(file_).bind({.shapes = {{"x", {1, 2}}}});
  EXPECT_THAT(values(executor.run({{"x", input({2, 4})}})[0]), ElementsAre(1, 2));
}

TEST_F(ModelFile, WhatIsFedIsHeldAgainstWhatWasBound) {
  Executor executor = load(file_).bind({.shapes = {{"x", {1, 2}}}, .run = {.fixed_shapes = true}});
  EXPECT_EQ(error_of([&] { executor.run({}); }),
            "InvalidArgument: input 'x': expected a tensor (float32 1x2), found none given");
  EXPECT_EQ(error_of([&] { executor.run({{"x", input({1, 2, 3, 4})}}); }),
            "InvalidArgument: input 'x': expected float32 1x2, as it was bound with fixed_shapes, "
            "found float32 2x2");
  EXPECT_EQ(error_of([&] { executor.run({{"x", input({1, 2})}, {"z", input({1, 2})}}); }),
            "InvalidArgument: input 'z': the model has no such input; it has 'x', 'unread'");
  // A mistyped name is reported, and not the input that is missing because of it.
  EXPECT_EQ(error_of([&] { executor.run({{"unred", input({1, 2})}}); }),
            "InvalidArgument: input 'unred': the model has no such input; it has 'x', 'unread'; "
            "did you mean 'unread'?");
}

TEST_F(ModelFile, StepsAreRecordedWhenAskedFor) {
  // Only the reference, which fuses nothing, so that the steps do not depend on the installed
  // libraries.
  Executor executor = load(file_).bind({.shapes = {{"x", {1, 2}}}, .backends = {"reference"}});
  executor.run({{"x", input({1, 2})}});
  EXPECT_THAT(executor.steps(), IsEmpty());
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
  EXPECT_THAT(description.fetchable, ElementsAre("product", "y"));
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
  EXPECT_THAT(messages[0], HasSubstr("product"));
  EXPECT_THAT(error_of([&] { load(file_, {.is_strict = true}); }), HasSubstr("product"));
}

}  // namespace
}  // namespace tessera
