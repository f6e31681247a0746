#include "ops/recurrent/recurrence.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "ops/check_shape.h"
#include "ops/matmul/dense_operand.h"
#include "tessera/error.h"

namespace tessera::ops {
namespace {

bool is_batch_first(const Node& node) {
  const int64_t* layout = node.attributes.find_int("layout");
  return layout != nullptr && *layout != 0;
}

// --- Activation functions ------------------------------------------------------------------------

// A known activation function.
struct Known {
  const char* name;  // in lower case
  double (*function)(double, double, double);
  std::optional<double> alpha;  // the default; nullopt if the function has no such parameter
  std::optional<double> beta;
};

double sigmoid(double x, double, double) { return 1 / (1 + std::exp(-x)); }
double tanh(double x, double, double) { return std::tanh(x); }
double relu(double x, double, double) { return x < 0 ? 0 : x; }
double affine(double x, double alpha, double beta) { return alpha * x + beta; }
double leaky_relu(double x, double alpha, double) { return x < 0 ? alpha * x : x; }
double thresholded_relu(double x, double alpha, double) { return x > alpha ? x : 0; }
double scaled_tanh(double x, double alpha, double beta) { return alpha * std::tanh(beta * x); }
double hard_sigmoid(double x, double alpha, double beta) {
  return std::clamp(alpha * x + beta, 0.0, 1.0);
}
double elu(double x, double alpha, double) { return x < 0 ? alpha * std::expm1(x) : x; }
double softsign(double x, double, double) { return x / (1 + std::abs(x)); }
double softplus(double x, double, double) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}

const std::array<Known, 11> kKnown = {{{"sigmoid", sigmoid, {}, {}},
                                       {"tanh", tanh, {}, {}},
                                       {"relu", relu, {}, {}},
                                       {"affine", affine, 1.0, 0.0},
                                       {"leakyrelu", leaky_relu, 0.01, {}},
                                       {"thresholdedrelu", thresholded_relu, 1.0, {}},
                                       {"scaledtanh", scaled_tanh, 1.0, 1.0},
                                       {"hardsigmoid", hard_sigmoid, 0.2, 0.5},
                                       {"elu", elu, 1.0, {}},
                                       {"softsign", softsign, {}, {}},
                                       {"softplus", softplus, {}, {}}}};

// ONNX's names. Files differ in their use of upper and lower case.
const Known& find_known(const Node& node, std::string_view name) {
  const auto is_same_letter = [](char left, char right) {
    return std::tolower(static_cast<unsigned char>(left)) == right;
  };
  const auto found = std::find_if(kKnown.begin(), kKnown.end(), [&](const Known& known) {
    return std::ranges::equal(name, std::string_view(known.name), is_same_letter);
  });
  if (found == kKnown.end()) {
    throw Error(ErrorKind::InvalidModel, location_of(node) + ", attribute 'activations'",
                "expected names of activation functions (Sigmoid, Tanh, Relu, Affine, LeakyRelu, "
                "ThresholdedRelu, ScaledTanh, HardSigmoid, Elu, Softsign or Softplus), found '" +
                    std::string(name) + "'");
  }
  return *found;
}

// Takes the next given value, for a function that has the parameter.
double next_parameter(const std::vector<float>* given, size_t& used,
                      const std::optional<double>& fallback) {
  if (!fallback) return 0;
  if (given == nullptr || used >= given->size()) return *fallback;
  return (*given)[used++];
}

// The `count` names in the node's attribute; nullptr if the defaults apply.
const std::vector<std::string>* given_names(const Node& node, std::span<const char* const> defaults,
                                            size_t count) {
  const std::vector<std::string>* given = node.attributes.find_strings("activations");
  if (given == nullptr) return nullptr;
  // ONNX's default for RNN has two functions, for two directions, whatever the number of
  // directions.
  const bool is_default = defaults.size() == 1 && given->size() == 2 &&
                          (*given)[0] == defaults[0] && (*given)[1] == defaults[0];
  if (is_default) return nullptr;
  if (given->size() != count) {
    throw Error(
        ErrorKind::InvalidModel, location_of(node) + ", attribute 'activations'",
        "expected " + std::to_string(count) + " names, found " + std::to_string(given->size()));
  }
  return given;
}

// The functions of each direction in order; `defaults` apply to each direction if the node names
// none. The values of activation_alpha and activation_beta go, in order, to the functions that have
// such a parameter; functions that get no value use the default of the operator of the same name.
// Throws InvalidModel at the node.
std::pmr::vector<Activation> read_activations(
    const Node& node, std::span<const char* const> defaults, int64_t directions,
    std::pmr::memory_resource* memory = std::pmr::get_default_resource()) {
  const size_t count = defaults.size() * static_cast<size_t>(directions);
  const std::vector<std::string>* names = given_names(node, defaults, count);
  size_t used_alphas = 0;
  size_t used_betas = 0;
  std::pmr::vector<Activation> activations(memory);
  for (size_t index = 0; index < count; ++index) {
    const std::string_view name =
        names != nullptr ? std::string_view((*names)[index]) : defaults[index % defaults.size()];
    const Known& known = find_known(node, name);
    activations.push_back(
        {known.function,
         next_parameter(node.attributes.find_floats("activation_alpha"), used_alphas, known.alpha),
         next_parameter(node.attributes.find_floats("activation_beta"), used_betas, known.beta)});
  }
  return activations;
}

// --- Type rule -----------------------------------------------------------------------------------

void check_attributes(const InferContext& context, const RecurrentKind& kind) {
  const Node& node = context.node();
  const std::string& direction = node.attributes.get_string("direction");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    context.fail("expected 'direction' forward, reverse or bidirectional, found '" + direction +
                 "'");
  }
  if (const int64_t* layout = node.attributes.find_int("layout")) {
    if (*layout != 0 && *layout != 1) {
      context.fail("expected 'layout' 0 or 1, found " + std::to_string(*layout));
    }
  }
  read_activations(node, kind.activations, direction_count(node));
}

