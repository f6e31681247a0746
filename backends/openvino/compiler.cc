#include "compiler.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <limits>
#include <mutex>
#include <openvino/op/add.hpp>
#include <openvino/op/clamp.hpp>
#include <openvino/op/constant.hpp>
#include <openvino/op/convolution.hpp>
#include <openvino/op/group_conv.hpp>
#include <openvino/op/less.hpp>
#include <openvino/op/matmul.hpp>
#include <openvino/op/maximum.hpp>
#include <openvino/op/minimum.hpp>
#include <openvino/op/multiply.hpp>
#include <openvino/op/prelu.hpp>
#include <openvino/op/relu.hpp>
#include <openvino/op/select.hpp>
#include <openvino/openvino.hpp>
#include <optional>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::openvino {

namespace {

using plugin::Buffer;
using plugin::Failure;
using plugin::Type;

ov::element::Type element_of(int32_t data_type) {
  switch (data_type) {
    case TESSERA_FLOAT32:
      return ov::element::f32;
    case TESSERA_INT32:
      return ov::element::i32;
    case TESSERA_INT64:
      return ov::element::i64;
    case TESSERA_BOOL:
      return ov::element::boolean;
    default:
      throw Failure(TESSERA_INTERNAL, "a region has a value of a type that is not in the table");
  }
}

ov::Shape shape_of(const Type& type) { return {type.dims.begin(), type.dims.end()}; }

std::string text_of(const ov::Output<const ov::Node>& port) {
  return port.get_element_type().to_string() + " " + port.get_partial_shape().to_string();
}

// Returns only the error: messages of OpenVINO begin with the source locations they come from, and
// may end with a summary.
std::string reason_of(const ov::Exception& exception) {
  std::string text = exception.what();
  text.resize(std::min(text.size(), text.find("\nSummary:")));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const size_t start = text.rfind('\n');
  return start == std::string::npos ? text : text.substr(start + 1);
}

// One inference at a time, on memory of the caller.
ov::AnyMap settings(int32_t threads) {
  return {ov::hint::performance_mode(ov::hint::PerformanceMode::LATENCY),
          ov::hint::inference_precision(ov::element::f32),
          ov::hint::dynamic_quantization_group_size(0),
          ov::hint::kv_cache_precision(ov::element::f32),
          ov::hint::enable_cpu_pinning(false),
          ov::hint::enable_cpu_reservation(false),
          ov::hint::enable_hyper_threading(true),
          ov::hint::scheduling_core_type(ov::hint::SchedulingCoreType::ANY_CORE),
          ov::num_streams(1),
          ov::inference_num_threads(threads)};
}

// Replaces the inputs that stand for weights by constants.
void take_weights(ov::Model& network, const RegionModel& model, std::span<const Buffer> weights) {
  const ov::ParameterVector parameters = network.get_parameters();
  if (parameters.size() != model.inputs.size() + model.weights.size() ||
      weights.size() != model.weights.size()) {
    throw Failure(TESSERA_INTERNAL, "OpenVINO read a region with " +
                                        std::to_string(parameters.size()) + " inputs, expected " +
                                        std::to_string(model.inputs.size() + weights.size()));
  }
  for (size_t index = 0; index < weights.size(); ++index) {
    const std::shared_ptr<ov::op::v0::Parameter>& parameter =
        parameters[model.inputs.size() + index];
    // The host owns the elements and keeps them as long as the kernel.
    const auto constant = std::make_shared<ov::op::v0::Constant>(
        element_of(weights[index].data_type), shape_of(model.weights[index]), weights[index].data,
        nullptr);
    constant->set_friendly_name(parameter->get_friendly_name());
    parameter->output(0).replace(constant->output(0));
    network.remove_parameter(parameter);
  }
  network.validate_nodes_and_infer_types();
}

ov::Output<ov::Node> number(float value) {
  return ov::op::v0::Constant::create(ov::element::f32, ov::Shape{}, {value});
}

enum class MatMulKind : uint8_t { None, Convolution, MatMul };

// The node that computes `value`, before a bias, a scale or a sum.
MatMulKind matmul_before(const ov::Output<ov::Node>& value, int furthest = 3) {
  const ov::Node* node = value.get_node();
  if (ov::is_type<ov::op::v1::Convolution>(node) ||
      ov::is_type<ov::op::v1::GroupConvolution>(node)) {
    return MatMulKind::Convolution;
  }
  if (ov::is_type<ov::op::v0::MatMul>(node)) return MatMulKind::MatMul;
  if (!ov::is_type<ov::op::v1::Add>(node) && !ov::is_type<ov::op::v1::Multiply>(node)) {
    return MatMulKind::None;
  }
  if (furthest == 0) return MatMulKind::None;
  for (const ov::Output<ov::Node>& input : node->input_values()) {
    const MatMulKind found = matmul_before(input, furthest - 1);
    if (found != MatMulKind::None) return found;
  }
  return MatMulKind::None;
}

// Zeros along the axis of the slopes of a PReLU that OpenVINO fuses into the matmul or convolution
// before `input`; nullopt if there is none, or if there would be only one zero: OpenVINO turns a
// PReLU with a single slope of 0 into a maximum. A product of four dimensions takes its slopes
// along axis 1, and is not compiled if there are not as many of them as columns.
std::optional<ov::Output<ov::Node>> slopes_of_zero(const ov::Output<ov::Node>& input) {
  const MatMulKind kind = matmul_before(input);
  if (kind == MatMulKind::None || input.get_partial_shape().is_dynamic()) return std::nullopt;
  const ov::Shape& shape = input.get_shape();
  if (shape.size() < 2) return std::nullopt;
  const bool has_channels = kind == MatMulKind::Convolution || shape.size() > 3;
  const auto axis = static_cast<std::ptrdiff_t>(has_channels ? 1 : shape.size() - 1);
  if (shape[axis] < 2) return std::nullopt;
  if (kind == MatMulKind::MatMul && shape[axis] != shape.back()) return std::nullopt;
  ov::Shape slopes(shape.size(), 1);
  slopes[axis] = shape[axis];
  return ov::op::v0::Constant::create(ov::element::f32, slopes, std::vector<float>(shape[axis], 0));
}

// In OpenVINO, Less is false for NaN, so NaN stays; Greater is true.
ov::Output<ov::Node> at_least(const ov::Output<ov::Node>& input, float low) {
  const auto is_below = std::make_shared<ov::op::v1::Less>(input, number(low));
  return std::make_shared<ov::op::v1::Select>(is_below, number(low), input);
}

ov::Output<ov::Node> at_most(const ov::Output<ov::Node>& input, float high) {
  const auto is_above = std::make_shared<ov::op::v1::Less>(number(high), input);
  return std::make_shared<ov::op::v1::Select>(is_above, number(high), input);
}

// Relu and Clip that keep NaN. Both begin with a maximum, which in OpenVINO gives the number for
// NaN. After a matmul or convolution, a PReLU with slopes of 0 compares and multiplies, so that NaN
// stays; a Clamp without a lower bound before it turns NaN into -infinity, and the PReLU turns that
// into NaN. Because it does so with every -infinity, numbers are compared and selected if there is
// no matmul.
ov::Output<ov::Node> between(const ov::Output<ov::Node>& input, float low, float high) {
  constexpr float kMaxFloat = std::numeric_limits<float>::max();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (std::isnan(low) || std::isnan(high)) {
    return std::make_shared<ov::op::v1::Multiply>(input, number(low + high));
  }
  const bool has_high = high < kMaxFloat;
  if (low == 0 && high >= 0) {
    if (const auto slopes = slopes_of_zero(input)) {
      const ov::Output<ov::Node> below =
          has_high ? std::make_shared<ov::op::v0::Clamp>(input, -kInfinity, high) : input;
      return std::make_shared<ov::op::v0::PRelu>(below, *slopes);
    }
  }
  // Even without bounds something must be computed: an output that is an input would not be
  // written.
  const ov::Output<ov::Node> raised = at_least(input, low > -kMaxFloat ? low : -kInfinity);
  return has_high ? at_most(raised, high) : raised;
}

// A node that clips: a Clamp, or the pair of Maximum and Minimum as which OpenVINO reads a Clip
// with bounds as inputs. No other node of a region that keeps NaN has these types.
struct Clip {
  ov::Output<ov::Node> input;
  double low = 0;
  double high = 0;
};

struct Bounded {
  ov::Output<ov::Node> input;
  double bound = 0;
};

// The constant input of a Maximum or Minimum, and the other one.
template <class Op>
std::optional<Bounded> bounded_of(const std::shared_ptr<ov::Node>& node) {
  if (!ov::is_type<Op>(node)) return std::nullopt;
  for (const size_t index : {size_t{0}, size_t{1}}) {
    const auto constant =
        ov::as_type_ptr<ov::op::v0::Constant>(node->get_input_node_shared_ptr(index));
    if (constant == nullptr || ov::shape_size(constant->get_shape()) != 1) continue;
    return Bounded{node->input_value(1 - index), constant->cast_vector<double>()[0]};
  }
  return std::nullopt;
}

std::optional<Clip> clip_of(const std::shared_ptr<ov::Node>& node) {
  if (const auto clamp = ov::as_type_ptr<ov::op::v0::Clamp>(node)) {
    return Clip{node->input_value(0), clamp->get_min(), clamp->get_max()};
  }
  const std::optional<Bounded> above = bounded_of<ov::op::v1::Minimum>(node);
  if (!above) return std::nullopt;
  const auto below = bounded_of<ov::op::v1::Maximum>(above->input.get_node_shared_ptr());
  if (!below) return std::nullopt;
  return Clip{below->input, below->bound, above->bound};
}

// Rewrites Relu and Clip so that they keep NaN.
void keep_nan(ov::Model& network) {
  constexpr float kMaxFloat = std::numeric_limits<float>::max();
  for (const std::shared_ptr<ov::Node>& node : network.get_ordered_ops()) {
    ov::Output<ov::Node> other;
    if (ov::is_type<ov::op::v0::Relu>(node)) other = between(node->input_value(0), 0, kMaxFloat);
    if (const std::optional<Clip> clip = clip_of(node)) {
      other = between(clip->input, static_cast<float>(clip->low), static_cast<float>(clip->high));
    }
    if (other.get_node() == nullptr) continue;
    other.get_node()->set_friendly_name(node->get_friendly_name());
    node->output(0).replace(other);
  }
}

// Whether OpenVINO uses the slopes of a PReLU along another axis than ONNX says: slopes of a single
// dimension along axis 1, and all behind a product of four or more dimensions, with which it fuses
// the PReLU, along the columns.
bool has_slopes_elsewhere(const ov::Output<ov::Node>& input, const ov::Shape& slopes) {
  if (ov::shape_size(slopes) < 2) return false;
  const size_t dimensions = input.get_shape().size();
  if (slopes.size() == 1) return dimensions > 2;
  return dimensions > 3 && matmul_before(input) == MatMulKind::MatMul;
}

// Computes such PReLUs by selections.
void place_slopes(ov::Model& network) {
  for (const std::shared_ptr<ov::Node>& node : network.get_ordered_ops()) {
    if (!ov::is_type<ov::op::v0::PRelu>(node)) continue;
    const ov::Output<ov::Node> input = node->input_value(0);
    const ov::Output<ov::Node> slopes = node->input_value(1);
    if (!has_slopes_elsewhere(input, slopes.get_shape())) continue;
    const auto scaled = std::make_shared<ov::op::v1::Multiply>(input, slopes);
    const auto is_below = std::make_shared<ov::op::v1::Less>(input, number(0));
    const auto other = std::make_shared<ov::op::v1::Select>(is_below, scaled, input);
    other->set_friendly_name(node->get_friendly_name());
    node->output(0).replace(other);
  }
}

void check_ports(const std::vector<ov::Output<const ov::Node>>& found,
                 const std::vector<Type>& expected, const std::string& side) {
  if (found.size() != expected.size()) {
    throw Failure(TESSERA_UNSUPPORTED, "OpenVINO made a region with " +
                                           std::to_string(found.size()) + " " + side +
                                           "s, expected " + std::to_string(expected.size()));
  }
  for (size_t index = 0; index < found.size(); ++index) {
    const bool is_equal =
        found[index].get_element_type() == element_of(expected[index].data_type) &&
        found[index].get_partial_shape() == ov::PartialShape(shape_of(expected[index]));
    if (is_equal) continue;
    throw Failure(TESSERA_UNSUPPORTED, "OpenVINO made " + side + " " + std::to_string(index) + " " +
                                           text_of(found[index]) + ", expected " +
                                           expected[index].shape_text());
  }
}

// The ports of a network, or of a compiled one.
template <class Whole>
void check_ports(const Whole& whole, const RegionModel& model) {
  check_ports(whole.inputs(), model.inputs, "input");
  check_ports(whole.outputs(), model.outputs, "output");
}

// One inference at a time, on memory of the caller's.
class Request {
 public:
  Request(ov::CompiledModel& compiled, const RegionModel& model)
      : request_(compiled.create_infer_request()),
        inputs_(model.inputs.size(), nullptr),
        outputs_(model.outputs.size(), nullptr) {}

