// ConstantOfShape: a tensor of one repeated value; the input's elements are its dimensions.
#include <algorithm>

#include "ops/evaluate.h"
#include "ops/shape_arithmetic.h"
#include "ops/shape_rules.h"
#include "ops/visit_type.h"

namespace tessera::ops {
namespace {

// The value as a tensor of one element; float32 0 if the node does not give it.
Tensor value_of(const Node& node) {
  if (const Tensor* value = node.attributes.find_tensor("value")) return *value;
  const float zero = 0;
  return Tensor::from<float>(DataType::Float32, {}, {&zero, 1});
}

TypeVariable value_types() { return {"T2", kAllTypes, small_types_since(20)}; }

// The output's shape; nullopt if even its rank is unknown.
std::optional<Shape> inferred_shape(const InferContext& context) {
  const Shape* input = context.shape(0);
  if (input == nullptr) return std::nullopt;
  check_one_dimension(context, 0);
  const Dim& rank = input->front();
  if (!rank.is_known()) return std::nullopt;
  if (rank.value() > kMaxShapeElements) {
    context.fail_input(0, "expected at most " + std::to_string(kMaxShapeElements) +
                              " dimensions, found " + rank.text());
  }
  Shape shape;
  if (const auto& elements = context.elements(0)) {
    shape = *elements;
  } else {
    for (int64_t index = 0; index < rank.value(); ++index) {
      shape.push_back(unknown_dim(context, 0, static_cast<size_t>(index)));
    }
  }
  for (const Dim& dim : shape) {
    if (dim.is_known() && dim.value() < 0) {
      context.fail_input(0, "expected dimensions of at least 0, found " + text(shape));
    }
  }
  return shape;
}

void infer_constant_of_shape(InferContext& context) {
  const Tensor value = value_of(context.node());
  if (element_bytes(value.type()) == 0) {
    context.fail_unsupported("elements of " + std::string(name(value.type())) + " have no kernels");
  }
  const TypeSet types = value_types().types_in(context.version());
  if (!types.contains(value.type())) {
    context.fail("attribute 'value': expected elements of " + types.text() + ", found " +
                 std::string(name(value.type())));
  }
  if (value.elements() != 1) {
    context.fail("attribute 'value': expected one element, found shape " + dims_text(value.dims()));
  }
  const std::optional<Shape> shape = inferred_shape(context);
  context.set_output(0, value.type(), shape);
  const auto element = infer_input(value).elements;
  if (!shape || !element) return;
  size_t count = 1;
  for (const Dim& dim : *shape) {
    if (!dim.is_known() || dim.value() > kMaxShapeElements) return;
    count *= static_cast<size_t>(dim.value());
    if (count > kMaxShapeElements) return;
  }
  context.set_elements(0, std::vector<Dim>(count, element->front()));
}

void run_constant_of_shape(const KernelCall& call) {
  const Tensor* value = call.node.attributes.find_tensor("value");
  const MutableTensorView& output = call.outputs[0];
  visit_size(output.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    // Zero has the same bits in every type.
    const T element = value != nullptr ? value->as<T>()[0] : T{0};
    T* elements = output.as<T>().data();
    call.pool.parallel_for(output.elements, kElementGrain, [&](int64_t begin, int64_t end) {
      std::fill(elements + begin, elements + end, element);
    });
  });
}

}  // namespace

std::vector<Op> constant_of_shape_ops() {
  return {{.name = "ConstantOfShape",
           .versions = {9, 20, 21, 23, 24, 25},
           .inputs = {{"input", "T1"}},
           .outputs = {{"output", "T2"}},
           .type_variables = {{"T1", kInt64Type}, value_types()},
           .attributes = {{"value", AttributeKind::Tensor, std::nullopt}},
           .infer = infer_constant_of_shape,
           .flops = no_flops,
           .kernel = run_constant_of_shape}};
}

}  // namespace tessera::ops