// The shape of input `index`; nullptr if it is unknown. Fails unless it has `rank` axes.
const Shape* shape_of_rank(const InferContext& context, size_t index, size_t rank) {
  const Shape* shape = context.shape(index);
  if (shape != nullptr && shape->size() != rank) {
    context.fail_input(index,
                       "expected rank " + std::to_string(rank) + ", found [" + text(*shape) + "]");
  }
  return shape;
}

// The size of the state, from R or the attribute.
std::optional<Dim> hidden_size(const InferContext& context, const RecurrentKind& kind) {
  const int64_t* declared = context.node().attributes.find_int("hidden_size");
  const Shape* recurrent = shape_of_rank(context, 2, 3);
  const size_t axis = kind.has_transposed_weights ? 1 : 2;
  if (declared != nullptr && *declared < 1) {
    context.fail("expected 'hidden_size' of at least 1, found " + std::to_string(*declared));
  }
  if (recurrent == nullptr) return declared ? std::optional(Dim(*declared)) : std::nullopt;
  if (declared != nullptr && !can_be_equal({(*recurrent)[axis]}, {Dim(*declared)})) {
    const std::string which = kind.has_transposed_weights ? "second" : "last";
    context.fail_input(2, "expected a " + which + " axis of " + std::to_string(*declared) +
                              " as 'hidden_size' says, found [" + text(*recurrent) + "]");
  }
  return declared != nullptr ? Dim(*declared) : (*recurrent)[axis];
}

// --- Kernel --------------------------------------------------------------------------------------

std::pmr::vector<int64_t> sequence_lengths(const KernelCall& call, int64_t batch, int64_t steps) {
  std::pmr::vector<int64_t> lengths(&call.scratch);
  if (!call.has_input(4)) {
    lengths.assign(static_cast<size_t>(batch), steps);
    return lengths;
  }
  for (const int32_t length : call.inputs[4].as<int32_t>()) {
    if (length < 0 || length > steps) {
      call.fail("expected 'sequence_lens' from 0 to " + std::to_string(steps) + ", found " +
                std::to_string(length));
    }
    lengths.push_back(length);
  }
  return lengths;
}

