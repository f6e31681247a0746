// Range: start + index * delta, up to but not including limit. That of com.microsoft may leave out
// delta, which is 1 then.
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include "ops/convert_elements.h"
#include "ops/domains.h"
#include "ops/evaluate.h"
#include "ops/shape_arithmetic.h"
#include "ops/shape_rules.h"
#include "ops/visit_type.h"

namespace tessera::ops {
namespace {

constexpr size_t kDelta = 2;

// Input `index` as T; nullopt if it is not constant.
template <class T>
std::optional<T> scalar(const InferContext& context, size_t index) {
  if (index == kDelta && !context.has_input(index)) return T{1};
  const Tensor* constant = context.constant(index);
  if (constant == nullptr) return std::nullopt;
  T value = 0;
  constexpr DataType kType = std::is_same_v<T, double> ? DataType::Float64 : DataType::Int64;
  convert_elements(constant->type(), constant->data(), kType, &value, 1);
  return value;
}

[[noreturn]] void fail_zero(const InferContext& context) {
  context.fail_input(2, "expected a step other than 0, found 0");
}

// ONNX's formula: max(ceil((limit - start) / delta), 0).
std::optional<Dim> floating_count(const InferContext& context) {
  const auto start = scalar<double>(context, 0);
  const auto limit = scalar<double>(context, 1);
  const auto delta = scalar<double>(context, 2);
  if (!start || !limit || !delta) return std::nullopt;
  if (*delta == 0) fail_zero(context);
  const double count = std::ceil((*limit - *start) / *delta);
  if (!(count < 0x1p62)) {
    context.fail("expected a finite number of elements, found " + std::to_string(count));
  }
  return Dim(count > 0 ? static_cast<int64_t>(count) : 0);
}

Dim integer_count(const InferContext& context, int64_t start, int64_t limit, int64_t delta) {
  if (delta == 0) fail_zero(context);
  // Unsigned, because the difference of two numbers may exceed their own type.
  const uint64_t first = static_cast<uint64_t>(start);
  const uint64_t last = static_cast<uint64_t>(limit);
  const uint64_t step =
      delta < 0 ? uint64_t{0} - static_cast<uint64_t>(delta) : static_cast<uint64_t>(delta);
  if (delta > 0 ? limit <= start : limit >= start) return 0;
  const uint64_t distance = delta > 0 ? last - first : first - last;
  const uint64_t count = (distance - 1) / step + 1;
  if (count > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    context.fail("expected a number of elements within 64 bits, found " + std::to_string(count));
  }
  return static_cast<int64_t>(count);
}

// An integer input whose element is tracked or constant.
std::optional<Dim> integer(const InferContext& context, size_t index) {
  if (index == kDelta && !context.has_input(index)) return Dim(1);
  const auto& elements = context.elements(index);
  if (elements && elements->size() == 1) return elements->front();
  const auto value = scalar<int64_t>(context, index);
  return value ? std::optional<Dim>(*value) : std::nullopt;
}

std::optional<Dim> symbolic_count(const InferContext& context) {
  const auto start = integer(context, 0);
  auto limit = integer(context, 1);
  const auto delta = integer(context, 2);
  if (!start || !limit || !delta) return std::nullopt;
  if (start->is_known() && limit->is_known() && delta->is_known()) {
    return integer_count(context, start->value(), limit->value(), delta->value());
  }
  if (*delta == Dim(0)) fail_zero(context);
  if (*start == Dim(0) && *delta == Dim(1) && is_non_negative(*limit)) return limit;
  return expression("range", {*start, *limit, *delta});
}

void set_range_elements(InferContext& context, const Dim& count) {
  if (!propagates_elements(context.element(0)) || !count.is_known()) return;
  const auto start = integer(context, 0);
  const auto delta = integer(context, 2);
  if (!start || !delta || count.value() > kMaxShapeElements) return;
  std::vector<Dim> elements;
  for (int64_t index = 0; index < count.value(); ++index) {
    const std::optional<Dim> offset = multiply_elements(index, *delta);
    const std::optional<Dim> element = offset ? add_elements(*start, *offset) : std::nullopt;
    if (!element) return;
    elements.push_back(*element);
  }
  context.set_elements(0, std::move(elements));
}

void infer_range(InferContext& context) {
  DataType element = DataType::Undefined;
  for (size_t index = 0; index < 3; ++index) {
    if (!context.has_input(index)) continue;
    if (element == DataType::Undefined) element = context.element(index);
    const Shape* shape = context.shape(index);
    if (shape == nullptr) continue;
    for (const Dim& dim : *shape) {
      if (dim.is_known() && dim != Dim(1)) {
        context.fail_input(index, "expected a scalar, found shape " + text(*shape));
      }
    }
  }
  const std::optional<Dim> count =
      is_floating(element) ? floating_count(context) : symbolic_count(context);
  context.set_output(0, element, Shape{count.value_or(unknown_dim(context, 0, 0))});
  if (count) set_range_elements(context, *count);
}

void run_range(const KernelCall& call) {
  const MutableTensorView& output = call.outputs[0];
  visit_numeric(output.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    // Floats are computed in double, so that errors do not accumulate; integers wrap around.
    using Number = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
    const auto number = [&](size_t index) {
      return static_cast<Number>(static_cast<compute_t<T>>(call.inputs[index].as<T>()[0]));
    };
    const Number start = number(0);
    const Number delta = call.has_input(kDelta) ? number(kDelta) : Number{1};
    T* elements = output.as<T>().data();
    call.pool.parallel_for(output.elements, kElementGrain, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) {
        const Number element = start + static_cast<Number>(index) * delta;
        elements[index] = static_cast<T>(element);
      }
    });
  });
}

}  // namespace

std::vector<Op> range_ops() {
  constexpr TypeSet kTypes =
      kFloatTypes | TypeSet{DataType::Int16, DataType::Int32, DataType::Int64};
  Op range = {.name = "Range",
              .versions = {11, 27},
              .inputs = {{"start", "T"}, {"limit", "T"}, {"delta", "T"}},
              .outputs = {{"output", "T"}},
              .type_variables = {{"T", kTypes}},
              // ONNX computes 16-bit floats in float32 by default; here it is always double.
              .attributes = {{"stash_type", AttributeKind::Int, int64_t{1}, 27}},
              .infer = infer_range,
              .kernel = run_range};
  Op older = range;
  older.domain = kMicrosoftDomain;
  older.versions = {1};
  older.inputs.back().arity = Arity::Optional;
  older.outputs.front().name = "Y";
  older.attributes.clear();
  return {range, older};
}

}  // namespace tessera::ops
