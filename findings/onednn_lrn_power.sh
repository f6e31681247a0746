#!/usr/bin/env bash
# oneDNN: LRN of an ordinary beta, 0.75, gives 0 where bias + alpha * (sum of squares) / size is large,
# though the result is far from the smallest number of float32.
#
# The guess: the library computes x / base^0.75 in float32 with a few units of rounding, so the result is
# right as long as base and the result are numbers of float32: base^0.75 has a smaller exponent than base.
#
# For beta = 0.75, and no other, the library computes base^-0.75 through a power of base that is larger
# than base and overflows: the compiled code, which serves the layouts of channels last and blocks,
# through the third power, from a base of 7e12 on; the plain loops through the power 1.5, from 5e25 on.
# Then the result is 0, and the call succeeds. With beta = 0.74 there is no such limit.
#
#   expected: ratios of 1 in each row
#   seen:     3.2.0 (onednn-devel-cpu-tbb 2023.2.0) with AVX-512: 0 for beta = 0.75 from alpha = 1e27 on
#             in nchw, from 1e14 on in nhwc; 1 in all other rows
#
# usage: findings/onednn_lrn_power.sh      Needs g++. Ends with 0 if the library still behaves as stated.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet onednn-devel-cpu-tbb==2023.2.0 \
  intel-cmplr-lib-rt==2023.2.0

cat >"$folder/try.cc" <<'CODE'
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "dnnl.hpp"

using namespace dnnl;
using Tag = memory::format_tag;

// The library's result over the true one for elements of 1 and one channel: base = 1 + alpha.
double ratio_of(float alpha, float beta, Tag tag, const char** name) {
  const engine cpu(engine::kind::cpu, 0);
  stream work(cpu);
  const memory::desc desc({1, 16, 4, 4}, memory::data_type::f32, tag);
  std::vector<float> x(desc.get_size() / sizeof(float), 1), y(x.size());
  memory from(desc, cpu, x.data()), to(desc, cpu, y.data());
  const lrn_forward::primitive_desc made(cpu, prop_kind::forward_inference,
                                         algorithm::lrn_across_channels, desc, desc, 1, alpha, beta, 1);
  static std::string kept;
  kept = made.impl_info_str();
  *name = kept.c_str();
  lrn_forward(made).execute(work, {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, to}});
  work.wait();
  return y[0] / std::pow(1 + static_cast<double>(alpha), -static_cast<double>(beta));
}

int main() {
  std::printf("oneDNN %d.%d.%d\n", version()->major, version()->minor, version()->patch);
  std::printf("%8s %6s %8s %10s\n", "alpha", "beta", "layout", "ratio");
  bool as_stated = true;
  for (const float beta : {0.75F, 0.74F})
    for (const Tag tag : {Tag::nchw, Tag::nhwc})
      for (const float alpha : {1e10F, 1e12F, 1e14F, 1e20F, 1e25F, 1e27F, 1e30F}) {
        const char* name = "";
        const double ratio = ratio_of(alpha, beta, tag, &name);
        const bool is_compiled = std::string(name).find("jit") != std::string::npos;
        const bool is_lost = beta == 0.75F && alpha > (is_compiled ? 7e12 : 5e25);
        as_stated = as_stated && (is_lost ? ratio == 0 : std::fabs(ratio - 1) < 1e-4);
        std::printf("%8.0e %6.2f %8s %10.4f %s\n", alpha, beta, tag == Tag::nchw ? "nchw" : "nhwc", ratio, name);
      }
  return as_stated ? 0 : 1;
}
CODE
venv=$folder/venv
g++ -O1 -std=c++17 "-I$venv/include" "$folder/try.cc" "$venv/lib/libdnnl.so.3" \
  "-Wl,-rpath,$venv/lib" "-Wl,--allow-shlib-undefined" -o "$folder/try"
LD_LIBRARY_PATH=$venv/lib "$folder/try"