Recurrence recurrence_of(const KernelCall& call, const RecurrentKind& kind) {
  const auto input = call.inputs[0].dims;
  const bool is_batched = is_batch_first(call.node);
  const int64_t steps = input[is_batched ? 1 : 0];
  const int64_t batch = input[is_batched ? 0 : 1];
  Recurrence shape = {.steps = steps,
                      .batch = batch,
                      .is_batched = is_batched,
                      .lengths = sequence_lengths(call, batch, steps)};
  shape.features = input[2];
  shape.hidden = call.inputs[2].dims[2];
  shape.gates = kind.gates;
  shape.directions = direction_count(call.node);
  if (const float* clip = call.node.attributes.find_float("clip")) {
    if (*clip >= 0) shape.clip = *clip;
  }
  return shape;
}

std::pmr::vector<double> initial_state(const KernelCall& call, size_t index,
                                       const Recurrence& shape, int64_t direction) {
  std::pmr::vector<double> state(static_cast<size_t>(shape.batch * shape.hidden), 0.0,
                                 &call.scratch);
  if (!call.has_input(index)) return state;
  const std::pmr::vector<double> given = to_doubles(call.inputs[index], call.scratch);
  for (int64_t sequence = 0; sequence < shape.batch; ++sequence) {
    std::copy_n(given.begin() + shape.state_row(direction, sequence) * shape.hidden, shape.hidden,
                state.begin() + sequence * shape.hidden);
  }
  return state;
}

Direction direction_of(const KernelCall& call, const RecurrentKind& kind, const Recurrence& shape,
                       int64_t index) {
  const int64_t width = shape.gates * shape.hidden;
  std::pmr::memory_resource* const scratch = &call.scratch;
  Direction direction = {
      .index = index,
      .is_reverse = index == 1 || call.node.attributes.get_string("direction") == "reverse",
      .activations = read_activations(call.node, kind.activations, shape.directions, scratch),
      .input_bias = std::pmr::vector<double>(static_cast<size_t>(width), 0.0, scratch),
      .state_bias = std::pmr::vector<double>(static_cast<size_t>(width), 0.0, scratch),
      .states = std::pmr::vector<std::pmr::vector<double>>(scratch)};
  // Removes the activations of the other directions.
  const auto count = static_cast<std::ptrdiff_t>(kind.activations.size());
  auto& activations = direction.activations;
  activations.erase(activations.begin() + (index + 1) * count, activations.end());
  activations.erase(activations.begin(), activations.begin() + index * count);
  if (call.has_input(3)) {
    const std::pmr::vector<double> both = to_doubles(call.inputs[3], call.scratch);
    std::copy_n(both.begin() + 2 * index * width, width, direction.input_bias.begin());
    std::copy_n(both.begin() + (2 * index + 1) * width, width, direction.state_bias.begin());
  }
  for (int64_t state = 0; state < kind.states; ++state) {
    direction.states.push_back(initial_state(call, 5 + static_cast<size_t>(state), shape, index));
  }
  return direction;
}

// Adds the product of [batch, depth] and [depth, lines] to columns of [batch, width], from column
// `first` on. The right matrix is the transpose of one direction's weights [lines, depth], from
// line `first_line` on.
void add_product(const KernelCall& call, const Recurrence& shape, const MatrixOperand<double>& left,
                 const TensorView& weights, int64_t first_line, int64_t lines, int64_t depth,
                 int64_t first, std::span<double> sums) {
  const int64_t width = shape.gates * shape.hidden;
  const auto add = [&](int64_t, int64_t row, int64_t column, int64_t count, const double* found) {
    double* target = sums.data() + row * width + first + column;
    for (int64_t index = 0; index < count; ++index) target[index] += found[index];
  };
  visit_floating(weights.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const ReadDense<double, T> read_weights = {weights.as<T>().data() + first_line * depth, depth};
    multiply_matrices<double>(call, {.rows = shape.batch,
                                     .columns = lines,
                                     .depth = depth,
                                     .left = left,
                                     .right = {read_weights, true},
                                     .store = add});
  });
}