  void run(std::span<const Buffer> inputs, std::span<const Buffer> outputs) {
    for (size_t index = 0; index < inputs.size(); ++index) {
      if (!changes(inputs_[index], inputs[index])) continue;
      request_.set_input_tensor(index, tensor_over(inputs[index]));
    }
    for (size_t index = 0; index < outputs.size(); ++index) {
      if (!changes(outputs_[index], outputs[index])) continue;
      request_.set_output_tensor(index, tensor_over(outputs[index]));
    }
    request_.infer();
  }

 private:
  // In a plan, most buffers are the same as in the previous run.
  static bool changes(const void*& known, const Buffer& buffer) {
    return std::exchange(known, buffer.data) != buffer.data;
  }

  static ov::Tensor tensor_over(const Buffer& buffer) {
    const auto sizes = buffer.sizes();
    return {element_of(buffer.data_type), ov::Shape(sizes.begin(), sizes.end()), buffer.data};
  }

  ov::InferRequest request_;
  std::vector<const void*> inputs_;
  std::vector<const void*> outputs_;
};

// The bytes must stay valid.
ov::CompiledModel import_from(ov::Core& core, std::string_view bytes, int32_t threads) {
  // OpenVINO only reads them.
  const ov::Tensor stored(ov::element::u8, {bytes.size()}, const_cast<char*>(bytes.data()));
  return core.import_model(stored, "CPU", settings(threads));
}

// Reproducible numbers: floating-point numbers from -1 to 1; integers are 0, which is a valid
// index.
ov::Tensor example_of(const ov::Output<const ov::Node>& port) {
  ov::Tensor tensor(port.get_element_type(), port.get_shape());
  std::memset(tensor.data(), 0, tensor.get_byte_size());
  if (port.get_element_type() != ov::element::f32) return tensor;
  std::minstd_rand generator(1);
  std::uniform_real_distribution<float> distribution(-1, 1);
  std::generate_n(tensor.data<float>(), tensor.get_size(), [&] { return distribution(generator); });
  return tensor;
}

std::vector<ov::Tensor> run_once(ov::CompiledModel& compiled) {
  ov::InferRequest request = compiled.create_infer_request();
  const auto& inputs = std::as_const(compiled).inputs();
  for (size_t index = 0; index < inputs.size(); ++index) {
    request.set_input_tensor(index, example_of(inputs[index]));
  }
  request.infer();
  std::vector<ov::Tensor> outputs;
  for (size_t index = 0; index < std::as_const(compiled).outputs().size(); ++index) {
    outputs.push_back(request.get_output_tensor(index));
  }
  return outputs;
}

// OpenVINO may import another network than it exported: 2026.4, for example, gives another final
// state of an LSTM.
bool compute_the_same(ov::CompiledModel& left, ov::CompiledModel& right) {
  return std::ranges::equal(
      run_once(left), run_once(right), [](const ov::Tensor& one, const ov::Tensor& other) {
        return one.get_byte_size() == other.get_byte_size() &&
               std::memcmp(one.data(), other.data(), one.get_byte_size()) == 0;
      });
}

class RegionKernel : public plugin::Kernel {
 public:
  // `core` must outlive it.
  RegionKernel(ov::Core& core, ov::CompiledModel compiled, const RegionModel& model,
               int32_t threads)
      : core_(core),
        threads_(threads),
        compiled_(std::move(compiled)),
        // The data that runs need.
        model_{.inputs = model.inputs, .outputs = model.outputs} {
    idle_.push_back(std::make_unique<Request>(compiled_, model_));
  }

