// Scan: runs its nested graph on one element of its inputs after the other.
// https://onnx.ai/onnx/operators/onnx__Scan.html
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
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

constexpr int kFirstScanWithoutBatch = 9;

// The inputs and outputs of a Scan by their meaning, and the axes along which it goes.
class ScanForm {
 public:
  explicit ScanForm(const Node& node)
      : node_(node), has_batch_(node.version < kFirstScanWithoutBatch) {
    const int64_t wanted = node.attributes.get_int("num_scan_inputs");
    const auto given = static_cast<int64_t>(node.inputs.size()) - (has_batch_ ? 1 : 0);
    if (wanted < 1 || wanted > given) {
      throw Error(ErrorKind::InvalidModel, location_of(node) + ", attribute 'num_scan_inputs'",
                  "expected 1 to " + std::to_string(given) + ", found " + std::to_string(wanted));
    }
    scanned_ = static_cast<size_t>(wanted);
    states_ = static_cast<size_t>(given - wanted);
    const Graph& body = body_of(node, 0);
    check_body_count(node, "inputs (the states and the elements of the scan inputs)",
                     states_ + scanned_, body.inputs.size());
    if (body.outputs.size() < states_ || node.outputs.size() > body.outputs.size()) {
      fail_body(node, 0,
                "expected at least " + std::to_string(std::max(states_, node.outputs.size())) +
                    " outputs, found " + std::to_string(body.outputs.size()));
    }
    collected_ = body.outputs.size() - states_;
    input_axes_ = list("scan_input_axes", scanned_);
    input_directions_ = list(has_batch_ ? "directions" : "scan_input_directions", scanned_);
    output_axes_ = list("scan_output_axes", collected_);
    output_directions_ = list("scan_output_directions", collected_);
  }

  bool has_batch() const { return has_batch_; }
  size_t states() const { return states_; }
  size_t scanned() const { return scanned_; }
  size_t collected() const { return collected_; }
  // The index of an input of the node.
  size_t state(size_t index) const { return (has_batch_ ? 1 : 0) + index; }
  size_t scan_input(size_t index) const { return state(states_ + index); }
  bool goes_back(size_t input) const { return input_directions_[input] != 0; }
  bool collects_back(size_t output) const { return output_directions_[output] != 0; }
  int64_t input_axis(size_t input, int64_t rank) const {
    return axis(input_axes_[input], rank, "scan_input_axes");
  }
  // `rank` with the axis of the iterations.
  int64_t output_axis(size_t output, int64_t rank) const {
    return axis(output_axes_[output], rank, "scan_output_axes");
  }

 private:
  std::vector<int64_t> list(const std::string& name, size_t count) const {
    const std::vector<int64_t>* given = node_.attributes.find_ints(name);
    if (given == nullptr) return std::vector<int64_t>(count, 0);
    if (given->size() == count) return *given;
    throw Error(
        ErrorKind::InvalidModel, location_of(node_) + ", attribute '" + name + "'",
        "expected " + std::to_string(count) + " numbers, found " + std::to_string(given->size()));
  }

  int64_t axis(int64_t given, int64_t rank, const char* name) const {
    if (given >= -rank && given < rank) return given < 0 ? given + rank : given;
    throw Error(ErrorKind::InvalidModel, location_of(node_) + ", attribute '" + name + "'",
                "expected an axis in [" + std::to_string(-rank) + ", " + std::to_string(rank) +
                    "), found " + std::to_string(given));
  }

  const Node& node_;
  bool has_batch_;  // version 8 goes along axis 1 of each element of a batch
  size_t states_ = 0;
  size_t scanned_ = 0;
  size_t collected_ = 0;
  std::vector<int64_t> input_axes_;
  std::vector<int64_t> input_directions_;
  std::vector<int64_t> output_axes_;
  std::vector<int64_t> output_directions_;
};

// `type` without an axis.
Type without_axis(const Node& node, size_t input, Type type, int64_t axis) {
  if (!type.shape) return type;
  if (axis < 0 || axis >= static_cast<int64_t>(type.shape->size())) {
    throw Error(ErrorKind::InvalidModel, location_of(node) + ", input " + std::to_string(input),
                "expected an axis to go along, found " + text(type));
  }
  type.shape->erase(type.shape->begin() + axis);
  return type;
}

