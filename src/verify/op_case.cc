#include "verify/op_case.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "base/errors/log.h"
#include "infer/infer.h"
#include "ops/schema.h"
#include "tessera/error.h"
#include "verify/random_tensor.h"

namespace tessera::verification {
namespace {

constexpr int kOpset = 21;  // has all tested ops, in versions before later changes

[[noreturn]] void fail(const std::string& text, const std::string& message) {
  throw Error(ErrorKind::InvalidArgument, "case '" + text + "'", message);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Splits at `separator` outside of brackets.
std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  int depth = 0;
  for (size_t index = 0; index <= text.size(); ++index) {
    const bool is_end = index == text.size();
    if (!is_end && (text[index] == '(' || text[index] == '{')) ++depth;
    if (!is_end && (text[index] == ')' || text[index] == '}')) --depth;
    if (!is_end && (text[index] != separator || depth > 0)) continue;
    const std::string_view part = trimmed(text.substr(begin, index - begin));
    if (!part.empty()) parts.emplace_back(part);
    begin = index + 1;
  }
  return parts;
}

template <class Number>
std::vector<Number> read_numbers(const std::string& text, char separator) {
  std::vector<Number> numbers;
  if (text.empty() || text.back() == separator) fail(text, "expected numbers");
  for (const std::string& part : split(text, separator)) {
    Number number = {};
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (error != std::errc() || end != part.data() + part.size()) fail(text, "expected numbers");
    numbers.push_back(number);
  }
  return numbers;
}

Attribute read_attribute(const ops::Op& op, const std::string& name, const std::string& text) {
  const auto schema =
      std::find_if(op.attributes.begin(), op.attributes.end(),
                   [&](const ops::AttributeSchema& each) { return each.name == name; });
  if (schema == op.attributes.end()) fail(text, op.name + " has no attribute '" + name + "'");
  switch (schema->kind) {
    case AttributeKind::Int:
      return read_numbers<int64_t>(text, ',').at(0);
    case AttributeKind::Float:
      return read_numbers<float>(text, ',').at(0);
    case AttributeKind::Ints:
      return read_numbers<int64_t>(text, ',');
    case AttributeKind::Floats:
      return read_numbers<float>(text, ',');
    case AttributeKind::String:
      return text;
    case AttributeKind::Strings:
      return split(text, ',');
    default:
      fail(text, "attributes of this kind cannot be written");
  }
}

class Reader {
 public:
  Reader(const std::string& text, const ops::Registry& registry, uint64_t seed)
      : registry_(registry), seed_(seed) {
    result_.text = text;
  }

  OpCase read() {
    for (const std::string& part : split(result_.text, ';')) read_node(part);
    const auto uses = use_counts(result_.graph);
    for (const Node& node : result_.graph.nodes) {
      for (const ValueId output : node.outputs) {
        if (uses[static_cast<size_t>(output.index)] == 0) result_.graph.outputs.push_back(output);
      }
    }
    const Log silent([](const std::string&) {});
    result_.graph = infer_types(result_.graph, registry_, silent);
    return std::move(result_);
  }

 private:
  void read_node(const std::string& text) {
    const size_t open = text.find('(');
    const size_t close = text.find(')');
    if (open == std::string::npos || close == std::string::npos) fail(text, "expected Op(inputs)");
    Node node;
    std::string name = text.substr(0, open);
    size_t outputs = 0;
    if (const size_t slash = name.find('/'); slash != std::string::npos) {
      outputs = static_cast<size_t>(read_numbers<int64_t>(name.substr(slash + 1), ',').at(0));
      name.resize(slash);
    }
    if (const size_t colons = name.find("::"); colons != std::string::npos) {
      node.domain = name.substr(0, colons);
      name = name.substr(colons + 2);
    }
    const ops::Op* op = registry_.find(node.domain, name);
    if (op == nullptr) fail(text, "there is no op '" + name + "'");
    node.op = name;
    node.name = "node" + std::to_string(result_.graph.nodes.size());
    node.version = ops::version_in(*op, node.domain.empty() ? kOpset : ops::kAnyVersion)
                       .value_or(op->versions.back());
    for (const std::string& input : split(text.substr(open + 1, close - open - 1), ',')) {
      node.inputs.push_back(read_input(input));
    }
    for (const std::string& attribute : split(text.substr(close + 1), ' ')) {
      const size_t equals = attribute.find('=');
      if (equals == std::string::npos) fail(text, "expected name=value");
      const std::string key = attribute.substr(0, equals);
      node.attributes.set(key, read_attribute(*op, key, attribute.substr(equals + 1)));
    }
    add_outputs(*op, outputs, node);
    ops::complete(*op, node);
    result_.op += (result_.op.empty() ? "" : "+") + name;
    result_.graph.nodes.push_back(std::move(node));
  }

