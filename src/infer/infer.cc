#include "infer/infer.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/errors/check.h"
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

class Inference {
 public:
  Inference(const Graph& graph, const ops::Registry& registry, const Log& log,
            const InferOptions& options)
      : graph_(graph), registry_(registry), log_(log), options_(options) {}

  Graph run() {
    for (const ValueId id : graph_.inputs) {
      check_size(graph_[id].type, "graph input '" + graph_[id].name + "'");
      note_symbols(graph_[id].type);
    }
    for (const Capture& capture : graph_.captures) note_symbols(graph_[capture.inner].type);
    for (Node& node : graph_.nodes) {
      infer_bodies(node);
      infer_node(node);
    }
    return std::move(graph_);
  }

 private:
  void note_symbols(const Type& type) {
    if (!type.shape) return;
    for (const Dim& dim : *type.shape) {
      if (!dim.is_known()) input_symbols_.insert(dim.symbol());
    }
  }

  void infer_bodies(Node& node) {
    for (Body& body : node.bodies) {
      for (const Capture& capture : body.graph.captures) {
        body.graph[capture.inner].type = graph_[capture.outer].type;
      }
      body.graph = infer_types(body.graph, registry_, log_, options_);
    }
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

  Graph graph_;
  const ops::Registry& registry_;
  const Log& log_;
  const InferOptions& options_;
  std::set<std::string> input_symbols_;
};

}  // namespace

MergedType merge_types(const Type& declared, const Type& inferred,
                       const std::set<std::string>& input_symbols) {
  using Outcome = MergedType::Outcome;
  if (inferred.kind == Type::Kind::Unknown) return {declared, Outcome::Agrees};
  if (declared.kind == Type::Kind::Unknown) return {inferred, Outcome::Agrees};
  if (declared.kind != inferred.kind) return {inferred, Outcome::ElementContradicts};
  if (!inferred.is_tensor()) {
    return {inferred, declared == inferred ? Outcome::Agrees : Outcome::ElementContradicts};
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
  return {.is_present = true, .type = value.type, .elements = value.elements};
}

Graph infer_types(const Graph& graph, const ops::Registry& registry, const Log& log,
                  const InferOptions& options) {
  return Inference(graph, registry, log, options).run();
}

}  // namespace tessera
