// Reductions, softmaxes, normalization, pooling and small matrix products.
#include <utility>

#include "native_case.h"

namespace tessera::bench {
namespace {

using Sizes = std::vector<int64_t>;

BandwidthCase reduction(const std::string& name, const std::string& op, Sizes inner, Sizes axes,
                        const std::string& layout = "row_major") {
  BandwidthCase made = {.name = name, .make = [=](CaseGraph& graph, int64_t bytes) {
                          graph.input("x", kFloat, dims_of(bytes, 4, inner), -1, 2);
                          const auto count = static_cast<int64_t>(axes.size());
                          graph.constant("axes",
                                         Tensor::from<int64_t>(DataType::Int64, {count}, axes));
                          graph.node(op, {"x", "axes"}, {"y"}).output("y");
                        }};
  made.limit = Limit::Read;
  made.layout = layout;
  return made;
}

// One input, and `parameters` more of the sizes `each`.
BandwidthCase with_parameters(const std::string& name, const std::string& op, Sizes inner,
                              int parameters, Sizes each, Attributes attributes = {},
                              const std::string& layout = "row_major") {
  return {.name = name,
          .make =
              [=](CaseGraph& graph, int64_t bytes) {
                graph.input("x", kFloat, dims_of(bytes, 4, inner), -2, 2);
                std::vector<std::string> inputs = {"x"};
                for (int index = 0; index < parameters; ++index) {
                  inputs.push_back("p" + std::to_string(index));
                  graph.input(inputs.back(), kFloat, each, 0.5, 1);
                }
                graph.node(op, inputs, {"y"}, attributes).output("y");
              },
          .layout = layout};
}

Attributes with(const std::string& name, int64_t value) {
  Attributes attributes;
  attributes.set(name, value);
  return attributes;
}

BandwidthCase masked_softmax() {
  return {.name = "Mul, Add, Softmax of [B,12,197,197]",
          .make = [](CaseGraph& graph, int64_t bytes) {
            const float factor = 0.125F;
            graph.input("x", kFloat, dims_of(bytes, 4, {12, 197, 197}), -3, 3);
            graph.constant("factor", Tensor::from<float>(kFloat, {}, std::span(&factor, 1)));
            graph.input("mask", kFloat, {1, 1, 1, 197}, -1, 0);
            graph.node("Mul", {"x", "factor"}, {"s"}).node("Add", {"s", "mask"}, {"a"});
            graph.node("Softmax", {"a"}, {"y"}).output("y");
          }};
}

BandwidthCase pooling(const std::string& op, int64_t kernel, int64_t stride, Sizes inner,
                      const std::string& layout) {
  Attributes attributes;
  attributes.set("kernel_shape", Sizes{kernel, kernel});
  attributes.set("strides", Sizes{stride, stride});
  const int64_t pad = kernel == 2 ? 0 : kernel / 2;
  attributes.set("pads", Sizes{pad, pad, pad, pad});
  const std::string name = op + " " + std::to_string(kernel) + "x" + std::to_string(kernel) +
                           ", step " + std::to_string(stride) + ", " + layout;
  return with_parameters(name, op, std::move(inner), 0, {}, attributes, layout);
}

// Reading the weights takes most of the time.
BandwidthCase vector_by_matrix(const std::string& algorithm) {
  return {.name = "vector by matrix of 1024 columns, " + algorithm,
          .make =
              [](CaseGraph& graph, int64_t bytes) {
                const int64_t depth = bytes / 4 / 1024;
                graph.input("x", kFloat, {1, depth}, -1, 1);
                Tensor weight(kFloat, {depth, 1024});
                graph.constant("w", std::move(weight));
                graph.node("MatMul", {"x", "w"}, {"y"}).output("y");
              },
          .limit = Limit::Read,
          .algorithm = algorithm};
}

BandwidthCase matrix_by_vector() {
  return {.name = "matrix of 1024 columns by vector",
          .make =
              [](CaseGraph& graph, int64_t bytes) {
                graph.input("x", kFloat, dims_of(bytes, 4, {1024}), -1, 1);
                graph.input("w", kFloat, {1024}, -1, 1);
                graph.node("MatMul", {"x", "w"}, {"y"}).output("y");
              },
          .limit = Limit::Read,
          .algorithm = "dots"};
}

void add_poolings(std::vector<BandwidthCase>& cases) {
  for (const char* layout : {"row_major", "nhwc", "nchw16c"}) {
    cases.push_back(pooling("MaxPool", 3, 2, {64, 112, 112}, layout));
    cases.push_back(pooling("MaxPool", 2, 2, {64, 112, 112}, layout));
    cases.push_back(pooling("AveragePool", 3, 1, {64, 28, 28}, layout));
    cases.push_back(with_parameters(std::string("BatchNormalization [N,64,28,28] ") + layout,
                                    "BatchNormalization", {64, 28, 28}, 4, {64}, {}, layout));
  }
}

}  // namespace

std::vector<BandwidthCase> reduction_cases() {
  std::vector<BandwidthCase> cases = {
      reduction("ReduceSum of all", "ReduceSum", {}, {0}),
      reduction("ReduceMean of rows of 768", "ReduceMean", {768}, {1}),
      reduction("ReduceMean of rows of 64", "ReduceMean", {64}, {1}),
      reduction("ReduceMax of rows of 1024", "ReduceMax", {1024}, {1}),
      reduction("ReduceL2 of rows of 1024", "ReduceL2", {1024}, {1}),
      reduction("ReduceLogSumExp of rows of 1024", "ReduceLogSumExp", {1024}, {1}),
      reduction("ReduceSum of columns of 1024", "ReduceSum", {1024}, {0}),
      reduction("ReduceMax of columns of 1024", "ReduceMax", {1024}, {0}),
      reduction("ReduceSum of columns of 4", "ReduceSum", {4}, {0}),
      reduction("ReduceSum of [N,64,256] to [N,256]", "ReduceSum", {64, 256}, {1}),
      reduction("ReduceMean of pixels [N,64,56,56]", "ReduceMean", {64, 56, 56}, {2, 3}),
      with_parameters("Softmax of rows of 1000", "Softmax", {1000}, 0, {}),
      with_parameters("Softmax of rows of 197", "Softmax", {197}, 0, {}),
      with_parameters("Softmax of rows of 50", "Softmax", {50}, 0, {}),
      with_parameters("LogSoftmax of rows of 1000", "LogSoftmax", {1000}, 0, {}),
      with_parameters("Softmax of [N,21,32,32] over axis 1", "Softmax", {21, 32, 32}, 0, {},
                      with("axis", 1)),
      masked_softmax(),
      with_parameters("LayerNormalization of rows of 768", "LayerNormalization", {768}, 2, {768}),
      with_parameters("LayerNormalization of rows of 64", "LayerNormalization", {64}, 2, {64}),
      with_parameters("InstanceNormalization [N,64,56,56]", "InstanceNormalization", {64, 56, 56},
                      2, {64}),
      with_parameters("GroupNormalization [N,64,56,56]", "GroupNormalization", {64, 56, 56}, 2,
                      {64}, with("num_groups", 32)),
      with_parameters("LRN of 5 channels [N,64,27,27]", "LRN", {64, 27, 27}, 0, {},
                      with("size", 5)),
      vector_by_matrix("packed"),
      vector_by_matrix("panels"),
      matrix_by_vector()};
  add_poolings(cases);
  return cases;
}

}  // namespace tessera::bench
