// Loop: runs its nested graph again and again. https://onnx.ai/onnx/operators/onnx__Loop.html
#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ops/control_flow/bodies.h"
#include "ops/control_flow/pieces.h"
#include "ops/shape_rules.h"
#include "tessera/error.h"

namespace tessera::ops {
namespace {

constexpr size_t kLoopInputs = 2;  // the number of iterations and the condition

size_t carried_by_loop(const Node& node) {
  return node.inputs.size() < kLoopInputs ? 0 : node.inputs.size() - kLoopInputs;
}

// The type of a number that the loop passes to its body: a scalar, unless the body declares a list.
Type single(const Graph& body, size_t input, DataType element) {
  const std::optional<Shape>& declared = body[body.inputs[input]].type.shape;
  const bool is_list = declared && declared->size() == 1;
  return Type::tensor(element, is_list ? Shape{1} : Shape{});
}

BodyTypes loop_types(const Node& node, std::span<const Type> inputs, size_t) {
  const Graph& body = body_of(node, 0);
  const size_t carried = carried_by_loop(node);
  check_body_count(node, "inputs (the iteration, the condition and the carried values)",
                   kLoopInputs + carried, body.inputs.size());
  if (body.outputs.size() < 1 + carried) {
    fail_body(node, 0,
              "expected at least " + std::to_string(1 + carried) +
                  " outputs (the condition and the carried values), found " +
                  std::to_string(body.outputs.size()));
  }
  const Type& condition = body_output_type(node, 0, 0);
  if (condition.element != DataType::Undefined && condition.element != DataType::Bool) {
    fail_body(node, 0,
              "expected a condition of bool as its first output, found " + text(condition));
  }
  BodyTypes types{.inputs = {single(body, 0, DataType::Int64), single(body, 1, DataType::Bool)}};
  for (size_t index = 0; index < carried; ++index) {
    types.inputs.push_back(inputs[kLoopInputs + index]);
    types.carried.push_back({kLoopInputs + index, 1 + index});
  }
  return types;
}

// The number of iterations if inputs and body tell it.
std::optional<int64_t> known_iterations(const InferContext& context) {
  if (!context.has_input(0)) return std::nullopt;
  const std::optional<std::vector<int64_t>> count = context.known_integers(0);
  if (!count || count->size() != 1) return std::nullopt;
  if (context.has_input(1)) {
    const Tensor* condition = context.constant(1);
    const bool is_known =
        condition != nullptr && condition->type() == DataType::Bool && condition->elements() == 1;
    if (!is_known) return std::nullopt;
    if (condition->as<uint8_t>()[0] == 0) return 0;
  }
  const Graph& body = body_of(context.node(), 0);
  const bool may_end_earlier = context.has_input(1) && count->front() > 0 && !goes_on_always(body);
  if (may_end_earlier) return std::nullopt;
  return std::max<int64_t>(count->front(), 0);
}

void infer_loop(InferContext& context) {
  const Node& node = context.node();
  const Graph& body = body_of(node, 0);
  if (!context.has_input(0) && !context.has_input(1)) {
    context.fail("expected a number of iterations or a condition, found neither: it would not end");
  }
  for (size_t index = 0; index < kLoopInputs; ++index) {
    if (context.has_input(index)) check_single(context, index);
  }
  const std::optional<int64_t> iterations = known_iterations(context);
  const size_t carried = carried_by_loop(node);
  if (node.outputs.size() > body.outputs.size() - 1) {
    context.fail("expected at most " + std::to_string(body.outputs.size() - 1) +
                 " outputs, as its body gives, found " + std::to_string(node.outputs.size()));
  }
  for (size_t output = 0; output < node.outputs.size(); ++output) {
    Type type = body_output_type(node, 0, 1 + output);
    if (output < carried) {
      // Without an iteration, it is the value at the beginning.
      const std::optional<Type> joined =
          join_types(context.input(kLoopInputs + output).type, type, unknown_dims(context, output));
      if (joined) type = *joined;
    } else if (type.kind != Type::Kind::Unknown && !type.is_tensor()) {
      fail_body(node, 0,
                "expected a tensor as output " + std::to_string(1 + output) +
                    ", of which the loop collects an element of each iteration, found " +
                    text(type));
    } else if (type.is_tensor() && type.shape) {
      type.shape->insert(type.shape->begin(),
                         iterations ? Dim(*iterations) : unknown_dim(context, output, 0));
      // Without an iteration, unknown dimensions of an element are 0 (no_elements()).
      for (size_t axis = 1; axis < type.shape->size(); ++axis) {
        Dim& dim = (*type.shape)[axis];
        if (!dim.is_known()) dim = unknown_dim(context, output, axis);
      }
    }
    set_output_type(context, output, outside_of_graph(type, unknown_dims(context, output)));
  }
}

Tensor single_of(const Type& type) { return {type.element, dims_from(*type.shape)}; }

// One execution of a Loop.
class LoopRun {
 public:
  explicit LoopRun(const ValueCall& call)
      : call_(call),
        body_(body_of(call.node, 0)),
        carried_(carried_by_loop(call.node)),
        goes_on_(!call.has_input(1) || is_true(call, call.inputs[1])),
        inputs_(kLoopInputs + carried_),
        collected_(body_.outputs.size() - 1 - carried_) {
    if (call.has_input(0)) wanted_ = single_input(call, 0).as<int64_t>()[0];
    inputs_[1] = single_of(body_[body_.inputs[1]].type);
    inputs_[1].mutable_as<uint8_t>()[0] = goes_on_ ? 1 : 0;
    for (size_t index = 0; index < carried_; ++index) {
      inputs_[kLoopInputs + index] = call.inputs[kLoopInputs + index];
    }
  }

