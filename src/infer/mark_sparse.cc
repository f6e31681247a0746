#include "infer/mark_sparse.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "infer/io_value.h"
#include "ops/convert_elements.h"
#include "tessera/error.h"

namespace tessera {
namespace {

constexpr size_t kData = 0;
constexpr size_t kIndices = 1;

// The single element of a small constant; nullopt for anything else.
std::optional<double> only_number(const Graph& graph, ValueId id) {
  if (id.is_none() || !graph[id].is_constant()) return std::nullopt;
  const Tensor& tensor = graph[id].constant;
  const bool is_number = is_floating(tensor.type()) || is_integer(tensor.type());
  if (!is_number || !tensor.has_elements() || tensor.elements() != 1) return std::nullopt;
  double number = 0;
  ops::convert_elements(tensor.type(), tensor.data(), DataType::Float64, &number, 1);
  return number;
}

const std::optional<SparseForm>& form_of(const Graph& graph, ValueId id) {
  static const std::optional<SparseForm> kNone;
  return id.is_none() ? kNone : graph[id].sparse;
}

// Mul by a number or Div by one: zeros stay zero if the number is finite.
std::optional<SparseForm> form_of_scaled(const Graph& graph, const Node& node) {
  const size_t operands = node.op == "Div" ? 1 : 2;
  for (size_t index = 0; index < operands; ++index) {
    const std::optional<SparseForm>& form = form_of(graph, node.inputs[index]);
    const std::optional<double> number = only_number(graph, node.inputs[1 - index]);
    const bool keeps_zero = number && std::isfinite(*number) &&
                            (node.op == "Mul" || *number != 0) &&
                            graph[node.inputs[index]].type == graph[node.outputs[0]].type;
    if (form && keeps_zero) return form;
  }
  return std::nullopt;
}

// Adding rows to a tensor with stored rows gives the union of both.
std::optional<SparseForm> form_of_scattered(const Graph& graph, const Node& node) {
  const std::optional<SparseForm>& form = form_of(graph, node.inputs[kData]);
  const Type& indices = graph[node.inputs[kIndices]].type;
  const std::string* reduction = node.attributes.find_string("reduction");
  const bool adds_rows = form && form->format == SparseFormat::RowSparse && reduction != nullptr &&
                         *reduction == "add" && indices.is_known_tensor() &&
                         indices.shape->back() == Dim(1);
  if (!adds_rows) return std::nullopt;
  const int64_t rows = graph[node.outputs[0]].type.shape->front().value();
  const int64_t added = element_count(dims_from(*indices.shape));
  return SparseForm{SparseFormat::RowSparse,
                    std::min(rows, form->capacity + std::min(rows, added))};
}

std::optional<SparseForm> form_of_result(const Graph& graph, const Node& node,
                                         const ops::Registry& registry) {
  const bool has_known_result = node.outputs.size() == 1 && !node.outputs[0].is_none() &&
                                graph[node.outputs[0]].type.is_known_tensor();
  if (!has_known_result) return std::nullopt;
  if (registry.has_trait(node, ops::kKeepsZero)) return form_of(graph, node.inputs[0]);
  if (!node.domain.empty()) return std::nullopt;
  if (node.op == "Mul" || node.op == "Div") return form_of_scaled(graph, node);
  if (node.op == "ScatterND") return form_of_scattered(graph, node);
  return std::nullopt;
}

void exchange(Graph& graph, const std::string& name, const SparseForm& form) {
  const std::string where = "layout of '" + name + "'";
  Value& value = io_value(graph, name, where);
  const int64_t capacity =
      value.type.is_known_tensor() ? max_stored(form.format, dims_from(*value.type.shape)) : -1;
  if (capacity < 0 || element_bytes(value.type.element) == 0) {
    throw Error(ErrorKind::InvalidArgument, where,
                std::string("expected ") +
                    (form.format == SparseFormat::Csr ? "a matrix of less than 2147483648 columns"
                                                      : "a tensor of rank 1 or more") +
                    ", whose size is known, for " + std::string(tessera::name(form.format)) +
                    ", found " + text(value.type));
  }
  if (form.capacity < 0 || form.capacity > capacity) {
    throw Error(ErrorKind::InvalidArgument, where,
                "expected a capacity of 0 to " + std::to_string(capacity) + " for " +
                    text(value.type) + ", found " + std::to_string(form.capacity));
  }
  value.sparse = form;
  value.is_io_sparse = true;
}

}  // namespace

void mark_sparse(Graph& graph, const std::map<std::string, SparseForm>& exchanged,
                 const ops::Registry& registry) {
  bool is_any_sparse = !exchanged.empty();
  for (const auto& [name, form] : exchanged) exchange(graph, name, form);
  for (Value& value : graph.values) {
    if (!value.is_constant() || !value.sparse_constant || value.sparse) continue;
    value.sparse = {value.sparse_constant->format(), value.sparse_constant->stored()};
    is_any_sparse = true;
  }
  if (!is_any_sparse) return;
  for (const Node& node : graph.nodes) {
    if (node.inputs.empty() || node.inputs[0].is_none()) continue;
    const std::optional<SparseForm> form = form_of_result(graph, node, registry);
    // A form that the caller asked for takes precedence.
    if (form && !graph[node.outputs[0]].sparse) graph[node.outputs[0]].sparse = form;
  }
}

}  // namespace tessera