  void run(plugin::RunContext& /*context*/, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    std::unique_ptr<Request> request = take();
    try {
      request->run(inputs, outputs);
    } catch (const ov::Exception& exception) {
      // A request that failed is not used again.
      throw Failure(TESSERA_DEVICE_FAILED, reason_of(exception));
    }
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(request));
  }

  // Empty if the imported network would compute something else.
  std::optional<std::string> save() const override {
    try {
      // A handle; OpenVINO has no const way to export.
      ov::CompiledModel compiled = compiled_;
      std::ostringstream stream;
      compiled.export_model(stream);
      std::string bytes = std::move(stream).str();
      ov::CompiledModel again = import_from(core_, bytes, threads_);
      if (!compute_the_same(compiled, again)) return std::nullopt;
      return bytes;
    } catch (const ov::Exception& exception) {
      throw Failure(TESSERA_UNSUPPORTED, reason_of(exception));
    }
  }

 private:
  // Concurrent callers have a request each.
  std::unique_ptr<Request> take() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<Request> request = std::move(idle_.back());
        idle_.pop_back();
        return request;
      }
    }
    return std::make_unique<Request>(compiled_, model_);
  }

  ov::Core& core_;
  int32_t threads_;
  ov::CompiledModel compiled_;
  RegionModel model_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Request>> idle_;
};

