#include "native_case.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "ops/convert_elements.h"
#include "ops/schema.h"

namespace tessera::bench {

CaseGraph& CaseGraph::input(const std::string& name, DataType type, std::vector<int64_t> dims,
                            double low, double high) {
  Tensor made(type, std::move(dims));
  // The same few numbers are repeated: no timed kernel depends on values.
  constexpr int64_t kNumbers = 4096;
  std::vector<double> numbers(kNumbers);
  uint64_t state = 1;
  for (double& number : numbers) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    number = low + (high - low) * static_cast<double>(state >> 11U) * 0x1p-53;
  }
  auto* bytes = static_cast<std::byte*>(made.mutable_data());
  for (int64_t index = 0; index < made.elements(); index += kNumbers) {
    ops::convert_elements(DataType::Float64, numbers.data(), type,
                          bytes + index * element_bytes(type),
                          std::min(kNumbers, made.elements() - index));
  }
  return input(name, std::move(made));
}

CaseGraph& CaseGraph::input(const std::string& name, Tensor tensor) {
  const ValueId id = value(name);
  graph_[id].type = Type::tensor(tensor.type(), shape_from(tensor.dims()));
  graph_.inputs.push_back(id);
  fed_[name] = std::move(tensor);
  return *this;
}

CaseGraph& CaseGraph::constant(const std::string& name, Tensor tensor) {
  const ValueId id = value(name);
  graph_[id].type = Type::tensor(tensor.type(), shape_from(tensor.dims()));
  graph_[id].constant = std::move(tensor);
  return *this;
}

CaseGraph& CaseGraph::node(const std::string& op, const std::vector<std::string>& inputs,
                           const std::vector<std::string>& outputs, Attributes attributes) {
  const ops::Op* found = registry_.find("", op);
  if (found == nullptr) throw std::invalid_argument("there is no op " + op);
  Node made;
  made.name = outputs.front();
  made.op = op;
  made.version = ops::version_in(*found, opset_).value_or(0);
  made.attributes = std::move(attributes);
  for (const std::string& each : inputs) made.inputs.push_back(value(each));
  for (const std::string& each : outputs) made.outputs.push_back(value(each));
  ops::complete(*found, made);
  graph_.nodes.push_back(std::move(made));
  return *this;
}

CaseGraph& CaseGraph::output(const std::string& name) {
  graph_.outputs.push_back(value(name));
  return *this;
}

ValueId CaseGraph::value(const std::string& name) {
  if (name.empty()) return {};
  const auto [entry, is_new] = ids_.try_emplace(name);
  if (is_new) {
    Value made;
    made.name = name;
    entry->second = add_value(graph_, std::move(made));
  }
  return entry->second;
}

std::vector<double> numbers_in(const std::string& text) {
  std::vector<double> numbers;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find(',', start), text.size());
    numbers.push_back(std::stod(text.substr(start, end - start)));
    start = end + 1;
  }
  return numbers;
}

std::vector<int64_t> dims_of(int64_t bytes, int64_t element_bytes,
                             const std::vector<int64_t>& inner) {
  int64_t rest = bytes / element_bytes;
  for (const int64_t dim : inner) rest = std::max<int64_t>(1, rest / dim);
  std::vector<int64_t> dims = {rest};
  dims.insert(dims.end(), inner.begin(), inner.end());
  return dims;
}

}  // namespace tessera::bench