  void run() {
    while (has_next()) {
      const std::unique_ptr<RepeatedRuns> runs = run_once();
      if (runs != nullptr) repeat(*runs);
    }
    give();
  }

 private:
  // A loop without a condition at the beginning does not obey that of its body, as the standard
  // says.
  void note_condition(const Tensor& condition) {
    const bool holds = is_true(call_, condition);
    if (call_.has_input(1)) goes_on_ = holds;
  }

  bool has_next() const {
    if (!goes_on_ || (wanted_ && iteration_ >= *wanted_)) return false;
    if (call_.max_iterations > 0 && iteration_ == call_.max_iterations) {
      call_.fail("expected at most " + std::to_string(call_.max_iterations) +
                 " iterations, as max_iterations says, found that it goes on");
    }
    return true;
  }

  // Returns what runs the next iterations faster, if carried values keep their sizes.
  std::unique_ptr<RepeatedRuns> run_once() {
    inputs_[0] = single_of(body_[body_.inputs[0]].type);
    inputs_[0].mutable_as<int64_t>()[0] = iteration_++;
    std::vector<Tensor> results = call_.bodies->run(0, inputs_);
    note_condition(results[0]);
    results[0] = results[0].reshaped(inputs_[1].dims());
    bool keeps_sizes = true;
    for (size_t index = 0; index < 1 + carried_; ++index) {
      keeps_sizes = keeps_sizes && has_same_size(inputs_[1 + index], results[index]);
    }
    std::unique_ptr<RepeatedRuns> runs;
    if (keeps_sizes && has_next()) runs = call_.bodies->repeat(0, inputs_, results);
    for (size_t index = 0; index < collected_.size(); ++index) {
      const Tensor& element = results[1 + carried_ + index];
      if (collected_[index].add(element)) continue;
      call_.fail("expected elements of " + dims_text(collected_[index].dims()) + " for output " +
                 std::to_string(carried_ + index) + ", as in earlier iterations, found " +
                 dims_text(element.dims()) + " in iteration " + std::to_string(iteration_ - 1));
    }
    std::move(results.begin(), results.begin() + 1 + static_cast<ptrdiff_t>(carried_),
              inputs_.begin() + 1);
    return runs;
  }

