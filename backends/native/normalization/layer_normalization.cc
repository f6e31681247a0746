// LayerNormalization, also as the nodes into which exporters decompose it, with or without a mean
// (RMS normalization).
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/any_address.h"
#include "base/families.h"
#include "base/grain.h"
#include "base/refusal.h"
#include "copy/staging.h"
#include "normalization/normalization_kernels.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Candidate;
using plugin::Failure;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;
using plugin::Type;
using plugin::Value;

namespace {

// Ports are indices among the inputs or outputs of the candidate; -1: absent.
struct LayerProblem {
  int64_t rows = 1;  // when it is proposed; a run has as many as its buffers
  int64_t length = 1;
  size_t axis = 0;  // the first axis of the input that belongs to a row
  double epsilon = 0;
  bool is_centred = true;
  int scale = -1;     // input
  int shift = -1;     // input
  int means = -1;     // output
  int inverses = -1;  // output
};

class RowKernel : public plugin::Kernel {
 public:
  explicit RowKernel(const LayerProblem& problem)
      : problem_(problem), loops_(find_normalization_loops()) {}

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const int64_t length = problem_.length;
    const int64_t rows = length == 0 ? 0 : inputs[0].elements() / length;
    if (rows == 0) return;
    const auto at = [](std::span<const Buffer> buffers, int port) -> float* {
      return port < 0 ? nullptr : buffers[static_cast<size_t>(port)].as<float>();
    };
    const RowNormalization parameters = {problem_.length, problem_.epsilon, problem_.is_centred,
                                         at(inputs, problem_.scale), at(inputs, problem_.shift)};
    const float* from = inputs[0].as<const float>();
    float* to = outputs[0].as<float>();
    float* means = at(outputs, problem_.means);
    float* inverses = at(outputs, problem_.inverses);
    const auto behind = [](float* first, int64_t row) {
      return first == nullptr ? nullptr : first + row;
    };
    const StagedWriter writer(rows * length, to == from);
    context.parallel_for(rows, kGrain / length + 1, [&](int64_t begin, int64_t end) {
      writer.write(to + begin * length, begin, end, length,
                   [&](int64_t first, int64_t last, float* target) {
                     loops_.rows(from + first * length, target, last - first, parameters,
                                 behind(means, first), behind(inverses, first));
                   });
      writer.finish();
    });
  }

 private:
  LayerProblem problem_;
  NormalizationLoops loops_;
};

// Whether a parameter has one number for each element of a row; leading axes of length 1 do not
// matter.
bool fits_rows(const Value& parameter, const std::vector<int64_t>& dims, size_t axis) {
  const Type type = parameter.type();
  if (type.data_type != TESSERA_FLOAT32 || !type.is_known()) return false;
  const auto is_long = [](int64_t dim) { return dim != 1; };
  const auto row = dims.begin() + static_cast<int64_t>(axis);
  return std::equal(std::find_if(type.dims.begin(), type.dims.end(), is_long), type.dims.end(),
                    std::find_if(row, dims.end(), is_long), dims.end());
}

LayerProblem problem_of(const std::vector<int64_t>& dims, size_t axis) {
  LayerProblem problem;
  problem.axis = axis;
  for (size_t position = 0; position < dims.size(); ++position) {
    (position < axis ? problem.rows : problem.length) *= dims[position];
  }
  return problem;
}

// All dimensions but those of the rows.
std::vector<tessera_built_for> all_but_rows(const ProposeContext& context,
                                            const LayerProblem& problem,
                                            const Candidate& candidate) {
  std::vector<tessera_built_for> built_for;
  for (size_t port = 0; port < candidate.inputs.size(); ++port) {
    const size_t rank = context.graph().value(candidate.inputs[port].value).type().dims.size();
    for (size_t axis = port == 0 ? problem.axis : 0; axis < rank; ++axis) {
      built_for.push_back({static_cast<int32_t>(port), static_cast<int32_t>(axis)});
    }
  }
  return built_for;
}

