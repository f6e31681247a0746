#include "infer/infer.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/errors/check.h"
#include "infer/numbers.h"
#include "ops/control_flow/join_types.h"
#include "ops/evaluate.h"
#include "tessera/error.h"

namespace tessera {
namespace {

bool is_word_character(char character) {
  return std::isalnum(static_cast<unsigned char>(character)) != 0 || character == '_';
}

bool contains_word(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    const bool begins = at == 0 || !is_word_character(text[at - 1]);
    const bool ends = end == text.size() || !is_word_character(text[end]);
    if (begins && ends) return true;
  }
  return false;
}

bool derives_from(const std::string& symbol, const std::set<std::string>& input_symbols) {
  // A digest hides the symbols in it. Treating it as derived from inputs is safe: the dimension
  // merely stays unknown longer.
  if (symbol.starts_with("~")) return true;
  return std::any_of(input_symbols.begin(), input_symbols.end(),
                     [&](const std::string& input) { return contains_word(symbol, input); });
}

// False if the two contradict.
bool merge_shapes(const std::optional<Shape>& declared, std::optional<Shape>& inferred,
                  const std::set<std::string>& input_symbols) {
  if (!inferred) inferred = declared;
  if (!declared) return true;
  if (declared->size() != inferred->size()) return false;
  for (size_t axis = 0; axis < declared->size(); ++axis) {
    const Dim& dim = (*inferred)[axis];
    if ((*declared)[axis].is_known() && dim.is_known() && (*declared)[axis] != dim) return false;
  }
  for (size_t axis = 0; axis < declared->size(); ++axis) {
    Dim& dim = (*inferred)[axis];
    if (dim.is_known() || !(*declared)[axis].is_known()) continue;
    if (!derives_from(dim.symbol(), input_symbols)) dim = (*declared)[axis];
  }
  return true;
}

std::string output_location(const Node& node, const Value& value) {
  return location_of(node) + ", output '" + value.name + "'";
}

// Throws InvalidModel at `where` if a dimension is negative or the byte size overflows.
void check_size(const Type& type, const std::string& where) {
  if (!type.is_tensor() || !type.shape) return;
  for (const Dim& dim : *type.shape) {
    if (dim.is_known() && dim.value() < 0) {
      throw Error(ErrorKind::InvalidModel, where,
                  "expected dimensions of at least 0, found " + text(*type.shape));
    }
  }
  try {
    type_bytes(type);
  } catch (const Error& error) {
    throw Error(ErrorKind::InvalidModel, where, error.where() + ": " + error.message());
  }
}

// Infers a graph in place: a copy of a graph has copies of all that are nested in it.
class Inference {
 public:
  Inference(Graph& graph, const ops::Registry& registry, const Log& log,
            const InferOptions& options)
      : graph_(graph), registry_(registry), log_(log), options_(options) {}

  void run() {
    for (const ValueId id : graph_.inputs) {
      check_size(graph_[id].type, "graph input '" + graph_[id].name + "'");
      note_symbols(graph_[id].type);
    }
    for (const Capture& capture : graph_.captures) note_symbols(graph_[capture.inner].type);
    for (size_t index = 0; index < graph_.nodes.size(); ++index) {
      Node& node = graph_.nodes[index];
      if (!node.bodies.empty() && options_.nested_from != nullptr) {
        keep_nested(options_.nested_from->nodes[index], node);
        continue;
      }
      infer_bodies(node);
      infer_node(node);
    }
  }

 private:
  void note_symbols(const Type& type) {
    if (!type.shape) return;
    for (const Dim& dim : *type.shape) {
      if (!dim.is_known()) input_symbols_.insert(dim.symbol());
    }
  }

  void keep_nested(const Node& from, Node& node) {
    node.bodies = from.bodies;
    for (const ValueId id : node.outputs) {
      if (!id.is_none()) graph_[id].type = (*options_.nested_from)[id].type;
    }
  }