  // The condition and the carried values go back and forth between two places; elements of outputs
  // are written where they stay.
  void repeat(RepeatedRuns& runs) {
    std::array<std::vector<Tensor>, 2> places;
    for (std::vector<Tensor>& tensors : places) {
      for (size_t index = 1; index < inputs_.size(); ++index)
        tensors.push_back(like(inputs_[index]));
    }
    Tensor iteration = like(inputs_[0]);
    std::vector<const void*> from = {iteration.data()};
    for (size_t index = 1; index < inputs_.size(); ++index) from.push_back(inputs_[index].data());
    std::vector<void*> to(body_.outputs.size());
    size_t place = 0;
    while (has_next()) {
      iteration.mutable_as<int64_t>()[0] = iteration_++;
      for (size_t index = 0; index < 1 + carried_; ++index) {
        to[index] = places[place][index].mutable_data();
      }
      for (size_t index = 0; index < collected_.size(); ++index) {
        to[1 + carried_ + index] = collected_[index].add_place();
      }
      runs.run(from, to);
      note_condition(places[place][0]);
      std::copy(to.begin(), to.begin() + 1 + static_cast<ptrdiff_t>(carried_), from.begin() + 1);
      place = 1 - place;
    }
    std::move(places[1 - place].begin(), places[1 - place].end(), inputs_.begin() + 1);
  }

  void give() {
    for (size_t output = 0; output < call_.outputs.size(); ++output) {
      if (output < carried_) {
        call_.outputs[output] = inputs_[kLoopInputs + output].owned();
        continue;
      }
      std::optional<Tensor> whole = collected_[output - carried_].take();
      call_.outputs[output] = whole ? *std::move(whole) : no_elements(call_.node, 1 + output);
    }
  }

  const ValueCall& call_;
  const Graph& body_;
  size_t carried_;
  std::optional<int64_t> wanted_;  // nullopt: as long as the condition holds
  int64_t iteration_ = 0;
  bool goes_on_;
  std::vector<Tensor> inputs_;            // of the next iteration
  std::vector<GrowingTensor> collected_;  // the outputs that have an element of each iteration
};

void run_loop(const ValueCall& call) { LoopRun(call).run(); }

}  // namespace

bool goes_on_always(const Graph& body) {
  ValueId value = body.outputs[0];
  const Tensor* known = &body[value].constant;
  for (size_t index = body.nodes.size(); index-- > 0;) {
    const Node& node = body.nodes[index];
    if (node.outputs.size() != 1 || node.outputs[0] != value) continue;
    if (is_op(node, "Constant")) known = node.attributes.find_tensor("value");
    if (!is_op(node, "Identity")) break;
    value = node.inputs[0];
    known = &body[value].constant;
  }
  if (value == body.inputs[1]) return true;
  return known != nullptr && known->has_elements() && known->type() == DataType::Bool &&
         known->elements() == 1 && known->as<uint8_t>()[0] != 0;
}

std::vector<Op> loop_ops() {
  return {{.name = "Loop",
           .versions = {1, 11, 13, 16, 19, 21, 23, 24, 25},
           .inputs = {{"M", "I", Arity::Optional},
                      {"cond", "B", Arity::Optional},
                      {"v_initial", "V", Arity::Variadic, 1, kAnyVersion, true}},
           .outputs = {{"v_final_and_scan_outputs", "V", Arity::Variadic}},
           .type_variables = {{"I", kInt64Type}, {"B", kBoolType}},
           .bodies = {"body"},
           .infer = infer_loop,
           .flops = no_flops,
           .value_kernel = run_loop,
           .body_rule = loop_types}};
}

}  // namespace tessera::ops
