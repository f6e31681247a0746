#include "sparse/sparse.h"

#include <algorithm>

namespace tessera::native {

namespace {

// Upper bounds for a core: a quarter of the multiply-adds of dense products, because every vector
// of the dense factor is loaded from an indexed address; and what a core reads from memory.
constexpr double kFlopsPerSecond = 2 * 16 * 2 * 4e9 / 4;
constexpr double kBytesPerSecond = 20e9;

}  // namespace

SparseShape sparse_shape(const plugin::Value& value) {
  SparseShape shape;
  const plugin::Type type = value.type();
  if (value.sparse_format() == TESSERA_DENSE || !type.is_known() || type.rank < 1) return shape;
  shape.format = value.sparse_format();
  shape.capacity = value.sparse_capacity();
  shape.rows = type.dims[0];
  shape.width = 1;
  for (size_t axis = 1; axis < type.dims.size(); ++axis) shape.width *= type.dims[axis];
  return shape;
}

const char* layout_of(const SparseShape& shape) {
  return shape.format == TESSERA_CSR ? TESSERA_LAYOUT_CSR : TESSERA_LAYOUT_ROW_SPARSE;
}

plugin::Candidate sparse_candidate(const plugin::Node& node, size_t input) {
  plugin::Candidate candidate = plugin::candidate_for(node);
  const int32_t value = node.input(input).id();
  candidate.algorithm = layout_of(sparse_shape(node.input(input)));
  for (plugin::InputPort& port : candidate.inputs) {
    if (port.value == value) port.layout = candidate.algorithm;
  }
  return candidate;
}

double sparse_seconds(const plugin::ProposeContext& context, double flops, double bytes) {
  const double threads = std::max(context.options().threads, 1);
  return std::max(flops / (kFlopsPerSecond * threads), bytes / kBytesPerSecond);
}

void check_capacity(int64_t stored, int64_t capacity) {
  if (stored <= capacity) return;
  throw plugin::Failure(TESSERA_INVALID_ARGUMENT,
                        "expected at most " + std::to_string(capacity) +
                            " to store in its sparse output (the capacity), found " +
                            std::to_string(stored) + "; bind with a layout that has more room");
}

}  // namespace tessera::native
