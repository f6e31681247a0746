#include "infer/specialise.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/errors/likely_name.h"
#include "base/errors/log.h"
#include "graph/dim_names.h"
#include "infer/infer.h"
#include "tessera/error.h"
#include "tessera/tensor.h"

namespace tessera {
namespace {

[[noreturn]] void fail(const std::string& input, const std::string& message) {
  throw Error(ErrorKind::InvalidArgument, "input '" + input + "'", message);
}

bool is_read(const std::vector<int>& uses, ValueId id) {
  return uses[static_cast<size_t>(id.index)] > 0;
}

// The numbers that shapes of inputs give to dimensions with names.
class NamedSizes {
 public:
  using Place = UnequalDims::Place;

  NamedSizes(const Graph& graph, const InputShapes& shapes) {
    const std::vector<int> uses = use_counts(graph);
    for (const ValueId id : graph.inputs) {
      const auto given = shapes.find(graph[id].name);
      const std::optional<Shape>& declared = graph[id].type.shape;
      if (given == shapes.end() || !is_read(uses, id) || !declared) continue;
      if (permits(*declared, given->second)) add(graph[id].name, *declared, given->second);
    }
  }

  // nullopt if no input gives it, or if inputs give several.
  std::optional<int64_t> size_of(const Dim& dim) const {
    const auto found = places_.find(name_of(dim));
    if (found == places_.end() || are_unequal(found->second)) return std::nullopt;
    return found->second.front().size;
  }

  std::vector<UnequalDims> unequal() const {
    std::vector<UnequalDims> all;
    for (const std::string& name : names_) {
      const std::vector<Place>& places = places_.at(name);
      if (are_unequal(places)) all.push_back({name, places});
    }
    return all;
  }

 private:
  void add(const std::string& input, const Shape& declared, const std::vector<int64_t>& dims) {
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      const std::string name = name_of(declared[axis]);
      if (name.empty()) continue;
      std::vector<Place>& places = places_[name];
      if (places.empty()) names_.push_back(name);
      places.push_back({input, axis, dims[axis]});
    }
  }

  static bool are_unequal(const std::vector<Place>& places) {
    return std::ranges::any_of(
        places, [&](const Place& place) { return place.size != places.front().size; });
  }

  std::vector<std::string> names_;  // in the order of their first dimension
  std::map<std::string, std::vector<Place>> places_;
};

class Specialisation {
 public:
  Specialisation(const Graph& graph, const InputShapes& shapes)
      : graph_(graph), shapes_(shapes), sizes_(graph, shapes) {}

  void check() {
    check_names();
    for (const ValueId id : graph_.inputs) {
      const auto given = shapes_.find(graph_[id].name);
      if (given != shapes_.end()) check_given(graph_[id], given->second);
    }
  }

  Graph run() {
    check();
    const std::vector<int> uses = use_counts(graph_);
    for (const ValueId id : graph_.inputs) {
      Value& value = graph_[id];
      const auto given = shapes_.find(value.name);
      if (value.type.kind == Type::Kind::Optional) continue;
      if (given != shapes_.end()) value.type.shape = shape_from(given->second);
      if (!is_read(uses, id)) continue;
      if (given == shapes_.end()) replace_named(value);
      check_known(value);
    }
    forget_made_types(graph_);
    return std::move(graph_);
  }

 private:
  void check_names() const {
    std::vector<std::string> names;
    std::string list;
    for (const ValueId id : graph_.inputs) {
      names.push_back(graph_[id].name);
      list += (list.empty() ? "'" : ", '") + graph_[id].name + "'";
    }
    for (const auto& [name, dims] : shapes_) {
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      fail(name, "the model has no such input; " +
                     (list.empty() ? "it has none" : "its inputs are " + list) +
                     did_you_mean(name, names));
    }
  }

  static void check_given(Value& value, const std::vector<int64_t>& dims) {
    // Programs that bind to the shapes of their arrays give that of its content, which decides
    // nothing.
    if (value.type.kind == Type::Kind::Optional) return;
    if (value.type.kind != Type::Kind::Tensor && value.type.kind != Type::Kind::Unknown) {
      fail(value.name,
           "expected no shape, as it is " + text(value.type) + ", found " + dims_text(dims));
    }
    if (value.type.kind == Type::Kind::Unknown) value.type = Type::tensor(DataType::Undefined);
    check_size(value, dims);
    if (value.type.shape && !permits(*value.type.shape, dims)) {
      fail(value.name, "the model declares " + text(value.type) + ", but the shape given is " +
                           dims_text(dims));
    }
  }

  static void check_size(const Value& value, const std::vector<int64_t>& dims) {
    try {
      tensor_bytes(value.type.element, dims);
    } catch (const Error& error) {
      fail(value.name, error.where() + ": " + error.message());
    }
  }

  void replace_named(Value& value) const {
    if (!value.type.shape) return;
    for (Dim& dim : *value.type.shape) {
      if (const std::optional<int64_t> size = sizes_.size_of(dim)) dim = *size;
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
      fail(value.name, "dimension " + std::to_string(axis) + " ('" + shown_text(shape[axis]) +
                           "') of " + text(value.type) +
                           " is unknown; give the input's shape, for example " + value.name + "=" +
                           text(example));
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
  const InputShapes& shapes_;
  NamedSizes sizes_;
};

}  // namespace

bool permits(const Shape& declared, const std::vector<int64_t>& dims) {
  return std::ranges::equal(declared, dims, [](const Dim& dim, int64_t size) {
    return !dim.is_known() || dim == Dim(size);
  });
}

Graph specialise(const Graph& graph, const InputShapes& shapes) {
  return Specialisation(graph, shapes).run();
}

bool needs_shapes(const Graph& graph, const InputShapes& shapes) {
  const auto is_open = [&](ValueId id) {
    const Type& type = graph[id].type;
    return type.is_tensor() && !type.is_known_tensor() && !shapes.contains(graph[id].name);
  };
  if (std::ranges::none_of(graph.inputs, is_open)) return false;
  const NamedSizes sizes(graph, shapes);
  const std::vector<int> uses = use_counts(graph);
  return std::ranges::any_of(graph.inputs, [&](ValueId id) {
    if (!is_open(id) || !is_read(uses, id)) return false;
    const std::optional<Shape>& shape = graph[id].type.shape;
    return !shape || std::ranges::any_of(*shape, [&](const Dim& dim) {
      return !dim.is_known() && !sizes.size_of(dim);
    });
  });
}

void check_given_shapes(const Graph& graph, const InputShapes& shapes) {
  Specialisation(graph, shapes).check();
}

std::vector<UnequalDims> find_unequal_dims(const Graph& graph, const InputShapes& shapes) {
  return NamedSizes(graph, shapes).unequal();
}

Graph with_equal_names(const Graph& graph, const ops::Registry& registry) {
  Graph equal = graph;
  bool is_changed = false;
  for (const ValueId id : equal.inputs) {
    if (!equal[id].type.shape) continue;
    for (Dim& dim : *equal[id].type.shape) {
      const std::string name = name_of(dim);
      if (name.empty() || dim.symbol() == name) continue;
      dim = Dim::symbol(name);
      is_changed = true;
    }
  }
  if (!is_changed) return equal;
  try {
    return infer_types(equal, registry, Log([](const std::string&) {}));
  } catch (const Error&) {
    return graph;
  }
}

}  // namespace tessera