BodyTypes scan_types(const Node& node, std::span<const Type> inputs, size_t) {
  const ScanForm form(node);
  BodyTypes types;
  for (size_t index = 0; index < form.states(); ++index) {
    const size_t input = form.state(index);
    types.inputs.push_back(form.has_batch() ? without_axis(node, input, inputs[input], 0)
                                            : inputs[input]);
    types.carried.push_back({index, index});
  }
  for (size_t index = 0; index < form.scanned(); ++index) {
    const size_t input = form.scan_input(index);
    Type type = inputs[input];
    if (form.has_batch()) type = without_axis(node, input, std::move(type), 0);
    if (type.shape) {
      const auto rank = static_cast<int64_t>(type.shape->size());
      type =
          without_axis(node, input, std::move(type), rank == 0 ? 0 : form.input_axis(index, rank));
    }
    types.inputs.push_back(std::move(type));
  }
  return types;
}

// The number of iterations, and of the batch of version 8, as far as inputs tell.
struct ScanSizes {
  std::optional<Dim> iterations;
  std::optional<Dim> batch;
};

void note_size(const InferContext& context, size_t input, std::optional<Dim>& size,
               const Dim& found) {
  if (size && size->is_known() && found.is_known() && *size != found) {
    context.fail_input(input, "expected " + size->text() + " iterations, as other inputs have, " +
                                  "found " + text(context.input(input).type));
  }
  if (!size || !size->is_known()) size = found;
}

ScanSizes scan_sizes(const InferContext& context, const ScanForm& form) {
  ScanSizes sizes;
  for (size_t index = 0; index < form.scanned(); ++index) {
    const size_t input = form.scan_input(index);
    const Shape* shape = context.shape(input);
    if (shape == nullptr) continue;
    const size_t first = form.has_batch() ? 1 : 0;
    const auto rank = static_cast<int64_t>(shape->size() - first);
    if (form.has_batch()) sizes.batch = shape->front();
    const auto axis = static_cast<size_t>(form.input_axis(index, rank));
    note_size(context, input, sizes.iterations, (*shape)[first + axis]);
  }
  return sizes;
}

void infer_scan(InferContext& context) {
  const Node& node = context.node();
  const ScanForm form(node);
  const ScanSizes sizes = scan_sizes(context, form);
  for (size_t output = 0; output < node.outputs.size(); ++output) {
    Type type = body_output_type(node, 0, output);
    const bool is_state = output < form.states();
    if (type.is_tensor() && type.shape) {
      if (!is_state) {
        const auto rank = static_cast<int64_t>(type.shape->size()) + 1;
        const int64_t axis = form.output_axis(output - form.states(), rank);
        type.shape->insert(type.shape->begin() + axis,
                           sizes.iterations.value_or(unknown_dim(context, output, axis)));
      }
      if (form.has_batch()) {
        type.shape->insert(type.shape->begin(),
                           sizes.batch.value_or(unknown_dim(context, output, kMaxDimensions)));
      }
    }
    // Without an iteration, a state is the one at the beginning.
    if (is_state && !form.has_batch()) {
      const Type& first = context.input(form.state(output)).type;
      type = join_types(first, type, unknown_dims(context, output)).value_or(type);
    }
    set_output_type(context, output, outside_of_graph(type, unknown_dims(context, output)));
  }
}

// Element `index` of a scan input: numbers next to each other are not copied.
Tensor element_at(const Tensor& tensor, int64_t axis, int64_t index) {
  std::vector<int64_t> dims = tensor.dims();
  dims.erase(dims.begin() + axis);
  if (axis != 0 || tensor.is_strings()) {
    return slice(tensor, axis, index, 1).reshaped(std::move(dims));
  }
  const int64_t bytes = element_count(dims) * element_bytes(tensor.type());
  return {tensor.type(), std::move(dims), nullptr,
          static_cast<const std::byte*>(tensor.data()) + index * bytes};
}

Tensor reversed(const Tensor& tensor) {
  const int64_t count = tensor.dims().front();
  std::vector<Tensor> elements;
  for (int64_t index = count; index-- > 0;) elements.push_back(slice(tensor, 0, index, 1));
  return elements.empty() ? tensor : concatenate(elements, 0);
}

bool keeps_states(const ScanForm& form, std::span<const Tensor> inputs,
                  std::span<const Tensor> results) {
  for (size_t index = 0; index < form.states(); ++index) {
    if (!has_same_size(inputs[index], results[index])) return false;
  }
  return true;
}

struct Iterations {
  int64_t begin = 0;
  int64_t end = 0;
};

