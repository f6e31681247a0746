// Adagrad, Adam and Momentum: one step of an optimizer for any number of tensors.
// https://onnx.ai/onnx/operators/onnx_aionnxpreviewtraining_Adam.html
#include <cmath>
#include <string>

#include "ops/check_shape.h"
#include "ops/convert_element.h"
#include "ops/domains.h"
#include "ops/op.h"

namespace tessera::ops {
namespace {

constexpr size_t kRate = 0;
constexpr size_t kStep = 1;
constexpr size_t kFirstTensor = 2;

// What an optimizer has of each tensor: the tensor itself, its gradient and `states` states. The
// inputs are all tensors, then all gradients, and so on; the outputs are the same without
// gradients.
struct OptimizerKind {
  size_t states = 1;

  size_t inputs_each() const { return states + 2; }
  size_t outputs_each() const { return states + 1; }
};
constexpr OptimizerKind kOneState = {1};
constexpr OptimizerKind kTwoStates = {2};

// The type of a step's input `index`, completed by that of the tensor that it belongs to.
void check_alike(const InferContext& context, size_t tensor, size_t index) {
  const DataType expected = context.element(tensor);
  const DataType found = context.element(index);
  if (expected != DataType::Undefined && found != DataType::Undefined && expected != found) {
    context.fail_input(index, "expected " + std::string(name(expected)) + " as input " +
                                  std::to_string(tensor) + " has, found " +
                                  std::string(name(found)));
  }
  if (context.shape(tensor) != nullptr) check_shape(context, index, *context.shape(tensor));
}

void check_rate_and_step(const InferContext& context) {
  for (const size_t index : {kRate, kStep}) {
    const Shape* shape = context.shape(index);
    if (shape == nullptr) continue;
    for (const Dim& dim : *shape) {
      if (dim.is_known() && dim != Dim(1)) {
        context.fail_input(index, "expected a scalar, found [" + text(*shape) + "]");
      }
    }
  }
}

void infer_optimizer(InferContext& context, OptimizerKind kind) {
  check_rate_and_step(context);
  const size_t given = context.input_count() - kFirstTensor;
  const size_t tensors = given / kind.inputs_each();
  if (tensors == 0 || given != tensors * kind.inputs_each()) {
    context.fail("expected " + std::to_string(kind.inputs_each()) +
                 " inputs for each tensor after 'R' and 'T', found " + std::to_string(given));
  }
  if (context.output_count() != tensors * kind.outputs_each()) {
    context.fail("expected " + std::to_string(tensors * kind.outputs_each()) + " outputs, found " +
                 std::to_string(context.output_count()));
  }
  constexpr TypeSet kTypes = {DataType::Float32, DataType::Float64};
  for (size_t index = 0; index < given; ++index) {
    const size_t input = kFirstTensor + index;
    const DataType type = context.element(input);
    if (type != DataType::Undefined && !kTypes.contains(type)) {
      context.fail_input(input, "expected " + kTypes.text() + ", found " + std::string(name(type)));
    }
    check_alike(context, kFirstTensor + index % tensors, input);
  }
  for (size_t output = 0; output < tensors * kind.outputs_each(); ++output) {
    const InferInput& tensor = context.input(kFirstTensor + output % tensors);
    context.set_output(output, tensor.type.element, tensor.type.shape);
  }
}

// An element of a tensor and of its states.
struct Weight {
  double value = 0;
  double gradient = 0;
  double states[2] = {};
};

// Calls advance(weight) for each element of each tensor and stores what it becomes.
template <class Advance>
void advance_all(const KernelCall& call, OptimizerKind kind, const Advance& advance) {
  const size_t tensors = (call.inputs.size() - kFirstTensor) / kind.inputs_each();
  for (size_t tensor = 0; tensor < tensors; ++tensor) {
    const auto input = [&](size_t part) {
      return call.inputs[kFirstTensor + part * tensors + tensor];
    };
    visit_floating(input(0).type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      call.pool.parallel_for(input(0).elements, kElementGrain, [&](int64_t begin, int64_t end) {
        for (auto index = static_cast<size_t>(begin); index < static_cast<size_t>(end); ++index) {
          const auto read = [&](size_t part) {
            return to_double(input(part).template as<T>()[index]);
          };
          Weight weight = {.value = read(0), .gradient = read(1)};
          for (size_t state = 0; state < kind.states; ++state) {
            weight.states[state] = read(2 + state);
          }
          advance(weight);
          const auto write = [&](size_t part, double value) {
            const MutableTensorView& output = call.outputs[part * tensors + tensor];
            if (!output.is_empty()) output.as<T>()[index] = from_double<T>(value);
          };
          write(0, weight.value);
          for (size_t state = 0; state < kind.states; ++state) {
            write(1 + state, weight.states[state]);
          }
        }
      });
    });
  }
}

double rate_of(const KernelCall& call) { return to_doubles(call.inputs[kRate], call.scratch)[0]; }

double step_of(const KernelCall& call) {
  return static_cast<double>(call.inputs[kStep].as<int64_t>()[0]);
}

void run_adagrad(const KernelCall& call) {
  const Attributes& attributes = call.node.attributes;
  const double regularisation = attributes.get_float("norm_coefficient");
  const double epsilon = attributes.get_float("epsilon");
  const double rate = rate_of(call) / (1 + step_of(call) * attributes.get_float("decay_factor"));
  advance_all(call, kOneState, [&](Weight& weight) {
    const double gradient = regularisation * weight.value + weight.gradient;
    double& squares = weight.states[0];
    squares += gradient * gradient;
    weight.value -= rate * gradient / (std::sqrt(squares) + epsilon);
  });
}

void run_adam(const KernelCall& call) {
  const Attributes& attributes = call.node.attributes;
  const double alpha = attributes.get_float("alpha");
  const double beta = attributes.get_float("beta");
  const double epsilon = attributes.get_float("epsilon");
  const double regularisation = attributes.get_float("norm_coefficient");
  const double shrinking = 1 - static_cast<double>(attributes.get_float("norm_coefficient_post"));
  const double step = step_of(call);
  double rate = rate_of(call);
  if (step > 0) rate *= std::sqrt(1 - std::pow(beta, step)) / (1 - std::pow(alpha, step));
  advance_all(call, kTwoStates, [&](Weight& weight) {
    const double gradient = regularisation * weight.value + weight.gradient;
    auto& [mean, square] = weight.states;
    mean = alpha * mean + (1 - alpha) * gradient;
    square = beta * square + (1 - beta) * gradient * gradient;
    weight.value = shrinking * (weight.value - rate * mean / (std::sqrt(square) + epsilon));
  });
}

void run_momentum(const KernelCall& call) {
  const Attributes& attributes = call.node.attributes;
  const double alpha = attributes.get_float("alpha");
  // The first step takes the whole gradient.
  const double beta = step_of(call) > 0 ? attributes.get_float("beta") : 1.0F;
  const double regularisation = attributes.get_float("norm_coefficient");
  const bool is_nesterov = attributes.get_string("mode") == "nesterov";
  const double rate = rate_of(call);
  advance_all(call, kOneState, [&](Weight& weight) {
    const double gradient = regularisation * weight.value + weight.gradient;
    double& momentum = weight.states[0];
    momentum = alpha * momentum + beta * gradient;
    weight.value -= rate * (is_nesterov ? gradient + alpha * momentum : momentum);
  });
}

void infer_momentum(InferContext& context) {
  const std::string& mode = context.node().attributes.get_string("mode");
  if (mode != "standard" && mode != "nesterov") {
    context.fail("attribute 'mode': expected 'standard' or 'nesterov', found '" + mode + "'");
  }
  infer_optimizer(context, kOneState);
}

Op optimizer_op(const char* name, ReferenceKernel kernel, InferRule rule) {
  return {.name = name,
          .domain = kTrainingDomain,
          .versions = {1},
          // The other tensors may have different types, so they have no type variable.
          .inputs = {{"R", "T1"}, {"T", "T2"}, {"inputs", "", Arity::Variadic}},
          .outputs = {{"outputs", "", Arity::Variadic}},
          .type_variables = {{"T1", {DataType::Float32, DataType::Float64}}, {"T2", kInt64Type}},
          .infer = std::move(rule),
          .kernel = kernel};
}

AttributeSchema optimizer_number(const char* name, std::optional<float> default_value) {
  AttributeSchema schema = {.name = name, .kind = AttributeKind::Float};
  if (default_value) schema.default_value = *default_value;
  schema.is_required = !default_value;
  return schema;
}

}  // namespace

std::vector<Op> optimizer_ops() {
  Op adagrad = optimizer_op("Adagrad", run_adagrad,
                            [](InferContext& context) { infer_optimizer(context, kOneState); });
  adagrad.attributes = {optimizer_number("decay_factor", 0.0F), optimizer_number("epsilon", 1e-6F),
                        optimizer_number("norm_coefficient", 0.0F)};
  Op adam = optimizer_op("Adam", run_adam,
                         [](InferContext& context) { infer_optimizer(context, kTwoStates); });
  adam.attributes = {optimizer_number("alpha", 0.9F), optimizer_number("beta", 0.999F),
                     optimizer_number("epsilon", 1e-6F), optimizer_number("norm_coefficient", 0.0F),
                     optimizer_number("norm_coefficient_post", 0.0F)};
  Op momentum = optimizer_op("Momentum", run_momentum, infer_momentum);
  momentum.attributes = {optimizer_number("alpha", std::nullopt),
                         optimizer_number("beta", std::nullopt),
                         optimizer_number("norm_coefficient", std::nullopt),
                         {"mode", AttributeKind::String, std::nullopt, 1, kAnyVersion, true}};
  return {adagrad, adam, momentum};
}

}  // namespace tessera::ops