class OpenvinoCompiler : public Compiler {
 public:
  std::unique_ptr<plugin::Kernel> compile(const RegionModel& model,
                                          const plugin::BuildOptions& options) override {
    try {
      const std::shared_ptr<ov::Model> network = core_.read_model(model.onnx, ov::Tensor());
      take_weights(*network, model, options.absorbed);
      place_slopes(*network);
      if (model.keeps_nan) keep_nan(*network);
      check_ports(std::as_const(*network), model);
      return std::make_unique<RegionKernel>(
          core_, core_.compile_model(network, "CPU", settings(options.threads)), model,
          options.threads);
    } catch (const ov::Exception& exception) {
      throw Failure(TESSERA_UNSUPPORTED, reason_of(exception));
    }
  }

  std::unique_ptr<plugin::Kernel> load(const RegionModel& model, int32_t threads,
                                       std::string_view bytes) override {
    try {
      ov::CompiledModel compiled = import_from(core_, bytes, threads);
      check_ports(std::as_const(compiled), model);
      return std::make_unique<RegionKernel>(core_, std::move(compiled), model, threads);
    } catch (const ov::Exception& exception) {
      throw Failure(TESSERA_UNSUPPORTED, reason_of(exception));
    }
  }

 private:
  ov::Core core_;
};

}  // namespace

}  // namespace tessera::openvino

extern "C" __attribute__((visibility("default"))) tessera::openvino::Compiler*
tessera_openvino_make_compiler() {
  return new tessera::openvino::OpenvinoCompiler();
}
