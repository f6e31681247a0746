#include "graph/verify.h"

#include <string_view>
#include <unordered_set>

#include "tessera/error.h"

namespace tessera {
namespace {

// A reader of a value. Its text is only built if something is wrong.
struct Reader {
  const Node* node = nullptr;
  const char* what = nullptr;  // used if there is no node

  std::string text() const { return node == nullptr ? what : location_of(*node); }
};

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph), is_made_(graph.values.size(), false) {}

  std::string explain() {
    check_values();
    node_names_.reserve(graph_.nodes.size());
    for (const ValueId id : graph_.inputs) make(id, {.what = "a graph input"});
    for (const Capture& capture : graph_.captures) make(capture.inner, {.what = "a capture"});
    for (const Node& node : graph_.nodes) check_node(node);
    for (const ValueId id : graph_.outputs) read(id, {.what = "a graph output"});
    for (const ValueId id : graph_.kept) read(id, {.what = "a kept value"});
    return problem_;
  }

 private:
  void report(const std::string& problem) {
    if (problem_.empty()) problem_ = problem;
  }

  bool check_range(ValueId id, const Reader& reader) {
    const bool is_fine = id.index >= 0 && static_cast<size_t>(id.index) < graph_.values.size();
    if (!is_fine) report(reader.text() + " refers to value " + std::to_string(id.index));
    return is_fine;
  }

  void make(ValueId id, const Reader& maker) {
    if (!check_range(id, maker)) return;
    const auto index = static_cast<size_t>(id.index);
    if (is_made_[index]) report("value '" + graph_.values[index].name + "' is made twice");
    is_made_[index] = true;
  }

  void read(ValueId id, const Reader& reader) {
    if (!check_range(id, reader)) return;
    const auto index = static_cast<size_t>(id.index);
    if (!is_made_[index]) {
      report(reader.text() + " reads value '" + graph_.values[index].name + "' before it is made");
    }
  }

  void check_values() {
    std::unordered_set<std::string_view> names;
    names.reserve(graph_.values.size());
    for (size_t index = 0; index < graph_.values.size(); ++index) {
      const Value& value = graph_.values[index];
      if (value.name.empty()) report("value " + std::to_string(index) + " has no name");
      if (!names.insert(value.name).second) {
        report("two values are called '" + value.name + "'");
      }
      if (!value.is_constant()) continue;
      is_made_[index] = true;
      const bool has_its_type =
          value.type == Type::tensor(value.constant.type(), shape_from(value.constant.dims()));
      if (!has_its_type) report("constant '" + value.name + "' is not of its own type");
    }
  }

  void check_node(const Node& node) {
    const Reader where{.node = &node};
    if (node.is_removed) report(where.text() + " is marked as removed");
    if (!node_names_.insert(node.name).second) report("two nodes are called '" + node.name + "'");
    for (const ValueId id : node.inputs) {
      if (!id.is_none()) read(id, where);
    }
    for (const Body& body : node.bodies) {
      for (const Capture& capture : body.graph.captures) read(capture.outer, where);
      const std::string inside = explain_illegal(body.graph);
      if (!inside.empty()) report(where.text() + ", " + body.attribute + ": " + inside);
    }
    for (const ValueId id : node.outputs) {
      if (!id.is_none()) make(id, where);
    }
  }

  const Graph& graph_;
  std::vector<bool> is_made_;
  std::unordered_set<std::string_view> node_names_;
  std::string problem_;
};

}  // namespace

std::string explain_illegal(const Graph& graph) { return Verifier(graph).explain(); }

void verify(const Graph& graph, const std::string& stage) {
  const std::string problem = explain_illegal(graph);
  if (!problem.empty()) throw Error(ErrorKind::Internal, "graph after " + stage, problem);
}

}  // namespace tessera