void add(ProposeContext& context, const LayerProblem& problem, Candidate candidate) {
  candidate.algorithm = "rows";
  candidate.built_for = all_but_rows(context, problem, candidate);
  candidate.outputs[0].requests = TESSERA_REQUEST_WRITE | TESSERA_REQUEST_IN_PLACE;
  candidate.outputs[0].in_place_input = 0;
  const auto elements = static_cast<double>(problem.rows * problem.length);
  candidate.optimistic_seconds =
      context.optimistic_seconds(4 * elements, 2 * elements * sizeof(float));
  candidate.build = [problem](const plugin::BuildOptions&) {
    return std::make_unique<RowKernel>(problem);
  };
  accept_any_address(context.graph(), candidate);
  context.add(std::move(candidate));
}

// The input port of `value`, which is added if there is none.
int port_of(Candidate& candidate, const Value& value) {
  for (size_t index = 0; index < candidate.inputs.size(); ++index) {
    if (candidate.inputs[index].value == value.id()) return static_cast<int>(index);
  }
  candidate.inputs.push_back({.value = value.id()});
  return static_cast<int>(candidate.inputs.size()) - 1;
}

void offer_node(ProposeContext& context, const Node& node) {
  check_usable(node.input(0));
  const std::vector<int64_t> dims = node.input(0).type().dims;
  const size_t axis = plugin::normalized_axis(node.attributes().get_int("axis", -1), dims.size());
  LayerProblem problem = problem_of(dims, axis);
  problem.epsilon = node.attributes().get_float("epsilon", 1e-5F);
  Candidate candidate;
  candidate.nodes = {node.id()};
  candidate.inputs.push_back({.value = node.input(0).id()});
  candidate.outputs.push_back({.value = node.output(0).id()});
  for (const size_t index : {size_t{1}, size_t{2}}) {
    const Value parameter = node.input(index);
    if (!parameter.is_present()) continue;
    if (!fits_rows(parameter, dims, axis)) {
      throw Failure(TESSERA_UNSUPPORTED, "takes a scale and shift of the normalised axes only");
    }
    (index == 1 ? problem.scale : problem.shift) = port_of(candidate, parameter);
  }
  for (const size_t index : {size_t{1}, size_t{2}}) {
    const Value output = node.output(index);
    if (!output.is_present()) continue;
    check_usable(output);
    if (problem.length == 0) throw Failure(TESSERA_UNSUPPORTED, "does not average over empty rows");
    (index == 1 ? problem.means : problem.inverses) = static_cast<int>(candidate.outputs.size());
    candidate.outputs.push_back({.value = output.id()});
  }
  add(context, problem, std::move(candidate));
}

// --- Decomposed forms ----------------------------------------------------------------------------

// One step of a pattern, and its role.
enum class Role : uint8_t { Other, Mean, Square, Epsilon, Scale, Shift };
struct Step {
  Role role;
  const char* text;
};
using Steps = std::vector<Step>;

// Every form in which exporters divide x, or x less its mean, by its deviation.
std::vector<Steps> written_forms() {
  const Step deviation[] = {{Role::Mean, "v = ReduceMean(p, ...)"},
                            {Role::Epsilon, "e = Add(v, #)"},
                            {Role::Other, "s = Sqrt(e)"}};
  const std::vector<Steps> starts = {
      {{Role::Mean, "m = ReduceMean(x, ...)"}, {Role::Other, "d = Sub(x, m)"}},
      {{Role::Mean, "m = ReduceMean(x, ...)"},
       {Role::Other, "d = Sub(x, m)"},
       {Role::Other, "c = Sub(x, m)"}},
      {}};
  std::vector<Steps> forms;
  for (const Steps& start : starts) {
    const std::string squared = start.size() == 3 ? "c" : start.empty() ? "x" : "d";
    const bool is_centred = !start.empty();
    for (const bool is_power : {true, false}) {
      const char* square = squared == "c"   ? (is_power ? "p = Pow(c, #)" : "p = Mul(c, c)")
                           : squared == "d" ? (is_power ? "p = Pow(d, #)" : "p = Mul(d, d)")
                                            : (is_power ? "p = Pow(x, #)" : "p = Mul(x, x)");
      for (const int division : {0, 1, 2}) {
        Steps form = start;
        form.push_back({is_power ? Role::Square : Role::Other, square});
        form.insert(form.end(), std::begin(deviation), std::end(deviation));
        if (division == 0) {
          form.push_back({Role::Other, is_centred ? "q = Div(d, s)" : "q = Div(x, s)"});
        } else {
          form.push_back({Role::Other, division == 1 ? "r = Reciprocal(s)" : "r = Div(1, s)"});
          form.push_back({Role::Other, is_centred ? "q = Mul(d, r)" : "q = Mul(x, r)"});
        }
        forms.push_back(std::move(form));
      }
    }
  }
  return forms;
}

