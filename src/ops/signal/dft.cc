// DFT, and the transforms of real signals of com.microsoft: Rfft and Irfft. fourier_transform.h
// has the algorithm.
#include <algorithm>
#include <string>

#include "ops/convert_element.h"
#include "ops/domains.h"
#include "ops/op.h"
#include "ops/signal/fourier_transform.h"
#include "ops/signal/scalar_inputs.h"

namespace tessera::ops {
namespace {

constexpr int kAxisInputVersion = 20;
constexpr int64_t kComplexParts = 2;

bool has_dft_flag(const Node& node, std::string_view attribute) {
  return node.attributes.get_int(attribute) != 0;
}

int64_t checked_axis(const InferContext& context, int64_t axis, int64_t rank) {
  const int64_t normalized = context.normalized_axis(axis, rank);
  if (normalized == rank - 1) {
    context.fail("expected an axis of the signal, found " + std::to_string(axis) +
                 ", the axis of real and imaginary parts");
  }
  return normalized;
}

// nullopt if it is known only at run time.
std::optional<int64_t> dft_axis(const InferContext& context, int64_t rank) {
  if (context.version() < kAxisInputVersion) {
    return checked_axis(context, context.node().attributes.get_int("axis"), rank);
  }
  if (!context.has_input(2)) return checked_axis(context, -2, rank);
  check_scalar_input(context, 2);
  const auto axis = integer_list(context, 2);
  if (!axis || axis->size() != 1) return std::nullopt;
  return checked_axis(context, axis->front(), rank);
}

// Checks the last dimension and returns that of the output.
int64_t dft_parts(const InferContext& context, const Dim& parts) {
  const bool is_onesided = has_dft_flag(context.node(), "onesided");
  const bool is_inverse = has_dft_flag(context.node(), "inverse");
  if (parts.is_known() && parts != Dim(1) && parts != Dim(kComplexParts)) {
    context.fail_input(
        0, "expected a last dimension of 1 (real) or 2 (complex), found " + parts.text());
  }
  if (is_onesided && parts == Dim(is_inverse ? 1 : kComplexParts)) {
    context.fail_input(0, is_inverse ? "expected a complex spectrum, because 'onesided' and "
                                       "'inverse' are 1, found a last dimension of 1"
                                     : "expected a real signal, because 'onesided' is 1, found a "
                                       "last dimension of 2");
  }
  return is_onesided && is_inverse ? 1 : kComplexParts;
}

// The length of the transform along an axis of `input` elements, from which the default follows.
Dim default_length(const InferContext& context, const Dim& input) {
  const bool is_real_result =
      has_dft_flag(context.node(), "onesided") && has_dft_flag(context.node(), "inverse");
  const Dim length = is_real_result ? multiply(subtract(input, 1), 2) : input;
  if (length.is_known() && length.value() < 1) {
    context.fail_input(0,
                       "expected an axis from which a transform of at least 1 element follows, "
                       "found a dimension of " +
                           input.text());
  }
  return length;
}

void infer_dft(InferContext& context) {
  const Shape* input = context.shape(0);
  const std::optional<Dim> given = scalar_dim(context, 1, 1);
  context.set_output(0, context.element(0));
  if (input == nullptr) return;
  const auto rank = static_cast<int64_t>(input->size());
  if (rank < 2) {
    context.fail_input(
        0,
        "expected a signal and an axis of real and imaginary parts, found shape " + text(*input));
  }
  Shape output = *input;
  output.back() = dft_parts(context, input->back());
  const std::optional<int64_t> axis = dft_axis(context, rank);
  if (!axis) {
    for (size_t index = 0; index + 1 < output.size(); ++index) {
      output[index] = unknown_dim(context, 0, index);
    }
    return context.set_output(0, context.element(0), output);
  }
  Dim& length = output[static_cast<size_t>(*axis)];
  if (context.has_input(1)) {
    length = given.value_or(unknown_dim(context, 0, static_cast<size_t>(*axis)));
  } else {
    length = default_length(context, length);
  }
  const bool is_half =
      has_dft_flag(context.node(), "onesided") && !has_dft_flag(context.node(), "inverse");
  if (is_half) length = onesided_length(length);
  context.set_output(0, context.element(0), output);
}

// Transforms of `outer` * `inner` signals, whose elements are `inner` apart.
struct DftLayout {
  int64_t length = 0;
  bool is_inverse = false;
  bool is_onesided = false;
  int64_t inner = 1;
  int64_t input_length = 0;
  int64_t input_parts = 1;
  int64_t output_length = 0;
  int64_t output_parts = 1;
};

// The elements that the transform reads, with zeros behind the end of the input.
template <class T>
void read_signal(const DftLayout& all, const T* source, std::span<Complex> signal) {
  const bool is_half = all.is_onesided && all.is_inverse;
  const int64_t wanted = is_half ? all.length / 2 + 1 : all.length;
  const int64_t count = std::min(wanted, all.input_length);
  const int64_t step = all.inner * all.input_parts;
  for (int64_t index = 0; index < count; ++index) {
    const T* element = source + index * step;
    signal[static_cast<size_t>(index)] = {
        to_double(element[0]), all.input_parts == kComplexParts ? to_double(element[1]) : 0.0};
  }
  std::ranges::fill(signal.subspan(static_cast<size_t>(count)), Complex{});
  if (!is_half) return;
  // The spectrum of a real signal: its second half is the conjugate of the first, so the elements
  // that are their own counterparts are real.
  const size_t length = signal.size();
  signal[0].imaginary = 0;
  if (length % 2 == 0) signal[length / 2].imaginary = 0;
  for (size_t index = 1; 2 * index < length; ++index) {
    signal[length - index] = {signal[index].real, -signal[index].imaginary};
  }
}

template <class T>
void write_signal(const DftLayout& all, std::span<const Complex> signal, T* target) {
  const int64_t step = all.inner * all.output_parts;
  for (int64_t index = 0; index < all.output_length; ++index) {
    T* element = target + index * step;
    element[0] = from_double<T>(signal[static_cast<size_t>(index)].real);
    if (all.output_parts == kComplexParts) {
      element[1] = from_double<T>(signal[static_cast<size_t>(index)].imaginary);
    }
  }
}

void run_transforms(const KernelCall& call, const DftLayout& all) {
  const TensorView& input = call.inputs[0];
  const MutableTensorView& output = call.outputs[0];
  if (output.elements == 0) return;
  const FourierPlan plan(all.length,
                         all.is_inverse ? FourierDirection::Inverse : FourierDirection::Forward,
                         call.scratch);
  const int64_t count = output.elements / (all.output_length * all.output_parts);
  visit_floating(input.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* source = input.as<T>().data();
    T* target = output.as<T>().data();
    for_each_transform(
        call, plan, count, [&](int64_t index, std::span<Complex> signal, std::span<Complex> work) {
          const int64_t outer = index / all.inner;
          const int64_t inner = index % all.inner;
          const int64_t from = (outer * all.input_length * all.inner + inner) * all.input_parts;
          const int64_t to = (outer * all.output_length * all.inner + inner) * all.output_parts;
          read_signal(all, source + from, signal);
          plan.transform(signal, work);
          write_signal(all, signal, target + to);
        });
  });
}

void run_dft(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  int64_t axis = call.node.version < kAxisInputVersion ? call.node.attributes.get_int("axis")
                                                       : scalar_of(call, 2, -2);
  if (axis < 0) axis += input.rank();
  const auto at = static_cast<size_t>(axis);
  DftLayout all = {.is_inverse = has_dft_flag(call.node, "inverse"),
                   .is_onesided = has_dft_flag(call.node, "onesided"),
                   .input_length = input.dims[at],
                   .input_parts = input.dims.back(),
                   .output_length = call.outputs[0].dims[at],
                   .output_parts = call.outputs[0].dims.back()};
  for (size_t index = at + 1; index + 1 < input.dims.size(); ++index) {
    all.inner *= input.dims[index];
  }
  const int64_t fallback = all.is_inverse ? all.output_length : all.input_length;
  all.length = scalar_of(call, 1, fallback);
  run_transforms(call, all);
}

// --- com.microsoft -------------------------------------------------------------------------------

// The attributes of both, for which ONNX Runtime accepts one value, too. It transforms up to three
// axes.
void check_real_transform(const InferContext& context) {
  const Attributes& attributes = context.node().attributes;
  if (attributes.get_int("onesided") != 1) context.fail("expected 'onesided' 1, found 0");
  if (attributes.get_int("normalized") != 0) context.fail("expected 'normalized' 0, found 1");
  if (attributes.get_int("signal_ndim") != 1) {
    context.fail_unsupported("expected 'signal_ndim' 1, found " +
                             std::to_string(attributes.get_int("signal_ndim")));
  }
}

void infer_rfft(InferContext& context) {
  check_real_transform(context);
  const Shape* input = context.shape(0);
  context.set_output(0, context.element(0));
  if (input == nullptr) return;
  if (input->empty() || input->back() == Dim(0)) {
    context.fail_input(0, "expected a signal along the last axis, found shape " + text(*input));
  }
  Shape output = *input;
  output.back() = onesided_length(output.back());
  output.emplace_back(kComplexParts);
  context.set_output(0, context.element(0), output);
}

void infer_irfft(InferContext& context) {
  check_real_transform(context);
  const Shape* input = context.shape(0);
  context.set_output(0, context.element(0));
  if (input == nullptr) return;
  const bool has_parts =
      input->size() > 1 && (!input->back().is_known() || input->back() == Dim(kComplexParts));
  const bool is_short = has_parts && (*input)[input->size() - 2].is_known() &&
                        (*input)[input->size() - 2].value() < 2;
  if (!has_parts || is_short) {
    context.fail_input(0,
                       "expected a spectrum of at least 2 bins and a last dimension of 2, "
                       "found shape " +
                           text(*input));
  }
  Shape output(input->begin(), input->end() - 1);
  output.back() = multiply(subtract(output.back(), 1), 2);
  context.set_output(0, context.element(0), output);
}

void run_rfft(const KernelCall& call) {
  const int64_t length = call.inputs[0].dims.back();
  run_transforms(call, {.length = length,
                        .is_onesided = true,
                        .input_length = length,
                        .output_length = length / 2 + 1,
                        .output_parts = kComplexParts});
}

void run_irfft(const KernelCall& call) {
  const int64_t length = call.outputs[0].dims.back();
  run_transforms(call, {.length = length,
                        .is_inverse = true,
                        .is_onesided = true,
                        .input_length = call.inputs[0].dims[call.inputs[0].dims.size() - 2],
                        .input_parts = kComplexParts,
                        .output_length = length});
}

Op real_transform_op(const char* name, bool is_ndim_required, InferRule infer,
                     ReferenceKernel kernel) {
  AttributeSchema signal_ndim = {"signal_ndim", AttributeKind::Int, int64_t{1}};
  if (is_ndim_required) {
    signal_ndim.default_value = std::nullopt;
    signal_ndim.is_required = true;
  }
  return {.name = name,
          .domain = kMicrosoftDomain,
          .versions = {1},
          .inputs = {{"X", "T"}},
          .outputs = {{"Y", "T"}},
          .type_variables = {{"T", kFloatTypes}},
          .attributes = {{"onesided", AttributeKind::Int, int64_t{1}},
                         {"normalized", AttributeKind::Int, int64_t{0}},
                         signal_ndim},
          .infer = std::move(infer),
          .flops = fourier_flops,
          .kernel = std::move(kernel)};
}

}  // namespace

std::vector<Op> dft_ops() {
  const int last_attribute = kAxisInputVersion - 1;
  return {
      {.name = "DFT",
       .versions = {17, 20},
       .inputs = {{"input", "T1"},
                  {"dft_length", "T2", Arity::Optional},
                  {"axis", "tensor(int64)", Arity::Optional, kAxisInputVersion}},
       .outputs = {{"output", "T1"}},
       .type_variables = {{"T1", kFloatTypes}, {"T2", kIndexTypes}, {"tensor(int64)", kInt64Type}},
       .attributes = {{"axis", AttributeKind::Int, int64_t{1}, 1, last_attribute},
                      {"inverse", AttributeKind::Int, int64_t{0}},
                      {"onesided", AttributeKind::Int, int64_t{0}}},
       .infer = infer_dft,
       .flops = fourier_flops,
       .kernel = run_dft},
      real_transform_op("Rfft", false, infer_rfft, run_rfft),
      real_transform_op("Irfft", true, infer_irfft, run_irfft)};
}

}  // namespace tessera::ops