void store_row(const MutableTensorView& output, int64_t row, std::span<const double> values,
               int64_t sequence, int64_t hidden) {
  visit_floating(output.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const double* source = values.data() + sequence * hidden;
    std::transform(source, source + hidden, output.as<T>().data() + row * hidden, from_double<T>);
  });
}

void fill_with_zeros(const MutableTensorView& output) {
  visit_floating(output.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::ranges::fill(output.as<T>(), T(0.0F));
  });
}

}  // namespace

int64_t direction_count(const Node& node) {
  return node.attributes.get_string("direction") == "bidirectional" ? 2 : 1;
}

std::vector<Parameter> recurrent_inputs() {
  return {{"X", "T"},
          {"W", "T"},
          {"R", "T"},
          {"B", "T", Arity::Optional},
          {"sequence_lens", "T1", Arity::Optional},
          {"initial_h", "T", Arity::Optional}};
}

std::vector<AttributeSchema> recurrent_attributes() {
  return {{"activation_alpha", AttributeKind::Floats, std::nullopt},
          {"activation_beta", AttributeKind::Floats, std::nullopt},
          {"clip", AttributeKind::Float, std::nullopt},
          {"direction", AttributeKind::String, "forward"},
          {"hidden_size", AttributeKind::Int, std::nullopt},
          {"layout", AttributeKind::Int, int64_t{0}, 14},
          {"output_sequence", AttributeKind::Int, int64_t{0}, 1, 6}};
}

std::optional<Dim> infer_recurrence(InferContext& context, const RecurrentKind& kind) {
  check_attributes(context, kind);
  for (int64_t index = 0; index <= kind.states; ++index) {
    context.set_output(static_cast<size_t>(index), context.element(0));
  }
  const Shape* input = shape_of_rank(context, 0, 3);
  const std::optional<Dim> hidden = hidden_size(context, kind);
  if (input == nullptr || !hidden) return hidden;
  const bool is_batched = is_batch_first(context.node());
  const Dim steps = (*input)[is_batched ? 1 : 0];
  const Dim batch = (*input)[is_batched ? 0 : 1];
  const Dim& features = (*input)[2];
  const Dim directions = direction_count(context.node());
  const Dim width = multiply(*hidden, kind.gates);
  const Shape state =
      is_batched ? Shape{batch, directions, *hidden} : Shape{directions, batch, *hidden};
  const auto weights = [&](const Dim& depth) {
    return kind.has_transposed_weights ? Shape{directions, depth, width}
                                       : Shape{directions, width, depth};
  };
  check_shape(context, 1, weights(features));
  check_shape(context, 2, weights(*hidden));
  check_shape(context, 3, {directions, multiply(width, 2)});
  check_shape(context, 4, {batch});
  context.set_output(0, context.element(0),
                     is_batched ? Shape{batch, steps, directions, *hidden}
                                : Shape{steps, directions, batch, *hidden});
  for (int64_t index = 0; index < kind.states; ++index) {
    check_shape(context, static_cast<size_t>(5 + index), state);
    context.set_output(static_cast<size_t>(1 + index), context.element(0), state);
  }
  return hidden;
}

int64_t recurrence_flops(const RecurrentKind& kind, const Node& node,
                         std::span<const Type> inputs) {
  const Shape& input = *inputs[0].shape;
  const Dim hidden = inputs[2].shape->back();
  const Dim rows = multiply(multiply(input[0], input[1]), direction_count(node));
  const Dim width = multiply(hidden, 2 * kind.gates);
  return multiply(multiply(rows, width), add(input[2], hidden)).value();
}

double Recurrence::clipped(double sum) const { return std::clamp(sum, -clip, clip); }

int64_t Recurrence::input_row(int64_t step, int64_t sequence) const {
  return is_batched ? sequence * steps + step : step * batch + sequence;
}