std::string text_of(const Steps& steps) {
  std::string text;
  for (const Step& step : steps) text += (text.empty() ? "" : "; ") + std::string(step.text);
  return text;
}

// The first reduced axis, if all axes from it on are reduced and kept with length 1; else nullopt.
std::optional<size_t> first_reduced(const Node& node, const std::vector<int64_t>& dims) {
  if (node.attributes().get_int("keepdims", 1) == 0) return std::nullopt;
  const std::vector<bool> is_reduced = plugin::reduced_axes(node, dims.size());
  const auto first = std::find(is_reduced.begin(), is_reduced.end(), true);
  if (first == is_reduced.end() || std::find(first, is_reduced.end(), false) != is_reduced.end()) {
    return std::nullopt;
  }
  return static_cast<size_t>(first - is_reduced.begin());
}

// The operand of a Mul or Add that is not computed by the group itself.
Value other_operand(const Node& node, const std::vector<int32_t>& nodes) {
  const int32_t maker = node.input(0).producer();
  const bool is_made = std::find(nodes.begin(), nodes.end(), maker) != nodes.end();
  return node.input(is_made ? 1 : 0);
}

void offer_form(ProposeContext& context, const Steps& steps, const std::vector<int32_t>& nodes) {
  const plugin::Graph& graph = context.graph();
  const Node first = graph.node(nodes.front());
  const Value x = first.input(0);
  const Value result = graph.node(nodes.back()).output(0);
  check_usable(x);
  const std::vector<int64_t> dims = x.type().dims;
  if (result.type() != x.type() || dims.empty()) return;
  std::optional<size_t> axis;
  LayerProblem problem;
  Candidate candidate;
  candidate.inputs.push_back({.value = x.id()});
  bool is_centred = false;
  double epsilon = 0;
  for (size_t index = 0; index < steps.size(); ++index) {
    const Node node = graph.node(nodes[index]);
    if (steps[index].role == Role::Mean) {
      const std::optional<size_t> found = first_reduced(node, dims);
      if (!found || (axis && axis != found)) return;
      axis = found;
      problem = problem_of(dims, *axis);
      is_centred = is_centred || index == 0;
    } else if (steps[index].role == Role::Square) {
      if (plugin::constant_number(node.input(1)) != 2) return;
    } else if (steps[index].role == Role::Epsilon) {
      const std::optional<double> number = plugin::constant_number(other_operand(node, nodes));
      if (!number) return;
      epsilon = *number;
    } else if (steps[index].role != Role::Other) {
      const Value parameter = other_operand(node, nodes);
      if (!axis || !fits_rows(parameter, dims, *axis) || parameter.id() == x.id()) return;
      (steps[index].role == Role::Scale ? problem.scale : problem.shift) =
          port_of(candidate, parameter);
    }
  }
  if (problem.rows * problem.length == 0) return;
  problem.epsilon = epsilon;
  problem.is_centred = is_centred;
  candidate.nodes = nodes;
  std::sort(candidate.nodes.begin(), candidate.nodes.end());
  candidate.flags = TESSERA_CANDIDATE_ONE_PASS;
  candidate.outputs.push_back({.value = result.id()});
  add(context, problem, std::move(candidate));
}

// Offers the form alone, and with a following scale and shift.
void offer_written(ProposeContext& context, Steps steps) {
  const Step tails[] = {{Role::Scale, "g = Mul(q, _)"}, {Role::Shift, "Add(g, _)"}};
  for (size_t tail = 0; tail <= std::size(tails); ++tail) {
    const auto matches = context.graph().match(text_of(steps));
    // If a form does not occur, its extensions do not either.
    if (matches.empty()) return;
    for (const auto& nodes : matches) {
      try {
        offer_form(context, steps, nodes);
      } catch (const Failure& failure) {
        context.refuse(nodes.back(), failure.what());
      }
    }
    if (tail < std::size(tails)) steps.push_back(tails[tail]);
  }
}

}  // namespace

void propose_layer_normalizations(ProposeContext& context) {
  for (const Steps& form : written_forms()) offer_written(context, form);
  context.for_each({"LayerNormalization"}, [&](const Node& node) { offer_node(context, node); });
}

}  // namespace tessera::native