  void infer_bodies(Node& node) {
    const ops::Op& op = registry_.of(node);
    for (size_t index = 0; index < node.bodies.size(); ++index) {
      Graph& body = node.bodies[index].graph;
      capture_values(body);
      if (op.body_rule == nullptr) {
        infer_branch(node, index);
      } else {
        infer_fed_body(op, node, index);
      }
    }
  }

  // What `body` knows of the values that it captures.
  void capture_values(Graph& body) const {
    take_captured_constants(graph_, body);
    for (const Capture& capture : body.captures) {
      const Value& outer = graph_[capture.outer];
      Value& inner = body[capture.inner];
      inner.type = renamed(outer.type);
      inner.elements.reset();
      if (outer.elements && is_known(*outer.elements)) inner.elements = outer.elements;
    }
  }

  // `type` for another graph: names of nodes are unique in one graph only, and so are the symbols
  // that contain them. Equal symbols stay equal.
  static Type renamed(Type type) {
    if (!type.shape) return type;
    for (Dim& dim : *type.shape) {
      const bool is_of_this_graph = !dim.is_known() && dim.symbol().find('?') != std::string::npos;
      if (is_of_this_graph) dim = Dim::symbol("?^(" + dim.symbol() + ")");
    }
    return type;
  }

  // A branch that cannot be run may be one that is not taken, as it is for other shapes: binding
  // and running it report the error. It keeps the types that were found before.
  void infer_branch(Node& node, size_t index) {
    try {
      infer_body(node, index, log_);
    } catch (const Error& error) {
      const bool may_be_left_out = error.kind() == ErrorKind::InvalidModel && !options_.is_strict;
      if (!may_be_left_out) throw;
    }
  }

  void infer_body(Node& node, size_t index, const Log& log) const {
    InferOptions options = options_;
    ++options.depth;
    try {
      Inference(node.bodies[index].graph, registry_, log, options).run();
    } catch (const Error& error) {
      throw Error(error.kind(),
                  location_of(node) + ", " + node.bodies[index].attribute + ", " + error.where(),
                  error.message());
    }
  }

  // Infers a nested graph whose inputs have the types that its node gives them. A carried value may
  // change its size from run to run: then its type is one that has all of them.
  void infer_fed_body(const ops::Op& op, Node& node, size_t index) {
    std::vector<Type> given;
    for (const ValueId id : node.inputs) {
      given.push_back(id.is_none() ? Type() : renamed(graph_[id].type));
    }
    ops::BodyTypes types = op.body_rule(node, given, index);
    // Each round of an outer body infers the inner ones again.
    const bool may_repeat = options_.depth < kMaxRepeatedDepth;
    if (!may_repeat) forget_carried_sizes(types);
    Graph& body = node.bodies[index].graph;
    const Graph declared = !may_repeat && are_settled(types) ? Graph() : body;
    for (int round = 0;; ++round) {
      if (round > 0) body = declared;
      for (size_t input = 0; input < types.inputs.size(); ++input) {
        feed(node, index, body[body.inputs[input]], types.inputs[input]);
      }
      infer_body(node, index, round == 0 ? log_ : silent_);
      const bool is_settled = !join_carried(node, index, body, types);
      if (is_settled || round == kMaxRounds) return;
      if (round + 1 == kMaxRounds) forget_carried_sizes(types);
    }
  }

  static void feed(const Node& node, size_t index, Value& input, const Type& given) {
    const Type declared = input.type;
    const bool is_other = declared.is_tensor() && given.is_tensor() &&
                          declared.element != DataType::Undefined &&
                          given.element != DataType::Undefined && declared.element != given.element;
    if (is_other) {
      throw Error(
          ErrorKind::InvalidModel,
          location_of(node) + ", " + node.bodies[index].attribute + ", input '" + input.name + "'",
          "the model declares " + text(declared) + ", but " + text(given) +
              " follows from the node's inputs");
    }
    input.elements.reset();
    if (given.kind == Type::Kind::Unknown) return;
    input.type = given;
    if (declared.kind != given.kind) return;
    if (input.type.element == DataType::Undefined) input.type.element = declared.element;
    if (input.type.contents.empty()) input.type.contents = declared.contents;
  }

