#include "compile/open_graph.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/containers/at.h"
#include "graph/compact.h"
#include "graph/dim_names.h"
#include "graph/same_operation.h"
#include "graph/verify.h"
#include "infer/infer.h"
#include "infer/numbers.h"
#include "infer/specialise.h"
#include "ops/evaluate.h"
#include "ops/shape_arithmetic.h"
#include "rewrite/passes.h"
#include "tessera/backend_abi.h"
#include "tessera/error.h"

namespace tessera {
namespace {

// Layers of a network repeat nodes with the same inputs. A node is compared with so many of its
// kind before its type rule is asked: more would take longer than the rule.
constexpr size_t kMostCompared = 8;

// Whether rules, or reference kernels, follow the elements of values of this type.
bool may_be_list(const Type& type) {
  if (may_be_numbers(type)) return true;
  if (!ops::propagates_elements(type.element) || !type.is_known_tensor()) return false;
  return element_count(dims_from(*type.shape)) <= ops::kMaxShapeElements;
}

// Whether the elements of `value` follow from sizes.
bool is_decided_by_sizes(const Value& value) {
  if (!value.numbers.is_empty()) return true;
  const bool is_integer =
      value.type.element == DataType::Int64 || value.type.element == DataType::Int32;
  return is_integer && !value.is_constant() && value.type.is_known_tensor() && value.elements &&
         is_known(*value.elements);
}

// Whether both have the same type, and the same elements as far as they are known.
bool have_same_sizes(const Value& left, const Value& right) {
  if (left.type != right.type || left.elements != right.elements ||
      left.numbers.is_empty() != right.numbers.is_empty()) {
    return false;
  }
  return left.numbers.is_empty() || have_same_elements(left.numbers, right.numbers);
}

// -1 for what is unknown; no dimensions if their number is unknown.
std::vector<int64_t> known_dims(const Type& type) {
  std::vector<int64_t> dims;
  if (!type.shape) return dims;
  for (const Dim& dim : *type.shape) dims.push_back(dim.is_known() ? dim.value() : -1);
  return dims;
}

// Why the nodes of `graph` could differ for other sizes; "" if they could not.
std::string explain_fixed(const Graph& graph) {
  for (const ValueId id : graph.inputs) {
    const Type::Kind kind = graph[id].type.kind;
    if (kind == Type::Kind::Tensor || kind == Type::Kind::Unknown) continue;
    return "input '" + graph[id].name + "' is no tensor";
  }
  return "";
}

// Takes out the nodes that compute integers, or few other numbers, from sizes. Returns these
// tensors, as far as nodes that stay read them or they are outputs.
std::vector<ValueId> take_out_size_nodes(Graph& graph, const ops::Registry& registry) {
  std::vector<bool> is_taken(graph.values.size(), false);
  for (Node& node : graph.nodes) {
    const bool is_random = (registry.of(node).traits & ops::kRandom) != 0;
    const bool is_decided = std::ranges::all_of(
        node.outputs, [&](ValueId id) { return id.is_none() || is_decided_by_sizes(graph[id]); });
    if (is_random || !is_decided) continue;
    node.is_removed = true;
    for (const ValueId id : node.outputs) {
      if (!id.is_none()) is_taken[static_cast<size_t>(id.index)] = true;
    }
  }
  std::vector<ValueId> read;
  const auto note = [&](ValueId id) {
    if (id.is_none() || !is_taken[at(id.index)]) return;
    is_taken[at(id.index)] = false;  // once
    read.push_back(id);
  };
  for (const Node& node : graph.nodes) {
    if (node.is_removed) continue;
    std::ranges::for_each(node.inputs, note);
    for (const Body& body : node.bodies) {
      std::ranges::for_each(body.graph.captures, note, &Capture::outer);
    }
  }
  std::ranges::for_each(graph.outputs, note);
  return read;
}

// A copy without the elements of large constants.
Graph without_weights(Graph graph) {
  for (Value& value : graph.values) {
    if (!value.is_constant() || value.constant.bytes() <= TESSERA_SMALL_CONSTANT_BYTES) continue;
    value.constant = {};
    value.sparse_constant.reset();
    value.elements.reset();
  }
  return graph;
}

// Writes `elements` into `tensor`, a new one if it has other dimensions. False if one does not fit
// the type.
template <class T>
bool write_elements(const Type& type, const std::vector<Dim>& elements, Tensor& tensor) {
  const bool is_alike = !tensor.is_empty() && tensor.type() == type.element &&
                        tensor.rank() == static_cast<int64_t>(type.shape->size()) &&
                        std::ranges::equal(tensor.dims(), *type.shape, {}, {}, &Dim::value);
  if (!is_alike) tensor = Tensor(type.element, dims_from(*type.shape));
  if (tensor.elements() != static_cast<int64_t>(elements.size())) return false;
  T* next = static_cast<T*>(tensor.mutable_data());
  for (const Dim& element : elements) {
    const int64_t number = element.value();
    if (number < std::numeric_limits<T>::min() || number > std::numeric_limits<T>::max()) {
      return false;
    }
    *next++ = static_cast<T>(number);
  }
  return true;
}

}  // namespace

std::variant<OpenGraph, std::string> open_graph(
    const LoadedModel& model, const std::map<std::string, std::vector<int64_t>>& shapes,
    const std::vector<std::string>& fetch, const ops::Registry& registry, ThreadPool& pool,
    const Log& log) {
  if (!fetch.empty()) return "inner values are fetched";
  OpenGraph open;
  // Nested graphs are models of their own, which get their sizes in the run.
  open.graph = infer_types(specialise(model.graph, shapes), registry, log,
                           {.nested_from = &model.graph, .follows_numbers = true});
  open.graph.kept.clear();
  open.model_inputs = open.graph.inputs.size();
  std::string fixed = explain_fixed(open.graph);
  if (!fixed.empty()) return fixed;
  for (const ValueId id : take_out_size_nodes(open.graph, registry)) {
    open.graph.inputs.push_back(id);
  }
  std::vector<std::string> changes;
  open.graph = compact(std::move(open.graph));
  open.graph = compact(remove_dead_nodes(std::move(open.graph), {registry, pool, changes}));
#ifdef TESSERA_CHECKS
  verify(open.graph, "open_graph");
#endif
  return open;
}

ValueSizes::ValueSizes(const Graph& loaded, const OpenGraph& open, const ops::Registry& registry)
    : graph_(without_weights(loaded)), must_be_known_(loaded.values.size(), false) {
  for (size_t index = 0; index < graph_.values.size(); ++index) {
    sizes_of_.push_back({static_cast<int32_t>(index)});
  }
  const std::vector<int> uses = use_counts(graph_);
  for (const ValueId id : graph_.inputs) {
    is_read_.push_back(uses[static_cast<size_t>(id.index)] > 0);
    declared_.push_back(graph_[id].type.shape);
  }
  // The rule of a node whose outputs are known may still refuse sizes of its inputs.
  std::vector<bool> has_unknown_elements(graph_.values.size());
  const auto is_open = [&](ValueId id) {
    if (id.is_none()) return false;
    const Value& value = graph_[id];
    const bool has_open_elements = (value.elements && !is_known(*value.elements)) ||
                                   has_unknown_elements[static_cast<size_t>(id.index)];
    return !value.is_constant() && (!value.type.is_known_tensor() || has_open_elements);
  };
  for (size_t index = 0; index < graph_.nodes.size(); ++index) {
    const Node& node = graph_.nodes[index];
    if (!node.bodies.empty()) continue;
    if (std::ranges::any_of(node.inputs, is_open) || std::ranges::any_of(node.outputs, is_open)) {
      add_open_node(index, registry);
      // A rule may know the elements of a list although it could not express them by symbols.
      for (const ValueId id : node.outputs) {
        if (id.is_none() || graph_[id].elements) continue;
        has_unknown_elements[static_cast<size_t>(id.index)] = may_be_list(graph_[id].type);
      }
    }
  }
  std::unordered_map<std::string_view, ValueId> by_name;
  for (size_t index = 0; index < graph_.values.size(); ++index) {
    by_name.emplace(graph_.values[index].name, ValueId{static_cast<int32_t>(index)});
  }
  for (const Value& value : open.graph.values) {
    const auto found = by_name.find(value.name);
    source_.push_back(found == by_name.end() ? ValueId{} : found->second);
    dims_.push_back(known_dims(value.type));
    if (!source_.back().is_none()) {
      must_be_known_[at(source_.back().index)] = value.type.is_known_tensor();
    }
  }
  for (size_t index = open.model_inputs; index < open.graph.inputs.size(); ++index) {
    passed_.push_back(source_[static_cast<size_t>(open.graph.inputs[index].index)]);
  }
  inputs_.resize(passed_.size());
}

bool ValueSizes::set(std::span<const std::vector<int64_t>> inputs) {
  try {
    for (size_t index = 0; index < inputs.size(); ++index) {
      if (!is_read_[index]) continue;
      const std::optional<Shape>& declared = declared_[index];
      if (declared && !permits(*declared, inputs[index])) return false;
      Value& value = graph_[graph_.inputs[index]];
      if (value.type.kind == Type::Kind::Tensor) value.type.shape = shape_from(inputs[index]);
    }
    for (std::vector<size_t>& inferred : inferred_) inferred.clear();
    for (OpenNode& open : open_nodes_) {
      if (!infer(open)) return false;
    }
    return update();
  } catch (const Error&) {
    return false;  // a bind for these shapes reports it
  }
}

void ValueSizes::add_open_node(size_t index, const ops::Registry& registry) {
  OpenNode& open = open_nodes_.emplace_back();
  open.index = index;
  open.op = &registry.of(graph_.nodes[index]);
  const std::vector<ValueId>& inputs = graph_.nodes[index].inputs;
  for (size_t input = 0; input < inputs.size(); ++input) {
    open.inputs.push_back(infer_input(graph_, inputs[input]));
    const bool may_change = !inputs[input].is_none() && !graph_[inputs[input]].is_constant();
    if (may_change) open.open_inputs.push_back(input);
  }
  open.kind = kind_of(open);
}

// Compares all but the sizes of open inputs, and the elements of floating-point constants, which
// few rules read.
bool ValueSizes::are_alike(const OpenNode& left, const OpenNode& right) const {
  const Node& one = graph_.nodes[left.index];
  const Node& other = graph_.nodes[right.index];
  const auto is_same = [](const ops::InferInput& first, const ops::InferInput& second) {
    const bool has_constant = first.constant != nullptr;
    if (first.is_present != second.is_present || first.type.element != second.type.element ||
        has_constant != (second.constant != nullptr)) {
      return false;
    }
    if (!has_constant) return true;
    return first.type == second.type && (is_floating(first.type.element) ||
                                         have_same_elements(*first.constant, *second.constant));
  };
  return do_same_operation(one, other) && left.open_inputs == right.open_inputs &&
         std::ranges::equal(one.outputs, other.outputs, {}, &ValueId::is_none, &ValueId::is_none) &&
         std::ranges::equal(left.inputs, right.inputs, is_same);
}

size_t ValueSizes::kind_of(const OpenNode& open) {
  const auto found = std::ranges::find_if(
      kinds_, [&](size_t other) { return are_alike(open_nodes_[other], open); });
  if (found != kinds_.end()) return static_cast<size_t>(found - kinds_.begin());
  kinds_.push_back(open_nodes_.size() - 1);
  inferred_.emplace_back();
  return kinds_.size() - 1;
}

const ValueSizes::OpenNode* ValueSizes::find_same(const OpenNode& open) const {
  const std::vector<ValueId>& inputs = graph_.nodes[open.index].inputs;
  for (const size_t index : inferred_[open.kind]) {
    const OpenNode& other = open_nodes_[index];
    const std::vector<ValueId>& others = graph_.nodes[other.index].inputs;
    const bool has_same_sizes = std::ranges::all_of(open.open_inputs, [&](size_t input) {
      const ValueId one = with_sizes(inputs[input]);
      const ValueId two = with_sizes(others[input]);
      return one == two || have_same_sizes(graph_[one], graph_[two]);
    });
    if (has_same_sizes && have_same_read_constants(open, other)) return &other;
  }
  return nullptr;
}

bool ValueSizes::have_same_read_constants(const OpenNode& open, const OpenNode& other) {
  if (other.constants_read == 0) return true;
  for (size_t input = 0; input < open.inputs.size(); ++input) {
    const bool is_open = std::ranges::binary_search(open.open_inputs, input);
    const Tensor* const constant = is_open ? nullptr : open.inputs[input].constant;
    const bool is_read = (other.constants_read & ops::InferContext::bit_of(input)) != 0;
    if (constant == nullptr || !is_read) continue;
    if (!have_same_elements(*constant, *other.inputs[input].constant)) return false;
  }
  return true;
}

bool ValueSizes::infer(OpenNode& open) {
  const Node& node = graph_.nodes[open.index];
  if (const OpenNode* const same = find_same(open)) {
    const std::vector<ValueId>& outputs = graph_.nodes[same->index].outputs;
    for (size_t index = 0; index < outputs.size(); ++index) {
      if (!outputs[index].is_none()) sizes_of_[at(node.outputs[index].index)] = outputs[index];
    }
    return true;
  }
  for (const size_t input : open.open_inputs) {
    const Value& value = graph_[with_sizes(node.inputs[input])];
    open.inputs[input].type.shape = value.type.shape;
    open.inputs[input].elements = value.elements;
    open.inputs[input].constant = value.numbers.is_empty() ? nullptr : &value.numbers;
  }
  ops::InferAnswer answer = ops::infer_again(*open.op, node, open.inputs);
  open.constants_read = answer.constants_read;
  std::vector<ops::InferOutput>& outputs = answer.outputs;
  for (size_t index = 0; index < outputs.size(); ++index) {
    const ValueId id = node.outputs[index];
    if (id.is_none()) continue;
    ops::InferOutput& output = outputs[index];
    const bool is_known = output.type.is_known_tensor();
    if (!is_known && must_be_known_[at(id.index)]) return false;
    if (output.type.element != graph_[id].type.element) return false;
    const auto is_negative = [](const Dim& dim) { return dim.is_known() && dim.value() < 0; };
    if (output.type.shape && std::ranges::any_of(*output.type.shape, is_negative)) return false;
    graph_[id].type = std::move(output.type);
    graph_[id].elements = std::move(output.elements);
    graph_[id].numbers = {};
    sizes_of_[at(id.index)] = id;
  }
  follow(open);
  std::vector<size_t>& inferred = inferred_[open.kind];
  if (inferred.size() < kMostCompared)
    inferred.push_back(static_cast<size_t>(&open - open_nodes_.data()));
  return true;
}

void ValueSizes::follow(const OpenNode& open) {
  const Node& node = graph_.nodes[open.index];
  const auto is_numbers = [&](ValueId id) {
    return id.is_none() || may_be_numbers(graph_[id].type);
  };
  if (!std::ranges::all_of(node.outputs, is_numbers)) return;
  std::vector<const Value*> inputs;
  for (const ValueId id : node.inputs) {
    inputs.push_back(id.is_none() ? nullptr : &graph_[with_sizes(id)]);
  }
  std::vector<Value*> outputs;
  for (const ValueId id : node.outputs) outputs.push_back(id.is_none() ? nullptr : &graph_[id]);
  follow_numbers(*open.op, node, inputs, outputs);
}

// Takes over the sizes of the values, and the elements of those that are passed.
bool ValueSizes::update() {
  for (size_t index = 0; index < source_.size(); ++index) {
    if (source_[index].is_none()) continue;
    const Type& type = graph_[with_sizes(source_[index])].type;
    // An input that nothing reads keeps what the open graph says.
    const bool is_left_out = must_be_known_[at(source_[index].index)] && !type.is_known_tensor();
    if (!type.shape || is_left_out) continue;
    const Shape& shape = *type.shape;
    dims_[index].resize(shape.size());
    std::ranges::transform(shape, dims_[index].begin(),
                           [](const Dim& dim) { return dim.is_known() ? dim.value() : -1; });
  }
  for (size_t index = 0; index < passed_.size(); ++index) {
    const Value& value = graph_[with_sizes(passed_[index])];
    if (!value.numbers.is_empty()) {
      inputs_[index] = value.numbers;
      continue;
    }
    if (!value.elements || !is_known(*value.elements)) return false;
    const bool is_written =
        value.type.element == DataType::Int64
            ? write_elements<int64_t>(value.type, *value.elements, inputs_[index])
            : write_elements<int32_t>(value.type, *value.elements, inputs_[index]);
    if (!is_written) return false;
  }
  return true;
}

VaryingDims varying_dims(ValueSizes& sizes, const FamilyShapes& shapes) {
  if (!sizes.set(shapes.dims)) return {};
  const std::vector<std::vector<int64_t>> first(sizes.dims().begin(), sizes.dims().end());
  VaryingDims varying;
  for (const std::vector<int64_t>& dims : first) varying.emplace_back(dims.size(), false);
  for (const std::vector<std::vector<int64_t>>& other : shapes.others) {
    if (!sizes.set(other)) continue;
    for (size_t value = 0; value < first.size(); ++value) {
      const std::vector<int64_t>& now = sizes.dims()[value];
      for (size_t axis = 0; axis < std::min(first[value].size(), now.size()); ++axis) {
        if (now[axis] != first[value][axis]) varying[value][axis] = true;
      }
    }
  }
  return varying;
}

namespace {

// How far from the given sizes others are tried, in steps.
constexpr std::array<int64_t, 9> kTriedSteps = {0, 1, -1, 2, -2, 3, 4, 5, 7};
// Images are often as large as a multiple of such a power of two.
constexpr int64_t kLargestStep = 64;

// The open dimensions of inputs that change together: those that the model gives one name, and that
// are equal.
struct OpenSize {
  std::string name;
  int64_t size = 0;
  std::vector<std::pair<size_t, size_t>> places;  // input and axis

