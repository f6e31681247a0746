#include "infer/specialise.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/likely_name.h"
#include "tessera/error.h"
#include "tessera/tensor.h"

namespace tessera {
namespace {

[[noreturn]] void fail(const std::string& input, const std::string& message) {
  throw Error(ErrorKind::InvalidArgument, "input '" + input + "'", message);
}

// The number of a symbol, and the input that determined it.
struct Binding {
  int64_t value = 0;
  std::string input;
};

class Specialisation {
 public:
  explicit Specialisation(const Graph& graph) : graph_(graph) {}

  Graph run(const std::map<std::string, std::vector<int64_t>>& shapes) {
    check_names(shapes);
    for (const ValueId id : graph_.inputs) {
      const auto given = shapes.find(graph_[id].name);
      if (given != shapes.end()) give(graph_[id], given->second);
    }
    const std::vector<int> uses = use_counts(graph_);
    for (const ValueId id : graph_.inputs) {
      replace_symbols(graph_[id]);
      if (uses[static_cast<size_t>(id.index)] > 0) check_known(graph_[id]);
    }
    forget_made_types(graph_);
    return std::move(graph_);
  }

 private:
  void check_names(const std::map<std::string, std::vector<int64_t>>& shapes) const {
    std::vector<std::string> names;
    std::string list;
    for (const ValueId id : graph_.inputs) {
      names.push_back(graph_[id].name);
      list += (list.empty() ? "'" : ", '") + graph_[id].name + "'";
    }
    for (const auto& [name, dims] : shapes) {
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      fail(name, "the model has no such input; " +
                     (list.empty() ? "it has none" : "its inputs are " + list) +
                     did_you_mean(name, names));
    }
  }

  void give(Value& value, const std::vector<int64_t>& dims) {
    if (value.type.kind != Type::Kind::Tensor && value.type.kind != Type::Kind::Unknown) {
      fail(value.name,
           "expected no shape, as it is " + text(value.type) + ", found " + dims_text(dims));
    }
    if (value.type.kind == Type::Kind::Unknown) value.type = Type::tensor(DataType::Undefined);
    check_size(value, dims);
    if (value.type.shape) hold_against(*value.type.shape, value, dims);
    value.type.shape = shape_from(dims);
  }

  static void check_size(const Value& value, const std::vector<int64_t>& dims) {
    try {
      tensor_bytes(value.type.element, dims);
    } catch (const Error& error) {
      fail(value.name, error.where() + ": " + error.message());
    }
  }

  void hold_against(const Shape& declared, const Value& value, const std::vector<int64_t>& dims) {
    bool fits = declared.size() == dims.size();
    for (size_t axis = 0; fits && axis < dims.size(); ++axis) {
      fits = !declared[axis].is_known() || declared[axis] == Dim(dims[axis]);
    }
    if (!fits) {
      fail(value.name, "the model declares " + text(value.type) + ", but the shape given is " +
                           dims_text(dims));
    }
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      if (!declared[axis].is_known()) bind(declared[axis].symbol(), dims[axis], value.name);
    }
  }

  void bind(const std::string& symbol, int64_t number, const std::string& input) {
    const auto [entry, is_new] = bindings_.try_emplace(symbol, Binding{number, input});
    const Binding& first = entry->second;
    if (is_new || first.value == number) return;
    fail(input, "dimension '" + symbol + "' is " + std::to_string(number) + " here, but " +
                    std::to_string(first.value) + " in input '" + first.input +
                    "'; the model says that they are equal");
  }

  void replace_symbols(Value& value) const {
    if (!value.type.shape) return;
    for (Dim& dim : *value.type.shape) {
      if (dim.is_known()) continue;
      const auto binding = bindings_.find(dim.symbol());
      if (binding != bindings_.end()) dim = binding->second.value;
    }
    // Numbers that came from another input's shape may make this one too large.
    if (is_known(*value.type.shape)) check_size(value, dims_from(*value.type.shape));
  }

  static void check_known(const Value& value) {
    if (!value.type.is_tensor()) return;
    if (!value.type.shape) {
      fail(value.name,
           "the model does not tell its number of dimensions; give its shape, for "
           "example " +
               value.name + "=1x3x224x224");
    }
    const Shape& shape = *value.type.shape;
    Shape example = shape;
    for (Dim& dim : example) {
      if (!dim.is_known()) dim = 1;
    }
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (shape[axis].is_known()) continue;
      fail(value.name,
           "dimension " + std::to_string(axis) + " ('" + shape[axis].symbol() + "') of " +
               text(value.type) +
               " is unknown; give the input's shape, on the command line with --shape " +
               value.name + "=" + text(example));
    }
  }

  static void forget_made_types(Graph& graph) {
    for (Node& node : graph.nodes) {
      for (const ValueId id : node.outputs) {
        if (id.is_none()) continue;
        graph[id].type.shape.reset();
        graph[id].elements.reset();
      }
      for (Body& body : node.bodies) forget_made_types(body.graph);
    }
  }

  Graph graph_;
  std::map<std::string, Binding> bindings_;
};

}  // namespace

Graph specialise(const Graph& graph, const std::map<std::string, std::vector<int64_t>>& shapes) {
  return Specialisation(graph).run(shapes);
}

}  // namespace tessera
