// TensorScatter: writes new positions into a cache of keys or values.
#include <algorithm>
#include <string>

#include "ops/check_shape.h"
#include "ops/index_reader.h"
#include "ops/op.h"
#include "ops/visit_type.h"

namespace tessera::ops {
namespace {

bool is_circular(const Node& node) { return node.attributes.get_string("mode") == "circular"; }

void infer_tensor_scatter(InferContext& context) {
  const std::string& mode = context.node().attributes.get_string("mode");
  if (mode != "linear" && mode != "circular") {
    context.fail("attribute 'mode': expected 'linear' or 'circular', found '" + mode + "'");
  }
  context.set_output(0, context.element(0), context.input(0).type.shape);
  const Shape* cache = context.shape(0);
  if (cache == nullptr) return;
  const auto rank = static_cast<int64_t>(cache->size());
  const int64_t axis = context.normalized_axis(context.node().attributes.get_int("axis"), rank);
  if (axis == 0) {
    context.fail("attribute 'axis': expected another one than that of the batch, found 0");
  }
  if (context.has_input(2)) check_shape(context, 2, {(*cache)[0]});
  const Shape* update = context.shape(1);
  if (update == nullptr) return;
  Shape expected = *cache;
  if (update->size() == cache->size()) {
    const Dim& length = (*cache)[static_cast<size_t>(axis)];
    const Dim& added = (*update)[static_cast<size_t>(axis)];
    if (length.is_known() && added.is_known() && added.value() > length.value()) {
      context.fail_input(1, "expected at most " + length.text() + " positions along axis " +
                                std::to_string(axis) + " as the cache has, found " + text(*update));
    }
    expected[static_cast<size_t>(axis)] = added;
  }
  check_shape(context, 1, expected);
}

// The first position to write in a batch.
int64_t first_position(const KernelCall& call, int64_t batch, int64_t added, int64_t length) {
  const int64_t index = call.has_input(2) ? integer_at(call.inputs[2], batch) : 0;
  if (is_circular(call.node)) return length == 0 ? 0 : (index % length + length) % length;
  if (index < 0 || index > length - added) {
    call.fail("input 'write_indices': expected numbers in [0, " + std::to_string(length - added) +
              "], so that " + std::to_string(added) + " positions fit into " +
              std::to_string(length) + ", found " + std::to_string(index));
  }
  return index;
}

void run_tensor_scatter(const KernelCall& call) {
  const TensorView& cache = call.inputs[0];
  const TensorView& update = call.inputs[1];
  if (cache.elements == 0) return;
  int64_t axis = call.node.attributes.get_int("axis");
  if (axis < 0) axis += cache.rank();
  const auto at = static_cast<size_t>(axis);
  const int64_t length = cache.dims[at];
  const int64_t added = update.dims[at];
  const int64_t lines = element_count(cache.dims.first(at));
  const int64_t lines_per_batch = lines / cache.dims[0];
  const int64_t inner = cache.elements / lines / length;
  visit_size(cache.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* before = static_cast<const T*>(cache.data);
    const T* written = static_cast<const T*>(update.data);
    T* after = static_cast<T*>(call.outputs[0].data);
    const int64_t grain = kElementGrain / (length * inner) + 1;
    call.pool.parallel_for(lines, grain, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        T* target = after + line * length * inner;
        std::copy_n(before + line * length * inner, length * inner, target);
        const int64_t first = first_position(call, line / lines_per_batch, added, length);
        // Up to the end, then, if it is circular, from the start on.
        const int64_t whole = std::min(added, length - first);
        const T* source = written + line * added * inner;
        std::copy_n(source, whole * inner, target + first * inner);
        std::copy_n(source + whole * inner, (added - whole) * inner, target);
      }
    });
  });
}

}  // namespace

std::vector<Op> tensor_scatter_ops() {
  return {
      {.name = "TensorScatter",
       .versions = {24},
       .inputs = {{"past_cache", "T"}, {"update", "T"}, {"write_indices", "I", Arity::Optional}},
       .outputs = {{"present_cache", "T"}},
       .type_variables = {{"T", kAllTypesAndStrings | kFloat8Types | kInt4Types | kFloat4Type |
                                    kPowerType},
                          {"I", kInt64Type}},
       .attributes = {{"axis", AttributeKind::Int, int64_t{-2}},
                      {"mode", AttributeKind::String, std::string("linear")}},
       .infer = infer_tensor_scatter,
       .flops = no_flops,
       .kernel = run_tensor_scatter}};
}

}  // namespace tessera::ops