// Iterations of which all states have the sizes of `inputs`: states go back and forth between two
// places, elements of outputs are written where they stay.
void repeat_scan(const ScanForm& form, RepeatedRuns& runs, std::span<const Tensor> scanned,
                 Iterations iterations, std::vector<Tensor>& inputs,
                 std::vector<GrowingTensor>& grown) {
  std::array<std::vector<Tensor>, 2> places;
  std::vector<const void*> from(inputs.size());
  for (size_t index = 0; index < form.states(); ++index) {
    from[index] = inputs[index].data();
    for (std::vector<Tensor>& tensors : places) tensors.push_back(like(inputs[index]));
  }
  std::vector<void*> to(form.states() + grown.size());
  size_t place = 0;
  for (int64_t iteration = iterations.begin; iteration < iterations.end; ++iteration) {
    for (size_t index = 0; index < scanned.size(); ++index) {
      const int64_t at = form.goes_back(index) ? iterations.end - 1 - iteration : iteration;
      Tensor& element = inputs[form.states() + index];
      element = element_at(scanned[index], form.input_axis(index, scanned[index].rank()), at);
      from[form.states() + index] = element.data();
    }
    for (size_t index = 0; index < form.states(); ++index) {
      to[index] = places[place][index].mutable_data();
    }
    for (size_t index = 0; index < grown.size(); ++index) {
      to[form.states() + index] = grown[index].add_place();
    }
    runs.run(from, to);
    std::copy_n(to.begin(), form.states(), from.begin());
    place = 1 - place;
  }
  std::move(places[1 - place].begin(), places[1 - place].end(), inputs.begin());
}

// The states and scan outputs of one sequence of elements.
std::vector<Tensor> scan_once(const ValueCall& call, const ScanForm& form,
                              std::vector<Tensor> states, std::span<const Tensor> scanned) {
  int64_t iterations = -1;
  for (size_t index = 0; index < scanned.size(); ++index) {
    const auto axis = static_cast<size_t>(form.input_axis(index, scanned[index].rank()));
    const int64_t length = scanned[index].dims()[axis];
    if (iterations >= 0 && length != iterations) {
      call.fail("expected " + std::to_string(iterations) +
                " iterations for all scan inputs, found " + std::to_string(length));
    }
    iterations = length;
  }
  if (call.max_iterations > 0 && iterations > call.max_iterations) {
    call.fail("expected at most " + std::to_string(call.max_iterations) +
              " iterations, as max_iterations says, found " + std::to_string(iterations));
  }
  std::vector<GrowingTensor> grown(form.collected());
  std::vector<Tensor> inputs = std::move(states);
  inputs.resize(form.states() + form.scanned());
  for (int64_t iteration = 0; iteration < iterations; ++iteration) {
    for (size_t index = 0; index < scanned.size(); ++index) {
      const int64_t at = form.goes_back(index) ? iterations - 1 - iteration : iteration;
      inputs[form.states() + index] =
          element_at(scanned[index], form.input_axis(index, scanned[index].rank()), at);
    }
    std::vector<Tensor> results = call.bodies->run(0, inputs);
    const bool may_repeat = iteration + 1 < iterations && keeps_states(form, inputs, results);
    const std::unique_ptr<RepeatedRuns> runs =
        may_repeat ? call.bodies->repeat(0, inputs, results) : nullptr;
    for (size_t index = 0; index < form.states(); ++index) {
      inputs[index] = std::move(results[index]);
    }
    for (size_t index = 0; index < grown.size(); ++index) {
      const Tensor& element = results[form.states() + index];
      if (grown[index].add(element)) continue;
      call.fail("expected elements of " + dims_text(grown[index].dims()) + " for output " +
                std::to_string(form.states() + index) + ", as in earlier iterations, found " +
                dims_text(element.dims()));
    }
    if (runs == nullptr) continue;
    repeat_scan(form, *runs, scanned, {iteration + 1, iterations}, inputs, grown);
    break;
  }
  std::vector<Tensor> outputs(
      inputs.begin(), inputs.begin() + std::ssize(inputs) - static_cast<ptrdiff_t>(form.scanned()));
  for (size_t index = 0; index < grown.size(); ++index) {
    std::optional<Tensor> whole = grown[index].take();
    Tensor output = whole ? *std::move(whole) : no_elements(call.node, form.states() + index);
    if (form.collects_back(index)) output = reversed(output);
    // Without an iteration, even the rank may be unknown.
    const int64_t axis =
        output.elements() == 0 && output.rank() == 1 ? 0 : form.output_axis(index, output.rank());
    outputs.push_back(with_first_axis_at(output, axis));
  }
  return outputs;
}