  // Keeps the powers of two in it.
  int64_t step() const { return std::min(size & -size, kLargestStep); }
};

using InputDims = std::vector<std::vector<int64_t>>;

// With `joins_unnamed`, equal dimensions without a name count as one.
std::vector<OpenSize> open_sizes(const Graph& loaded, const InputDims& inputs, bool joins_unnamed) {
  std::vector<OpenSize> open;
  for (size_t index = 0; index < inputs.size(); ++index) {
    const std::optional<Shape>& declared = loaded[loaded.inputs[index]].type.shape;
    if (!declared || declared->size() != inputs[index].size()) continue;
    for (size_t axis = 0; axis < declared->size(); ++axis) {
      const int64_t size = inputs[index][axis];
      if ((*declared)[axis].is_known() || size <= 1) continue;
      const std::string name = name_of((*declared)[axis]);
      auto found = std::ranges::find_if(open, [&](const OpenSize& one) {
        return one.name == name && one.size == size && (joins_unnamed || !name.empty());
      });
      if (found == open.end()) found = open.insert(open.end(), {.name = name, .size = size});
      found->places.emplace_back(index, axis);
    }
  }
  return open;
}

// Dimensions of different names get different sizes.
InputDims shifted(const InputDims& given, const std::vector<OpenSize>& open, int64_t steps) {
  InputDims inputs = given;
  for (size_t index = 0; index < open.size(); ++index) {
    const int64_t shift = steps == 0 ? 0 : steps + static_cast<int64_t>(index);
    const int64_t size = std::max<int64_t>(2, open[index].size + shift * open[index].step());
    for (const auto& [input, axis] : open[index].places) inputs[input][axis] = size;
  }
  return inputs;
}

// How many sizes of a node are equal to another one in `dims`, but not in all of `others`.
int64_t count_chance_equalities(const Graph& graph, const InputDims& dims,
                                const std::vector<InputDims>& others) {
  struct Size {
    int64_t size = 0;
    size_t value = 0;
    size_t axis = 0;
  };
  int64_t count = 0;
  std::vector<Size> sizes;
  for (const Node& node : graph.nodes) {
    sizes.clear();
    for (const std::vector<ValueId>* const ids : {&node.inputs, &node.outputs}) {
      for (const ValueId id : *ids) {
        if (id.is_none()) continue;
        const auto value = static_cast<size_t>(id.index);
        for (size_t axis = 0; axis < dims[value].size(); ++axis) {
          if (dims[value][axis] > 1) sizes.push_back({dims[value][axis], value, axis});
        }
      }
    }
    std::ranges::stable_sort(sizes, {}, &Size::size);
    for (size_t index = 1; index < sizes.size(); ++index) {
      const Size& left = sizes[index - 1];
      const Size& right = sizes[index];
      if (left.size != right.size) continue;
      count += std::ranges::any_of(others, [&](const InputDims& other) {
        return other[left.value][left.axis] != other[right.value][right.axis];
      });
    }
  }
  return count;
}

}  // namespace

std::map<std::string, std::vector<int64_t>> typical_shapes(
    const Graph& loaded, const std::map<std::string, std::vector<int64_t>>& shapes,
    const ops::Registry& registry) {
  InputDims given;
  for (const ValueId id : loaded.inputs) {
    const auto found = shapes.find(loaded[id].name);
    const Type& declared = loaded[id].type;
    given.push_back(found != shapes.end()        ? found->second
                    : declared.is_known_tensor() ? dims_from(*declared.shape)
                                                 : std::vector<int64_t>());
  }
  ValueSizes sizes(loaded, {loaded, loaded.inputs.size()}, registry);
  std::vector<InputDims> tried;
  std::vector<InputDims> dims;  // of all values, for each of these
  for (const bool joins_unnamed : {false, true}) {
    if (tried.size() > 1) break;  // dimensions without a name may differ
    tried.clear();
    dims.clear();
    const std::vector<OpenSize> open = open_sizes(loaded, given, joins_unnamed);
    for (const int64_t steps : kTriedSteps) {
      InputDims inputs = shifted(given, open, steps);
      if (!sizes.set(inputs)) continue;
      tried.push_back(std::move(inputs));
      dims.emplace_back(sizes.dims().begin(), sizes.dims().end());
    }
  }
  std::map<std::string, std::vector<int64_t>> best = shapes;
  int64_t fewest = std::numeric_limits<int64_t>::max();
  for (size_t index = 0; index < tried.size(); ++index) {
    const int64_t count = count_chance_equalities(loaded, dims[index], dims);
    if (count >= fewest) continue;
    fewest = count;
    for (size_t input = 0; input < tried[index].size(); ++input) {
      const auto found = best.find(loaded[loaded.inputs[input]].name);
      if (found != best.end()) found->second = tried[index][input];
    }
  }
  return best;
}

}  // namespace tessera