int64_t Recurrence::output_row(int64_t step, int64_t direction, int64_t sequence) const {
  return is_batched ? (sequence * steps + step) * directions + direction
                    : (step * directions + direction) * batch + sequence;
}

int64_t Recurrence::state_row(int64_t direction, int64_t sequence) const {
  return is_batched ? sequence * directions + direction : direction * batch + sequence;
}

int64_t Direction::time_of(const Recurrence& shape, int64_t step, int64_t sequence) const {
  if (!shape.is_running(sequence, step)) return 0;
  return is_reverse ? shape.lengths[static_cast<size_t>(sequence)] - 1 - step : step;
}

void add_input_product(const KernelCall& call, const Recurrence& shape, const Direction& direction,
                       int64_t step, std::span<double> sums) {
  const int64_t width = shape.gates * shape.hidden;
  visit_floating(call.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* input = call.inputs[0].as<T>().data();
    const auto read_input = [&](int64_t, int64_t sequence, int64_t begin, int64_t count,
                                double* target) {
      const int64_t row = shape.input_row(direction.time_of(shape, step, sequence), sequence);
      const T* source = input + row * shape.features + begin;
      std::transform(source, source + count, target, to_double<T>);
    };
    add_product(call, shape, {read_input, true}, call.inputs[1], direction.index * width, width,
                shape.features, 0, sums);
  });
}

void add_state_product(const KernelCall& call, const Recurrence& shape, const Direction& direction,
                       std::span<const double> values, int64_t first, int64_t count,
                       std::span<double> sums) {
  const int64_t first_column = first * shape.hidden;
  const int64_t first_line = direction.index * shape.gates * shape.hidden + first_column;
  const ReadDense<double, double> read_values = {values.data(), shape.hidden};
  add_product(call, shape, {read_values, true}, call.inputs[2], first_line, count * shape.hidden,
              shape.hidden, first_column, sums);
}

void add_biases(Direction& direction) {
  auto& sums = direction.input_bias;
  std::transform(sums.begin(), sums.end(), direction.state_bias.begin(), sums.begin(),
                 std::plus<>());
}

void repeat_line(std::span<const double> line, std::span<double> target) {
  for (auto position = target.begin(); position != target.end();) {
    position = std::copy(line.begin(), line.end(), position);
  }
}

void run_steps(const KernelCall& call, const Recurrence& shape, const Direction& direction,
               FunctionRef<void(int64_t step)> advance) {
  const int64_t steps = *std::max_element(shape.lengths.begin(), shape.lengths.end());
  for (int64_t step = 0; step < steps; ++step) {
    advance(step);
    if (!call.has_output(0)) continue;
    for (int64_t sequence = 0; sequence < shape.batch; ++sequence) {
      if (!shape.is_running(sequence, step)) continue;
      const int64_t time = direction.time_of(shape, step, sequence);
      store_row(call.outputs[0], shape.output_row(time, direction.index, sequence),
                direction.states[0], sequence, shape.hidden);
    }
  }
  for (size_t state = 0; state < direction.states.size(); ++state) {
    if (!call.has_output(1 + state)) continue;
    for (int64_t sequence = 0; sequence < shape.batch; ++sequence) {
      store_row(call.outputs[1 + state], shape.state_row(direction.index, sequence),
                direction.states[state], sequence, shape.hidden);
    }
  }
}

void run_recurrence(
    const KernelCall& call, const RecurrentKind& kind,
    FunctionRef<void(const Recurrence& shape, Direction& direction)> run_direction) {
  // Without outputs there is nothing to compute, however large the empty input claims to be.
  if (std::ranges::all_of(call.outputs, [](const auto& output) { return output.elements == 0; })) {
    return;
  }
  const Recurrence shape = recurrence_of(call, kind);
  // Steps beyond the end of a sequence are zero.
  if (call.has_output(0)) fill_with_zeros(call.outputs[0]);
  for (int64_t index = 0; index < shape.directions; ++index) {
    Direction direction = direction_of(call, kind, shape, index);
    run_direction(shape, direction);
  }
}

}  // namespace tessera::ops
