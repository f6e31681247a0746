// ArrayFeatureExtractor: elements along the last axis.
// https://onnx.ai/onnx/operators/onnx_aionnxml_ArrayFeatureExtractor.html
#include <string>

#include "ops/index_reader.h"
#include "ops/op.h"
#include "ops/shape_rules.h"
#include "ops/visit_type.h"

namespace tessera::ops {
namespace {

// A list gives a row: the standard says nothing, ONNX Runtime and onnx.reference do so.
void infer_extractor(InferContext& context) {
  const Shape* const indices = context.shape(1);
  const Dim count = indices == nullptr ? unknown_dim(context, 0, 1) : product(*indices);
  const Shape* const shape = context.shape(0);
  if (shape == nullptr) return context.set_output(0, context.element(0));
  if (shape->empty()) context.fail_input(0, "expected a tensor with an axis, found a scalar");
  Shape output = *shape;
  output.back() = count;
  if (output.size() == 1) output.insert(output.begin(), Dim(1));
  context.set_output(0, context.element(0), output);
}

void run_extractor(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  const TensorView& indices = call.inputs[1];
  const int64_t length = input.dims.back();
  std::pmr::vector<int64_t> picked(&call.scratch);
  picked.reserve(static_cast<size_t>(indices.elements));
  for (const int64_t index : indices.as<int64_t>()) {
    if (index < 0 || index >= length) {
      call.fail("expected an index in [0, " + std::to_string(length) + "), found " +
                std::to_string(index));
    }
    picked.push_back(index);
  }
  if (length == 0 || picked.empty()) return;
  const int64_t lines = input.elements / length;
  const auto count = std::ssize(picked);
  visit_size(input.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const source = static_cast<const T*>(input.data);
    T* const target = static_cast<T*>(call.outputs[0].data);
    call.pool.parallel_for(lines, std::max<int64_t>(1, kElementGrain / count),
                           [&](int64_t begin, int64_t end) {
                             for (int64_t line = begin; line < end; ++line) {
                               T* to = target + line * count;
                               for (const int64_t index : picked)
                                 *to++ = source[line * length + index];
                             }
                           });
  });
}

}  // namespace

std::vector<Op> array_feature_extractor_ops() {
  return {{.name = "ArrayFeatureExtractor",
           .domain = "ai.onnx.ml",
           .versions = {1},
           .inputs = {{"X", "T"}, {"Y", "tensor(int64)"}},
           .outputs = {{"Z", "T"}},
           .type_variables = {{"T",
                               {DataType::Float32, DataType::Float64, DataType::Int64,
                                DataType::Int32, DataType::String}},
                              {"tensor(int64)", kInt64Type}},
           .infer = infer_extractor,
           .flops = no_flops,
           .kernel = run_extractor}};
}

}  // namespace tessera::ops
