// STFT: the transforms of frames of a signal, each multiplied by a window.
#include <algorithm>
#include <string>

#include "ops/convert_element.h"
#include "ops/op.h"
#include "ops/signal/fourier_transform.h"
#include "ops/signal/scalar_inputs.h"

namespace tessera::ops {
namespace {

// The standard wants [batch, length, parts]. PyTorch exports real signals as [batch, length], which
// ONNX Runtime accepts too.
void check_stft_signal(const InferContext& context, const Shape& signal) {
  const bool is_real = signal.size() == 2 || (signal.size() == 3 && signal.back() == Dim(1));
  const bool is_complex =
      signal.size() == 3 && (!signal.back().is_known() || signal.back() == Dim(2));
  if (!is_real && !is_complex) {
    context.fail_input(0,
                       "expected batch, length and a dimension of 1 (real) or 2 (complex), "
                       "found shape " +
                           text(signal));
  }
  const bool is_onesided = context.node().attributes.get_int("onesided") != 0;
  if (is_onesided && signal.size() == 3 && signal.back() == Dim(2)) {
    context.fail_input(
        0, "expected a real signal, because 'onesided' is 1, found shape " + text(signal));
  }
}

// The length of a frame, as far as it is known.
std::optional<Dim> frame_dim(const InferContext& context) {
  const Shape* signal = context.shape(0);
  const std::optional<Dim> given = scalar_dim(context, 3, 1);
  std::optional<Dim> window;
  if (context.has_input(2)) {
    check_one_dimension(context, 2);
    if (context.shape(2) != nullptr) window = context.shape(2)->front();
  }
  if (given && window && given->is_known() && window->is_known() && *given != *window) {
    context.fail_input(
        2, "expected a window of " + given->text() + " elements, found " + window->text());
  }
  if (given && given->is_known()) return given;
  if (context.has_input(2)) return window;
  if (context.has_input(3)) return given;
  return signal == nullptr ? std::nullopt : std::optional<Dim>((*signal)[1]);
}

// floor((length - frame) / step) + 1.
Dim count_frames(const InferContext& context, const Dim& length, const Dim& frame,
                 const Dim& step) {
  if (frame.is_known() && frame.value() < 1) {
    context.fail("expected frames of at least 1 element, found " + frame.text());
  }
  if (frame.is_known() && length.is_known() && frame.value() > length.value()) {
    context.fail("expected a signal of at least one frame (" + frame.text() + " elements), found " +
                 length.text());
  }
  return add(floor_divide(subtract(length, frame), step), 1);
}

void infer_stft(InferContext& context) {
  const Shape* signal = context.shape(0);
  if (signal != nullptr) check_stft_signal(context, *signal);
  const std::optional<Dim> step = scalar_dim(context, 1, 1);
  const std::optional<Dim> frame = frame_dim(context);
  Shape output = {signal == nullptr ? unknown_dim(context, 0, 0) : (*signal)[0],
                  unknown_dim(context, 0, 1), unknown_dim(context, 0, 2), 2};
  if (signal != nullptr && step && frame) {
    output[1] = count_frames(context, (*signal)[1], *frame, *step);
  }
  if (frame) {
    const bool is_onesided = context.node().attributes.get_int("onesided") != 0;
    output[2] = is_onesided ? onesided_length(*frame) : *frame;
  }
  context.set_output(0, context.element(0), output);
}

void run_stft(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  const MutableTensorView& output = call.outputs[0];
  if (output.elements == 0) return;
  const int64_t length = input.dims[1];
  const int64_t parts = input.rank() == 3 ? input.dims[2] : 1;
  const int64_t frames = output.dims[1];
  const int64_t bins = output.dims[2];
  const int64_t step = scalar_of(call, 1, 1);
  const std::pmr::vector<double> window =
      to_doubles(call.has_input(2) ? call.inputs[2] : TensorView{}, call.scratch);
  const int64_t window_length = window.empty() ? length : static_cast<int64_t>(window.size());
  const int64_t frame_length = scalar_of(call, 3, window_length);
  const FourierPlan plan(frame_length, FourierDirection::Forward, call.scratch);
  visit_floating(input.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* source = input.as<T>().data();
    T* target = output.as<T>().data();
    for_each_transform(
        call, plan, output.dims[0] * frames,
        [&](int64_t index, std::span<Complex> signal, std::span<Complex> work) {
          const int64_t start = index / frames * length + index % frames * step;
          for (size_t at = 0; at < signal.size(); ++at) {
            const T* element = source + (start + static_cast<int64_t>(at)) * parts;
            const double weight = window.empty() ? 1.0 : window[at];
            signal[at] = {to_double(element[0]) * weight,
                          parts == 2 ? to_double(element[1]) * weight : 0.0};
          }
          plan.transform(signal, work);
          T* spectrum = target + index * bins * 2;
          for (int64_t bin = 0; bin < bins; ++bin) {
            spectrum[2 * bin] = from_double<T>(signal[static_cast<size_t>(bin)].real);
            spectrum[2 * bin + 1] = from_double<T>(signal[static_cast<size_t>(bin)].imaginary);
          }
        });
  });
}

}  // namespace

std::vector<Op> stft_ops() {
  return {{.name = "STFT",
           .versions = {17},
           .inputs = {{"signal", "T1"},
                      {"frame_step", "T2"},
                      {"window", "T1", Arity::Optional},
                      {"frame_length", "T2", Arity::Optional}},
           .outputs = {{"output", "T1"}},
           .type_variables = {{"T1", kFloatTypes}, {"T2", kIndexTypes}},
           .attributes = {{"onesided", AttributeKind::Int, int64_t{1}}},
           .infer = infer_stft,
           .flops = fourier_flops,
           .kernel = run_stft}};
}

}  // namespace tessera::ops
