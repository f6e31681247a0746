#include "ops/attention/heads.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "ops/check_shape.h"
#include "ops/convert_elements.h"

namespace tessera::ops {
namespace {

// As bytes, to which a plain offset can be added.
const char* head_element(DataType type, const void* data, int64_t element) {
  return static_cast<const char*>(data) + element * element_bytes(type);
}

char* head_element(DataType type, void* data, int64_t element) {
  return static_cast<char*>(data) + element * element_bytes(type);
}

// Strides of tensors without elements may exceed 64 bits; they are not used.
int64_t wrapping_product(int64_t left, int64_t right) {
  return static_cast<int64_t>(static_cast<uint64_t>(left) * static_cast<uint64_t>(right));
}

std::array<int64_t, 3> strides_of_heads_first(std::span<const int64_t> dims) {
  const int64_t head = wrapping_product(dims[2], dims[3]);
  return {wrapping_product(dims[1], head), head, dims[3]};
}

// What a dimension of one of several inputs should be, as others say.
std::string expected_text(const Dim& expected, size_t axis, const Shape& found) {
  return "expected " + expected.text() + " along axis " + std::to_string(axis) +
         " as the other inputs and the attributes say, found " + text(found);
}

}  // namespace

// --- Kernels -------------------------------------------------------------------------------------

void HeadView::read(int64_t b, int64_t h, int64_t s, int64_t begin, int64_t count,
                    double* target) const {
  const char* source = head_element(type, data, offset(b, h, s) + begin);
  if (type == DataType::Float32) {
    // The most frequent type, without the dispatch of convert_elements().
    const auto* elements = reinterpret_cast<const float*>(source);
    std::copy_n(elements, count, target);
    return;
  }
  convert_elements(type, source, DataType::Float64, target, count);
}

void MutableHeadView::write(int64_t b, int64_t h, int64_t s, int64_t begin, int64_t count,
                            const double* source) const {
  const int64_t first = b * batch + h * head + s * position + begin;
  convert_elements(DataType::Float64, source, type, head_element(type, data, first), count);
}

HeadView heads_first(const TensorView& tensor) {
  const auto [batch, head, position] = strides_of_heads_first(tensor.dims);
  return {tensor.type, tensor.data, batch, head, position};
}

MutableHeadView heads_first(const MutableTensorView& tensor) {
  const auto [batch, head, position] = strides_of_heads_first(tensor.dims);
  return {tensor.type, tensor.data, batch, head, position};
}

HeadView heads_last(const TensorView& tensor, int64_t heads) {
  const auto dims = tensor.dims;
  return {tensor.type, tensor.data, wrapping_product(dims[1], dims[2]), dims[2] / heads, dims[2]};
}

MutableHeadView heads_last(const MutableTensorView& tensor, int64_t heads) {
  const auto dims = tensor.dims;
  return {tensor.type, tensor.data, wrapping_product(dims[1], dims[2]), dims[2] / heads, dims[2]};
}

HeadView advanced(HeadView view, int64_t elements) {
  view.data = head_element(view.type, view.data, elements);
  return view;
}

void copy_vector(const HeadView& source, const HeadPlace& from, const MutableHeadView& target,
                 const HeadPlace& to, int64_t size) {
  const int64_t place = to.b * target.batch + to.h * target.head + to.s * target.position;
  convert_elements(source.type,
                   head_element(source.type, source.data, source.offset(from.b, from.h, from.s)),
                   target.type, head_element(target.type, target.data, place), size);
}

void for_each_vector(const KernelCall& call, const HeadSizes& sizes,
                     FunctionRef<void(const HeadPlace& place)> visit) {
  if (sizes.batch == 0 || sizes.heads == 0 || sizes.positions == 0 || sizes.size == 0) return;
  const int64_t vectors = sizes.batch * sizes.heads * sizes.positions;
  const int64_t grain = kElementGrain / sizes.size + 1;
  call.pool.parallel_for(vectors, grain, [&](int64_t begin, int64_t end) {
    for (int64_t vector = begin; vector < end; ++vector) {
      visit({vector / sizes.positions / sizes.heads, vector / sizes.positions % sizes.heads,
             vector % sizes.positions});
    }
  });
}

void copy_heads(const KernelCall& call, const HeadView& source, const HeadSizes& sizes,
                const MutableHeadView& target, int64_t first) {
  for_each_vector(call, sizes, [&](const HeadPlace& place) {
    copy_vector(source, place, target, {place.b, place.h, first + place.s}, sizes.size);
  });
}

void store_sequence(const KernelCall& call, size_t output, const HeadSequence& sequence,
                    const HeadSizes& recent) {
  if (!call.has_output(output)) return;
  const MutableHeadView present = heads_first(call.outputs[output]);
  HeadSizes past = recent;
  past.positions = sequence.past_length;
  copy_heads(call, sequence.past, past, present);
  copy_heads(call, sequence.recent, recent, present, sequence.past_length);
}

bool has_output_elements(const KernelCall& call) {
  return std::ranges::any_of(call.outputs, [](const MutableTensorView& output) {
    return !output.is_empty() && output.elements > 0;
  });
}

// --- Type rules ----------------------------------------------------------------------------------

Dim merged(const Dim& left, const Dim& right) {
  return !left.is_known() && right.is_known() ? right : left;
}

const Shape* shape_of_rank(const InferContext& context, size_t index, size_t rank,
                           const std::string& meaning) {
  if (!context.has_input(index)) return nullptr;
  const Shape* shape = context.shape(index);
  if (shape != nullptr && shape->size() != rank) {
    context.fail_input(index, "expected " + std::to_string(rank) + " dimensions (" + meaning +
                                  "), found " + text(*shape));
  }
  return shape;
}

int64_t head_count(const InferContext& context, const char* attribute) {
  const int64_t* given = context.node().attributes.find_int(attribute);
  if (given == nullptr) return 0;
  if (*given < 1) {
    context.fail("attribute '" + std::string(attribute) + "': expected at least 1 head, found " +
                 std::to_string(*given));
  }
  return *given;
}

void check_groups(const InferContext& context, const Dim& queries, const Dim& keys) {
  if (!queries.is_known() || !keys.is_known()) return;
  const bool fits = keys.value() == 0 ? queries.value() == 0 : queries.value() % keys.value() == 0;
  if (fits) return;
  context.fail("expected a number of heads of queries that is a multiple of that of keys (" +
               keys.text() + "), found " + queries.text());
}

Dim head_size_of(const InferContext& context, size_t index, const Dim& hidden, int64_t heads) {
  if (hidden.is_known() && hidden.value() % heads != 0) {
    context.fail_input(index, "expected a last dimension that is a multiple of " +
                                  std::to_string(heads) + " heads, found " + hidden.text());
  }
  return floor_divide(hidden, heads);
}

void check_pair(const InferContext& context, size_t first, size_t second) {
  if (context.has_input(first) == context.has_input(second)) return;
  const size_t missing = context.has_input(first) ? second : first;
  const size_t given = context.has_input(first) ? first : second;
  context.fail_input(given, "expected both this and input " + std::to_string(missing) +
                                ", or neither, found one alone");
}

void check_dim(const InferContext& context, size_t index, size_t axis, const Dim& expected) {
  if (!context.has_input(index)) return;
  const Shape* shape = context.shape(index);
  if (shape == nullptr || axis >= shape->size()) return;
  if (can_be_equal({(*shape)[axis]}, {expected})) return;
  context.fail_input(index, expected_text(expected, axis, *shape));
}

void check_broadcast_to(const InferContext& context, size_t index, const Shape& full,
                        bool may_be_shorter) {
  const Shape* shape = context.has_input(index) ? context.shape(index) : nullptr;
  if (shape == nullptr) return;
  bool fits = shape->size() <= full.size();
  for (size_t axis = 0; fits && axis < shape->size(); ++axis) {
    const Dim& length = (*shape)[axis];
    const Dim& expected = full[full.size() - shape->size() + axis];
    if (!length.is_known() || !expected.is_known()) continue;
    const bool is_last = axis + 1 == shape->size();
    fits = length == Dim(1) || length == expected ||
           (is_last && may_be_shorter && length.value() < expected.value());
  }
  if (fits) return;
  context.fail_input(
      index, "expected a shape that broadcasts to " + text(full) + ", found " + text(*shape));
}

}  // namespace tessera::ops