  static void forget_carried_sizes(ops::BodyTypes& types) {
    for (const ops::BodyTypes::Carried& carried : types.carried) {
      types.inputs[carried.input].shape.reset();
    }
  }

  // Whether no output can change the type of a carried value: all are tensors of known elements,
  // whose sizes are forgotten.
  static bool are_settled(const ops::BodyTypes& types) {
    return std::ranges::all_of(types.carried, [&](const ops::BodyTypes::Carried& carried) {
      const Type& type = types.inputs[carried.input];
      return type.is_tensor() && type.element != DataType::Undefined;
    });
  }

  // Returns whether an input got another type, because the output that becomes it has another one.
  static bool join_carried(const Node& node, size_t index, const Graph& body,
                           ops::BodyTypes& types) {
    bool is_changed = false;
    for (const ops::BodyTypes::Carried& carried : types.carried) {
      const Value& input = body[body.inputs[carried.input]];
      const Value& output = body[body.outputs[carried.output]];
      const auto unknown = [&](size_t axis) {
        return Dim::symbol("?" + input.name + ".carried." + std::to_string(axis));
      };
      const std::optional<Type> joined =
          ops::join_types(input.type, ops::outside_of_graph(output.type, unknown), unknown);
      if (!joined) {
        throw Error(ErrorKind::InvalidModel,
                    location_of(node) + ", " + node.bodies[index].attribute + ", output '" +
                        output.name + "'",
                    "expected " + text(input.type) + ", as input '" + input.name +
                        "' is, whose next value it is, found " + text(output.type));
      }
      if (*joined == types.inputs[carried.input]) continue;
      is_changed = is_changed || *joined != input.type;
      types.inputs[carried.input] = *joined;
    }
    return is_changed;
  }

  void infer_node(const Node& node) {
    const ops::Op& op = registry_.of(node);
    if (op.infer == nullptr) return;
    std::vector<ops::InferInput> inputs;
    inputs.reserve(node.inputs.size());
    for (const ValueId id : node.inputs) inputs.push_back(infer_input(graph_, id));
    std::vector<ops::InferOutput> outputs = run_rule(op, node, std::move(inputs));
    for (size_t index = 0; index < node.outputs.size(); ++index) {
      if (node.outputs[index].is_none()) continue;
      accept(node, graph_[node.outputs[index]], std::move(outputs[index]));
    }
    if (!options_.follows_numbers) return;
    std::vector<const Value*> read;
    for (const ValueId id : node.inputs) read.push_back(id.is_none() ? nullptr : &graph_[id]);
    std::vector<Value*> made;
    for (const ValueId id : node.outputs) made.push_back(id.is_none() ? nullptr : &graph_[id]);
    follow_numbers(op, node, read, made);
  }

  static std::vector<ops::InferOutput> run_rule(const ops::Op& op, const Node& node,
                                                std::vector<ops::InferInput> inputs) {
    try {
      return ops::infer(op, node, std::move(inputs));
    } catch (const Error& error) {
      // The arithmetic of dimensions knows no node, but the user needs one to find the error. A
      // size that a rule finds too large is an error of the model, even if lower-level code
      // detected it.
      const bool is_models_fault =
          error.kind() == ErrorKind::InvalidModel || error.kind() == ErrorKind::InvalidArgument;
      if (!is_models_fault || error.where().starts_with(location_of(node))) throw;
      throw Error(ErrorKind::InvalidModel, location_of(node),
                  error.where() + ": " + error.message());
    }
  }

  // Sets the type of `value` from the rule of its node, merged with the model's declaration.
  void accept(const Node& node, Value& value, ops::InferOutput output) {
    using Outcome = MergedType::Outcome;
    TESSERA_CHECK(has_sound_elements(output.type, output.elements),
                  "a rule gives one element for each place");
    MergedType merged = merge_types(value.type, output.type, input_symbols_);
    if (merged.outcome == Outcome::ElementContradicts) {
      throw Error(ErrorKind::InvalidModel, output_location(node, value),
                  "the model declares " + text(value.type) + ", but " + text(output.type) +
                      " follows from the node's inputs");
    }
    if (merged.outcome == Outcome::ShapeContradicts) {
      report_shape(node, value, text(output.type));
    }
    check_size(merged.type, output_location(node, value));
    value.type = std::move(merged.type);
    value.elements.reset();
    value.numbers = {};
    // A shape that only the model declares may contradict the elements that the rule found.
    if (has_sound_elements(value.type, output.elements)) {
      value.elements = std::move(output.elements);
    }
  }

