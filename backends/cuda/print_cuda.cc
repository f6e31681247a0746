#include "print_cuda.h"

namespace tessera::cuda {

plugin::CDialect cuda_dialect() {
  return {
      .prelude = "",
      .kernel = R"(extern "C" __global__ void __launch_bounds__(GROUP))",
      .function = "static __device__ ",
      .global = "",
      .local = "__shared__ ",
      .barrier = "__syncthreads()",
      .group_number = "(int)blockIdx.x",
      .item_number = "(int)threadIdx.x",
      .multiply_high = "__umulhi",
      .types = {"", "bool", "signed char", "short", "int", "long long", "unsigned char",
                "unsigned short", "unsigned int", "unsigned long long", "", "", "float", "double"},
      .float32 = {.from_bits = "__uint_as_float",
                  .to_bits = "__float_as_uint",
                  .divide = "__fdiv_rn",
                  .square_root = "__fsqrt_rn",
                  .fused_multiply_add = "__fmaf_rn",
                  .floor = "floorf",
                  .ceiling = "ceilf",
                  .truncate = "truncf",
                  .round = "rintf"},
      .float64 = {.from_bits = "__longlong_as_double",
                  .to_bits = "__double_as_longlong",
                  .divide = "__ddiv_rn",
                  .square_root = "__dsqrt_rn",
                  .fused_multiply_add = "__fma_rn",
                  .floor = "floor",
                  .ceiling = "ceil",
                  .truncate = "trunc",
                  .round = "rint"}};
}

std::string cuda_source(const plugin::FusedGroup& group, const plugin::CKernel& kernel) {
  return plugin::c_source(group, kernel, cuda_dialect());
}

std::vector<std::string> exact_options() {
  return {"--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true"};
}

}  // namespace tessera::cuda
