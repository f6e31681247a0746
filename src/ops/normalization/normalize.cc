#include "ops/normalization/normalize.h"

namespace tessera::ops {

void normalize_rows(const KernelCall& call, int64_t rows, int64_t run_length,
                    FunctionRef<int64_t(int64_t row, int64_t run)> parameter) {
  const TensorView& input = call.inputs[0];
  const int64_t length = input.elements / rows;
  const std::pmr::vector<double> scale = to_doubles(call.inputs[1], call.scratch);
  const std::pmr::vector<double> shift = to_doubles(call.inputs[2], call.scratch);
  const double epsilon = call.node.attributes.get_float("epsilon");
  visit_floating(input.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* source = input.as<T>().data();
    T* target = call.outputs[0].as<T>().data();
    call.pool.parallel_for(rows, 4096 / length + 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* elements = source + row * length;
        T* result = target + row * length;
        const Moments moments = moments_of(std::span(elements, static_cast<size_t>(length)));
        const double inverse = moments.inverse_deviation(epsilon);
        for (int64_t first = 0; first < length; first += run_length) {
          const auto parameter_index = static_cast<size_t>(parameter(row, first / run_length));
          const double factor = scale[parameter_index] * inverse;
          for (int64_t index = first; index < first + run_length; ++index) {
            const double centred = to_double(elements[index]) - moments.mean;
            result[index] = from_double<T>(centred * factor + shift[parameter_index]);
          }
        }
      }
    });
  });
}

int64_t normalization_flops(const Node& node, std::span<const Type> inputs,
                            std::span<const Type> outputs) {
  return multiply(flops_per_output(node, inputs, outputs), 8).value();
}

}  // namespace tessera::ops