  void report_shape(const Node& node, const Value& value, const std::string& inferred) const {
    const std::string declares = "the model declares " + text(value.type) + ", but " + inferred +
                                 " follows from the node's inputs";
    if (options_.is_strict) {
      throw Error(ErrorKind::InvalidModel, output_location(node, value), declares);
    }
    log_.warn(output_location(node, value) + ": " + declares + "; the latter counts");
  }

  static bool has_sound_elements(const Type& type,
                                 const std::optional<std::vector<Dim>>& elements) {
    if (!elements || !type.is_known_tensor()) return true;
    return element_count(dims_from(*type.shape)) == static_cast<int64_t>(elements->size());
  }

  // Types of carried values are found after a few rounds, or their sizes are given up.
  static constexpr int kMaxRounds = 4;
  // Rounds multiply with the depth.
  static constexpr int kMaxRepeatedDepth = 3;

  Graph& graph_;
  const ops::Registry& registry_;
  const Log& log_;
  const Log silent_ = Log([](const std::string&) {});
  const InferOptions& options_;
  std::set<std::string> input_symbols_;
};

}  // namespace

MergedType merge_types(const Type& declared, const Type& inferred,
                       const std::set<std::string>& input_symbols) {
  using Outcome = MergedType::Outcome;
  if (inferred.kind == Type::Kind::Unknown) return {declared, Outcome::Agrees};
  if (declared.kind == Type::Kind::Unknown) return {inferred, Outcome::Agrees};
  // An optional that has its content is that content.
  if (declared.kind != inferred.kind && inferred.kind == Type::Kind::Optional) {
    return merge_types(declared, inferred.contents.front(), input_symbols);
  }
  if (declared.kind != inferred.kind && declared.kind == Type::Kind::Optional) {
    MergedType content = merge_types(declared.contents.front(), inferred, input_symbols);
    return {Type::optional(std::move(content.type)), content.outcome};
  }
  if (declared.kind != inferred.kind) return {inferred, Outcome::ElementContradicts};
  if (!inferred.is_tensor()) {
    MergedType merged = {inferred, Outcome::Agrees};
    if (declared.element != inferred.element) merged.outcome = Outcome::ElementContradicts;
    // Elements of lists may differ in their shapes, so that of a declaration says nothing.
    for (size_t index = 0; index < inferred.contents.size(); ++index) {
      Type content = declared.contents[index];
      if (content.is_tensor()) content.shape.reset();
      MergedType inner = merge_types(content, inferred.contents[index], input_symbols);
      merged.type.contents[index] = std::move(inner.type);
      if (inner.outcome != Outcome::Agrees) merged.outcome = inner.outcome;
    }
    return merged;
  }
  MergedType merged = {inferred, Outcome::Agrees};
  DataType& element = merged.type.element;
  if (element == DataType::Undefined) element = declared.element;
  if (declared.element != DataType::Undefined && declared.element != element) {
    merged.outcome = Outcome::ElementContradicts;
  } else if (!merge_shapes(declared.shape, merged.type.shape, input_symbols)) {
    merged.outcome = Outcome::ShapeContradicts;
  }
  return merged;
}

ops::InferInput infer_input(const Graph& graph, ValueId id) {
  if (id.is_none()) return {};
  const Value& value = graph[id];
  if (value.is_constant()) return ops::infer_input(value.constant);
  if (!value.numbers.is_empty()) return ops::infer_input(value.numbers);
  return {.is_present = true, .type = value.type, .elements = value.elements};
}

Graph infer_types(const Graph& graph, const ops::Registry& registry, const Log& log,
                  const InferOptions& options) {
  Graph inferred = graph;
  Inference(inferred, registry, log, options).run();
  return inferred;
}

}  // namespace tessera
