#include "export/onnx/export.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <variant>
#include <vector>

#include "graph/dim_names.h"
#include "ops/control_flow/bodies.h"

namespace tessera::onnx_export {
namespace {

template <class Other>
bool are_equal(const Other& left, const Other& right) {
  return left == right;
}

bool are_equal(const Tensor& left, const Tensor& right) {
  if (left.type() != right.type() || left.dims() != right.dims()) return false;
  return left.bytes() == 0 ||
         std::memcmp(left.data(), right.data(), static_cast<size_t>(left.bytes())) == 0;
}

// NaN equals itself, and 0 differs from -0.
bool are_equal(float left, float right) {
  return std::bit_cast<uint32_t>(left) == std::bit_cast<uint32_t>(right);
}

template <class Element>
bool are_equal(const std::vector<Element>& left, const std::vector<Element>& right) {
  if (left.size() != right.size()) return false;
  for (size_t index = 0; index < left.size(); ++index) {
    if (!are_equal(left[index], right[index])) return false;
  }
  return true;
}

bool are_equal_attributes(const Attribute& left, const Attribute& right) {
  return std::visit(
      [&](const auto& value) {
        const auto* other = std::get_if<std::decay_t<decltype(value)>>(&right);
        return other != nullptr && are_equal(value, *other);
      },
      left);
}

// A file holds the names of dimensions, not their symbols: each is read as a symbol of its own.
bool are_equal(const Dim& written, const Dim& read) {
  if (written.is_known() || read.is_known()) return written == read;
  const std::string name = shown_text(written);
  return !is_dim_name(name) || name == name_of(read);
}

bool are_equal(const Type& written, const Type& read) {
  const auto is_equal = [](const auto& left, const auto& right) { return are_equal(left, right); };
  return written.kind == read.kind && written.element == read.element &&
         written.shape.has_value() == read.shape.has_value() &&
         (!written.shape || std::ranges::equal(*written.shape, *read.shape, is_equal)) &&
         std::ranges::equal(written.contents, read.contents, is_equal);
}

class Comparison {
 public:
  Comparison(const Graph& written, const Graph& read) : written_(written), read_(read) {}

  std::string explain() {
    compare("inputs", written_.inputs, read_.inputs);
    compare("outputs", written_.outputs, read_.outputs);
    if (written_.nodes.size() != read_.nodes.size()) {
      report(std::to_string(written_.nodes.size()) + " nodes became " +
             std::to_string(read_.nodes.size()));
    }
    for (size_t index = 0; problem_.empty() && index < written_.nodes.size(); ++index) {
      compare(written_.nodes[index], read_.nodes[index]);
    }
    return problem_;
  }

 private:
  void report(const std::string& problem) {
    if (problem_.empty()) problem_ = problem;
  }

  void compare(const std::string& what, const std::vector<ValueId>& written,
               const std::vector<ValueId>& read) {
    if (written.size() != read.size()) {
      report(what + ": " + std::to_string(written.size()) + " became " +
             std::to_string(read.size()));
      return;
    }
    for (size_t index = 0; index < written.size(); ++index) {
      compare(what + " [" + std::to_string(index) + "]", written[index], read[index]);
    }
  }

  void compare(const std::string& where, ValueId written, ValueId read) {
    if (written.is_none() || read.is_none()) {
      if (written != read) report(where + ": is left out on one side");
      return;
    }
    const Value& left = written_[written];
    const Value& right = read_[read];
    if (left.name != right.name)
      report(where + ": '" + left.name + "' became '" + right.name + "'");
    if (!are_equal(left.type, right.type)) {
      report(where + " '" + left.name + "': " + text(left.type) + " became " + text(right.type));
    }
    if (left.is_constant() != right.is_constant() ||
        !are_equal(elements_of(left), elements_of(right))) {
      report(where + " '" + left.name + "': the constant is another");
    }
  }

  void compare(const Node& written, const Node& read) {
    const std::string where = location_of(written);
    const bool is_same_op = written.name == read.name && written.op == read.op &&
                            written.domain == read.domain && written.version == read.version;
    if (!is_same_op) {
      report(where + " of version " + std::to_string(written.version) + " became " +
             location_of(read) + " of version " + std::to_string(read.version));
    }
    compare(where + ", inputs", written.inputs, read.inputs);
    compare(where + ", outputs", written.outputs, read.outputs);
    if (written.metadata != read.metadata) report(where + ": its notes are others");
    compare(where, written.attributes, read.attributes);
    if (written.bodies.size() != read.bodies.size()) return report(where + ": bodies are missing");
    for (size_t index = 0; index < written.bodies.size(); ++index) {
      const Body& left = written.bodies[index];
      const Body& right = read.bodies[index];
      if (left.attribute != right.attribute) report(where + ": its bodies are others");
      const std::string inside =
          explain_difference(with_declared_types(written, left), right.graph);
      if (!inside.empty()) report(where + ", " + left.attribute + ": " + inside);
    }
  }

  // As it is written.
  static Graph with_declared_types(const Node& node, const Body& body) {
    Graph graph = body.graph;
    for (size_t index = 0; index < graph.outputs.size(); ++index) {
      Type& type = graph[graph.outputs[index]].type;
      const std::string name = ops::declared_type_name(body.attribute, index);
      type = ops::with_declared_sizes(std::move(type), node.attributes.find_type(name));
    }
    return graph;
  }

  static auto count_of(const Attributes& attributes) {
    return std::ranges::count_if(attributes.all(), [](const auto& attribute) {
      return !ops::is_declared_type_name(attribute.first);
    });
  }

  void compare(const std::string& where, const Attributes& written, const Attributes& read) {
    if (count_of(written) != count_of(read)) report(where + ": its attributes are others");
    for (const auto& [name, value] : written.all()) {
      if (ops::is_declared_type_name(name)) continue;
      const auto found = read.all().find(name);
      if (found == read.all().end() || !are_equal_attributes(value, found->second)) {
        report(where + ": attribute '" + name + "' is another");
      }
    }
  }

  const Graph& written_;
  const Graph& read_;
  std::string problem_;
};

}  // namespace

std::string explain_difference(const Graph& written, const Graph& read) {
  return Comparison(written, read).explain();
}

}  // namespace tessera::onnx_export
