// MelWeightMatrix: triangular filters, equally wide on the mel scale, that sum the bins of a
// spectrum to mel bands.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "ops/convert_element.h"
#include "ops/convert_elements.h"
#include "ops/onnx_types.h"
#include "ops/op.h"
#include "ops/signal/scalar_inputs.h"

namespace tessera::ops {
namespace {

void infer_mel_weight_matrix(InferContext& context) {
  const DataType type = element_type_of(context, "output_datatype", kNumericTypes);
  const std::optional<Dim> bands = scalar_dim(context, 0, 0);
  const std::optional<Dim> length = scalar_dim(context, 1, 1);
  scalar_dim(context, 2, 1);
  check_scalar_input(context, 3);
  check_scalar_input(context, 4);
  context.set_output(0, type,
                     Shape{length ? onesided_length(*length) : unknown_dim(context, 0, 0),
                           bands.value_or(unknown_dim(context, 0, 1))});
}

double floating_scalar(const TensorView& tensor) {
  double value = 0;
  convert_elements(tensor.type, tensor.data, DataType::Float64, &value, 1);
  return value;
}

double mel_of(double hertz) { return 2595 * std::log10(1 + hertz / 700); }
double hertz_of(double mel) { return 700 * (std::pow(10, mel / 2595) - 1); }

// The bands between two frequencies: bands + 2 points, equally far apart in mel, of which each
// three in a row are the corners of a triangle.
struct MelScale {
  double lower = 0;  // hertz
  double upper = 0;
  double bins_per_hertz = 0;
  int64_t bands = 0;

  int64_t bin_of(double hertz) const {
    return static_cast<int64_t>(std::floor(bins_per_hertz * hertz));
  }
  // The spectrum's bin of a point. ONNX's step is (upper - lower) / (bands + 2), so the last point
  // is below the upper frequency.
  int64_t bin(int64_t point) const {
    // Not by way of mel, because a rounded number might lie below its own bin.
    if (point == 0) return bin_of(lower);
    const double step = (mel_of(upper) - mel_of(lower)) / static_cast<double>(bands + 2);
    return bin_of(hertz_of(mel_of(lower) + static_cast<double>(point) * step));
  }
};

MelScale mel_scale(const KernelCall& call, int64_t bands, int64_t bins) {
  const auto length = static_cast<double>(integer_at(call.inputs[1], 0));
  const auto sample_rate = static_cast<double>(integer_at(call.inputs[2], 0));
  const MelScale scale = {.lower = floating_scalar(call.inputs[3]),
                          .upper = floating_scalar(call.inputs[4]),
                          .bins_per_hertz = (length + 1) / sample_rate,
                          .bands = bands};
  for (const double edge : {scale.lower, scale.upper}) {
    if (!(edge >= 0 && std::floor(scale.bins_per_hertz * edge) < static_cast<double>(bins))) {
      call.fail("expected edges within the " + std::to_string(bins) +
                " bins of the spectrum, found " + std::to_string(edge) + " hertz");
    }
  }
  return scale;
}

// One column of the matrix, whose elements are `stride` apart and 0 before.
template <class T>
void write_triangle(T* column, int64_t stride, int64_t left, int64_t center, int64_t right) {
  if (left == center) column[center * stride] = from_double<T>(1);
  for (int64_t bin = left; bin < center; ++bin) {
    column[bin * stride] =
        from_double<T>(static_cast<double>(bin - left) / static_cast<double>(center - left));
  }
  if (left < center) column[center * stride] = from_double<T>(1);
  for (int64_t bin = center; bin < right; ++bin) {
    column[bin * stride] =
        from_double<T>(static_cast<double>(right - bin) / static_cast<double>(right - center));
  }
}

void run_mel_weight_matrix(const KernelCall& call) {
  const MutableTensorView& output = call.outputs[0];
  if (output.elements == 0) return;
  const int64_t bands = output.dims[1];
  const MelScale scale = mel_scale(call, bands, output.dims[0]);
  std::memset(output.data, 0, static_cast<size_t>(output.elements * element_bytes(output.type)));
  visit_numeric(output.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* target = output.as<T>().data();
    for (int64_t band = 0; band < bands; ++band) {
      write_triangle(target + band, bands, scale.bin(band), scale.bin(band + 1),
                     scale.bin(band + 2));
    }
  });
}

}  // namespace

std::vector<Op> mel_weight_matrix_ops() {
  return {{.name = "MelWeightMatrix",
           .versions = {17},
           .inputs = {{"num_mel_bins", "T1"},
                      {"dft_length", "T1"},
                      {"sample_rate", "T1"},
                      {"lower_edge_hertz", "T2"},
                      {"upper_edge_hertz", "T2"}},
           .outputs = {{"output", "T3"}},
           .type_variables = {{"T1", kIndexTypes}, {"T2", kFloatTypes}, {"T3", kNumericTypes}},
           .attributes = {{"output_datatype", AttributeKind::Int, int64_t{1}}},
           .infer = infer_mel_weight_matrix,
           .kernel = run_mel_weight_matrix}};
}

}  // namespace tessera::ops
