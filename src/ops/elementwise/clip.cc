// Clip. Up to version 10 its bounds are attributes, finite by default; from 11 on they are optional
// inputs. An omitted input bound leaves infinities unchanged, as in ONNX's reference evaluator and
// PyTorch, although the text of ONNX names the largest finite numbers as defaults
// (docs/decisions/0031). If the lower bound exceeds the upper one, the result is the upper one. NaN
// stays NaN, and a NaN bound gives NaN.
#include <limits>
#include <string>

#include "ops/shape_arithmetic.h"
#include "ops/visit_type.h"

namespace tessera::ops {
namespace {

constexpr int kBoundsInputVersion = 11;

void check_bound(const InferContext& context, size_t index) {
  if (!context.has_input(index)) return;
  const Shape* shape = context.shape(index);
  if (shape == nullptr) return;
  // The bound must be a scalar; a one-dimensional tensor of one element is common in models and
  // accepted.
  const bool is_single =
      shape->empty() || (shape->size() == 1 && (!(*shape)[0].is_known() || (*shape)[0] == Dim(1)));
  if (!is_single) context.fail_input(index, "expected a scalar, found shape " + text(*shape));
}

// The element of a bound; nullopt if it is unknown.
std::optional<Dim> bound_element(const InferContext& context, size_t index) {
  const auto elements = elements_of(context.input(index));
  if (!elements || elements->size() != 1) return std::nullopt;
  return elements->front();
}

void set_clipped_elements(InferContext& context) {
  std::optional<Dim> low;
  std::optional<Dim> high;
  if (context.has_input(1)) {
    low = bound_element(context, 1);
    if (!low) return;
  }
  if (context.has_input(2)) {
    high = bound_element(context, 2);
    if (!high) return;
  }
  const auto clipped = [&](const std::vector<Dim>& arguments) -> std::optional<Dim> {
    Dim result = arguments[0];
    const bool is_above = low && low->is_known() && low->value() <= 0 && is_non_negative(result);
    if (low && !is_above) result = larger_element(result, *low);
    if (high) result = smaller_element(result, *high);
    return result;
  };
  set_elementwise_elements(context, clipped, 1);
}

void infer_clip(InferContext& context) {
  check_bound(context, 1);
  check_bound(context, 2);
  context.set_output(0, context.element(0), context.input(0).type.shape);
  if (context.version() >= kBoundsInputVersion) set_clipped_elements(context);
}

template <class T>
compute_t<T> lowest_of() {
  using Limits = std::numeric_limits<compute_t<T>>;
  return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
}

template <class T>
compute_t<T> largest_of() {
  using Limits = std::numeric_limits<compute_t<T>>;
  return Limits::has_infinity ? Limits::infinity() : Limits::max();
}

template <class T>
compute_t<T> bound(const KernelCall& call, size_t index, const char* attribute,
                   compute_t<T> otherwise) {
  using Number = compute_t<T>;
  if constexpr (!std::is_integral_v<T>) {
    // Rounds the attribute to the element type first, as an input would be.
    if (call.node.version < kBoundsInputVersion) {
      return static_cast<Number>(T(static_cast<Number>(call.node.attributes.get_float(attribute))));
    }
  }
  if (!call.has_input(index)) return otherwise;
  if (call.inputs[index].elements != 1) {
    call.fail("expected bounds of one element, found " +
              std::to_string(call.inputs[index].elements));
  }
  return static_cast<Number>(call.inputs[index].as<T>()[0]);
}

void run_clip(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  visit_numeric(input.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Number = compute_t<T>;
    const Number low = bound<T>(call, 1, "min", lowest_of<T>());
    const Number high = bound<T>(call, 2, "max", largest_of<T>());
    const T* elements = input.as<T>().data();
    T* output = call.outputs[0].as<T>().data();
    call.pool.parallel_for(input.elements, kElementGrain, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) {
        Number x = static_cast<Number>(elements[index]);
        // Written so that a NaN bound propagates.
        if (x < low || low != low) x = low;
        if (x > high || high != high) x = high;
        output[index] = static_cast<T>(x);
      }
    });
  });
}

}  // namespace

std::vector<Op> clip_ops() {
  constexpr float kLargest = std::numeric_limits<float>::max();
  constexpr int kLastAttributeVersion = kBoundsInputVersion - 1;
  return {{.name = "Clip",
           .versions = {6, 11, 12, 13},
           .inputs = {{"input", "T"},
                      {"min", "T", Arity::Optional, kBoundsInputVersion},
                      {"max", "T", Arity::Optional, kBoundsInputVersion}},
           .outputs = {{"output", "T"}},
           .type_variables = {{"T", kNumericTypes}},
           .attributes = {{"max", AttributeKind::Float, kLargest, 1, kLastAttributeVersion},
                          {"min", AttributeKind::Float, -kLargest, 1, kLastAttributeVersion}},
           .traits = kElementwise | kNonExpansive,
           .infer = infer_clip,
           .kernel = run_clip}};
}

}  // namespace tessera::ops
