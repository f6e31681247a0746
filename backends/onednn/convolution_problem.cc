#include <algorithm>
#include <numeric>

#include "convolution.h"

namespace tessera::onednn {

using dnnl::memory;
using plugin::Failure;
using plugin::Node;

namespace {

// ConvTranspose stores {inputs, outputs of a group, taps}; oneDNN counts outputs first.
void swap_channels(memory::dims& dims, memory::dims& strides, size_t first) {
  std::swap(dims[first], dims[first + 1]);
  std::swap(strides[first], strides[first + 1]);
}

memory::dims dense_strides(const memory::dims& dims) {
  memory::dims strides(dims.size(), 1);
  for (size_t axis = dims.size() - 1; axis > 0; --axis) {
    strides[axis - 1] = strides[axis] * dims[axis];
  }
  return strides;
}

void set_weights(ConvolutionProblem& problem, memory::dims dims) {
  if (problem.groups > 1) {
    dims.front() /= problem.groups;
    dims.insert(dims.begin(), problem.groups);
  }
  memory::dims strides = dense_strides(dims);
  if (problem.is_transposed) swap_channels(dims, strides, problem.groups > 1 ? 1 : 0);
  problem.stored_weights = memory::desc(dims, memory::data_type::f32, strides);
  problem.weights = std::move(dims);
}

void append(std::string& key, const memory::dims& numbers) {
  for (const int64_t number : numbers) key += std::to_string(number) + ",";
  key += ";";
}

memory::desc describe_or_any(std::optional<Format> format, const memory::dims& dims) {
  return format ? describe(*format, dims) : describe_any(dims);
}

}  // namespace

double ConvolutionProblem::flops() const {
  // Each weight is multiplied with each pixel of the smaller side.
  const memory::dims& pixels = is_transposed ? input : output;
  double products = static_cast<double>(pixels[0]);
  for (size_t axis = 2; axis < pixels.size(); ++axis) {
    products *= static_cast<double>(pixels[axis]);
  }
  for (const int64_t dim : weights) products *= static_cast<double>(dim);
  return 2 * products;
}

std::string ConvolutionProblem::key() const {
  std::string key = is_transposed ? "t" : "c";
  key += has_bias ? "b" : "";
  key += has_constant_weights ? "" : "v";
  append(key, input);
  append(key, output);
  append(key, weights);
  append(key, window.strides);
  append(key, window.dilations);
  append(key, window.pads_begin);
  append(key, window.pads_end);
  return key;
}

ConvolutionProblem convolution_problem(const Node& node) {
  for (size_t index = 0; index < node.input_count(); ++index) {
    if (!node.input(index).is_present()) continue;
    const auto reason = explain_unusable(node.input(index));
    if (reason) throw Failure(TESSERA_UNSUPPORTED, *reason);
  }
  const auto reason = explain_unusable(node.output(0));
  if (reason) throw Failure(TESSERA_UNSUPPORTED, *reason);
  ConvolutionProblem problem;
  problem.is_transposed = node.op() == "ConvTranspose";
  problem.has_bias = node.input(2).is_present();
  problem.groups = node.attributes().get_int("group", 1);
  problem.input = node.input(0).type().dims;
  problem.output = node.output(0).type().dims;
  problem.has_constant_weights = node.input(1).is_constant();
  const memory::dims weights = node.input(1).type().dims;
  const memory::dims kernel = spatial(weights);
  if (kernel.size() > 3) throw Failure(TESSERA_UNSUPPORTED, "has more than three spatial axes");
  const auto window = problem.is_transposed ? transposed_window_of : window_of;
  problem.window =
      window(node.attributes(), kernel, spatial(problem.input), spatial(problem.output));
  set_weights(problem, weights);
  return problem;
}

const dnnl::primitive_desc_base& ConvolutionDescription::base() const {
  return std::visit([](const auto& held) -> const dnnl::primitive_desc_base& { return held; },
                    description_);
}

bool ConvolutionDescription::is_reference() const {
  return std::string_view(base().impl_info_str()).find("ref") != std::string_view::npos;
}

double ConvolutionDescription::slowness(const ConvolutionProblem& problem) const {
  const std::string_view name = base().impl_info_str();
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (has("ref")) return 100;
  double slowness = has("avx2") || has("sse41") ? 2 : 1;
  if (has("gemm")) {
    // A pointwise convolution is a matrix product. Others first gather their windows. With one
    // channel there is no matrix product.
    if (problem.window.taps() != 1) slowness = 1.5;
    if (problem.groups > 1) slowness = 4;
    if (problem.groups > 1 && problem.groups == problem.output[1]) slowness = 30;
  }
  return slowness;
}

ConvolutionDescription describe_convolution(const Context& context,
                                            const ConvolutionProblem& problem,
                                            std::optional<Format> input,
                                            std::optional<Format> output,
                                            const dnnl::post_ops& operations) {
  const memory::desc source = describe_or_any(input, problem.input);
  const memory::desc target = describe_or_any(output, problem.output);
  // Weights that are known only at run time cannot be packed.
  const memory::desc weights =
      problem.has_constant_weights
          ? memory::desc(problem.weights, memory::data_type::f32, memory::format_tag::any)
          : problem.stored_weights;
  const memory::desc bias =
      problem.has_bias ? describe(Format::RowMajor, {problem.output[1]}) : memory::desc();
  dnnl::primitive_attr attributes = context.attributes();
  attributes.set_post_ops(operations);
  const Window& window = problem.window;
  if (problem.is_transposed) {
    return ConvolutionDescription(dnnl::deconvolution_forward::primitive_desc(
        context.engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::deconvolution_direct,
        source, weights, bias, target, window.strides, window.dilations, window.pads_begin,
        window.pads_end, attributes, true));
  }
  return ConvolutionDescription(dnnl::convolution_forward::primitive_desc(
      context.engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
      source, weights, bias, target, window.strides, window.dilations, window.pads_begin,
      window.pads_end, attributes, true));
}

}  // namespace tessera::onednn