// Version 8: the same for each element of a batch, as long as its own length says.
std::vector<Tensor> scan_batch(const ValueCall& call, const ScanForm& form) {
  const int64_t batch = call.inputs[form.scan_input(0)].dims().front();
  for (size_t index = 0; index < form.states() + form.scanned(); ++index) {
    const Tensor& input = call.inputs[form.state(index)];
    if (input.rank() > 0 && input.dims().front() == batch) continue;
    call.fail("expected a batch of " + std::to_string(batch) + " for all inputs, found " +
              dims_text(input.dims()));
  }
  if (call.has_input(0) && call.inputs[0].elements() != batch) {
    call.fail("expected " + std::to_string(batch) + " lengths of sequences, found " +
              std::to_string(call.inputs[0].elements()));
  }
  std::vector<std::vector<Tensor>> by_output(form.states() + form.collected());
  for (int64_t element = 0; element < batch; ++element) {
    std::vector<Tensor> states;
    for (size_t index = 0; index < form.states(); ++index) {
      states.push_back(element_at(call.inputs[form.state(index)], 0, element));
    }
    std::vector<Tensor> scanned;
    for (size_t index = 0; index < form.scanned(); ++index) {
      Tensor whole = element_at(call.inputs[form.scan_input(index)], 0, element);
      const int64_t length =
          call.has_input(0) ? call.inputs[0].as<int64_t>()[element] : whole.dims().front();
      if (length < 0 || length > whole.dims().front()) {
        call.fail("expected lengths of sequences from 0 to " +
                  std::to_string(whole.dims().front()) + ", found " + std::to_string(length));
      }
      scanned.push_back(slice(whole, 0, 0, length));
    }
    std::vector<Tensor> outputs = scan_once(call, form, std::move(states), scanned);
    for (size_t index = 0; index < outputs.size(); ++index) {
      std::vector<int64_t> dims = outputs[index].dims();
      dims.insert(dims.begin(), 1);
      by_output[index].push_back(outputs[index].owned().reshaped(std::move(dims)));
    }
  }
  // Shorter sequences end with zeros.
  const int64_t longest = call.inputs[form.scan_input(0)].dims()[1];
  std::vector<Tensor> outputs;
  for (size_t index = 0; index < by_output.size(); ++index) {
    for (Tensor& part : by_output[index]) {
      if (index < form.states() || part.dims()[1] == longest) continue;
      std::vector<int64_t> rest = part.dims();
      rest[1] = longest - rest[1];
      Tensor zeros(part.type(), std::move(rest));
      std::memset(zeros.mutable_data(), 0, static_cast<size_t>(zeros.bytes()));
      part = concatenate(std::vector<Tensor>{part, zeros}, 1);
    }
    if (by_output[index].empty()) call.fail("expected a batch of at least 1, found 0");
    outputs.push_back(concatenate(by_output[index], 0));
  }
  return outputs;
}

void run_scan(const ValueCall& call) {
  const ScanForm form(call.node);
  std::vector<Tensor> outputs;
  if (form.has_batch()) {
    outputs = scan_batch(call, form);
  } else {
    const auto first = call.inputs.begin();
    outputs = scan_once(call, form, {first, first + static_cast<ptrdiff_t>(form.states())},
                        call.inputs.subspan(form.states()));
  }
  for (size_t output = 0; output < call.outputs.size(); ++output) {
    call.outputs[output] = outputs[output].owned();
  }
}

}  // namespace

std::vector<Op> scan_ops() {
  return {
      {.name = "Scan",
       .versions = {8, 9, 11, 16, 19, 21, 23, 24, 25},
       .inputs = {{"sequence_lens", "I", Arity::Optional, 8, 8},
                  {"initial_state_and_scan_inputs", "V", Arity::Variadic}},
       .outputs = {{"final_state_and_scan_outputs", "V", Arity::Variadic}},
       .type_variables = {{"I", kInt64Type}},
       .attributes = {{.name = "num_scan_inputs", .kind = AttributeKind::Int, .is_required = true},
                      {"directions", AttributeKind::Ints, std::nullopt, 8, 8},
                      {"scan_input_axes", AttributeKind::Ints, std::nullopt, 9},
                      {"scan_input_directions", AttributeKind::Ints, std::nullopt, 9},
                      {"scan_output_axes", AttributeKind::Ints, std::nullopt, 9},
                      {"scan_output_directions", AttributeKind::Ints, std::nullopt, 9}},
       .bodies = {"body"},
       .infer = infer_scan,
       .flops = no_flops,
       .value_kernel = run_scan,
       .body_rule = scan_types}};
}

}  // namespace tessera::ops