  void add_outputs(const ops::Op& op, size_t wanted, Node& node) {
    if (wanted == 0) {
      for (const ops::Parameter& output : ops::parameters_of(op.outputs, node.version)) {
        wanted += output.arity == ops::Arity::Required ? 1 : 0;
      }
      wanted = std::max<size_t>(wanted, 1);
    }
    for (size_t index = 0; index < wanted; ++index) node.outputs.push_back(add("made"));
  }

  ValueId add(const std::string& stem, Type type = {}, Tensor constant = {}) {
    Value value;
    value.name = stem + std::to_string(result_.graph.values.size());
    value.type = std::move(type);
    value.constant = std::move(constant);
    return add_value(result_.graph, std::move(value));
  }

  ValueId read_input(const std::string& text) {
    if (text == "_") return {};
    if (text[0] == '@') {
      const auto& nodes = result_.graph.nodes;
      const size_t index = text.size() == 1
                               ? nodes.size() - 1
                               : static_cast<size_t>(read_numbers<int64_t>(text.substr(1), ',')[0]);
      if (index >= nodes.size()) fail(text, "there is no such node before");
      return nodes[index].outputs[0];
    }
    if (text[0] == '=') {
      return result_.graph.inputs.at(
          static_cast<size_t>(read_numbers<int64_t>(text.substr(1), ',').at(0)));
    }
    if (text.find('{') != std::string::npos) return read_literal(text);
    return read_drawn(text);
  }

  ValueId read_literal(const std::string& text) {
    const size_t open = text.find('{');
    const std::string inside = text.substr(open + 1, text.size() - open - 2);
    const bool is_scalar = text[0] == 's';
    Tensor tensor;
    if (inside.find('.') != std::string::npos) {
      const auto numbers = read_numbers<float>(inside, ',');
      tensor =
          Tensor::from<float>(DataType::Float32, {static_cast<int64_t>(numbers.size())}, numbers);
    } else {
      const auto numbers = read_numbers<int64_t>(inside, ',');
      tensor =
          Tensor::from<int64_t>(DataType::Int64, {static_cast<int64_t>(numbers.size())}, numbers);
    }
    if (is_scalar) tensor = tensor.reshaped({});
    const ValueId id = add_constant(tensor);
    result_.literals.push_back(id);
    return id;
  }

  ValueId add_constant(const Tensor& tensor) {
    return add("constant", Type::tensor(tensor.type(), shape_from(tensor.dims())), tensor);
  }

  ValueId read_drawn(const std::string& given) {
    const size_t begin = given.starts_with('#') ? 1 : 0;
    const bool is_constant = begin > 0;
    const bool is_positive = given.compare(begin, 1, "+") == 0;
    std::string text = given.substr(begin + (is_positive ? 1 : 0));
    DataType type = DataType::Float32;
    if (const size_t colon = text.find(':'); colon != std::string::npos) {
      const std::optional<DataType> named = data_type_from_name(text.substr(0, colon));
      if (!named) fail(text, "there is no such element type");
      type = *named;
      text.erase(0, colon + 1);
    }
    std::vector<int64_t> dims;
    if (text != "s") dims = read_numbers<int64_t>(text, 'x');
    const Tensor tensor =
        random_tensor(type, dims, is_positive, seed_ + 1000003 * (result_.graph.values.size() + 1));
    if (is_constant) return add_constant(tensor);
    const ValueId id = add("input", Type::tensor(type, shape_from(dims)));
    result_.graph.inputs.push_back(id);
    result_.inputs.push_back(tensor);
    return id;
  }

  const ops::Registry& registry_;
  uint64_t seed_;
  OpCase result_;
};

}  // namespace

OpCase read_op_case(const std::string& text, const ops::Registry& registry, uint64_t seed) {
  return Reader(text, registry, seed).read();
}

std::string ops_of(const std::string& text) {
  std::string ops;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find(';', begin), text.size());
    const size_t start = text.find_first_not_of(' ', begin);
    const size_t stop = std::min(text.find_first_of("(/", start), end);
    if (start < end) ops += (ops.empty() ? "" : "+") + text.substr(start, stop - start);
    begin = end + 1;
  }
  return ops;
}

}  // namespace tessera::verification
