#!/usr/bin/env bash
# oneDNN 3.2: (a + b) + c is wrong if a has several images of one pixel each, and c, a post-operation's
# operand, has one element for each channel.
#
# The guess: a tensor of [n, channels, 1, 1] is the same in "nchw" and "nhwc", so a primitive works with
# both descriptors, or with neither.
#
# With "nchw" the compiled code ("jit:uni") reads c from wrong places as soon as there is a second image,
# for any number of channels. The call succeeds. With "nhwc", with one image, or with more pixels, it is
# right. The library takes the two descriptors for equal, as they differ only in strides of axes of
# length 1: which primitive a program gets for either of them depends on which it made first, because
# the library keeps primitives. So a test that tries "nhwc" before "nchw" sees no error in either.
#
#   expected: each error is 0
#   seen:     3.2.0 (onednn-devel-cpu-tbb 2023.2.0): the errors that the table ROWS states
#
# usage: findings/onednn_one_pixel.sh      Needs g++. Ends with 0 if the library still behaves as stated.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet onednn-devel-cpu-tbb==2023.2.0 \
  intel-cmplr-lib-rt==2023.2.0

cat >"$folder/try.cc" <<'CODE'
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "dnnl.hpp"

using namespace dnnl;
using Tag = memory::format_tag;

// Room behind its elements keeps the program's memory whole.
struct Tensor {
  memory::desc desc;
  std::vector<float> elements;
  memory data;
  Tensor(const engine& cpu, const memory::dims& dims, Tag tag)
      : desc(dims, memory::data_type::f32, tag), elements(desc.get_size() / sizeof(float) + 65536) {
    const size_t count = desc.get_size() / sizeof(float);
    for (size_t i = 0; i < count; ++i) elements[i] = static_cast<float>(i * 7919 % 97);
    data = memory(desc, cpu, elements.data());
  }
};

// The largest error of (a + b) + c for `images` images of side x side pixels.
float error_of(memory::dim images, memory::dim channels, memory::dim side, Tag tag) {
  const engine cpu(engine::kind::cpu, 0);
  stream work(cpu);
  const memory::dims full = {images, channels, side, side};
  Tensor a(cpu, full, tag), b(cpu, full, tag), y(cpu, full, tag);
  Tensor c(cpu, {1, channels, 1, 1}, tag);
  post_ops behind;
  behind.append_binary(algorithm::binary_add, c.desc);
  primitive_attr attributes;
  attributes.set_post_ops(behind);
  const binary::primitive_desc made(cpu, algorithm::binary_add, a.desc, b.desc, y.desc, attributes);
  binary(made).execute(work, {{DNNL_ARG_SRC_0, a.data}, {DNNL_ARG_SRC_1, b.data}, {DNNL_ARG_DST, y.data},
                              {DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, c.data}});
  work.wait();
  const memory::dim pixels = side * side;
  float worst = 0;
  for (memory::dim i = 0; i < images * channels * pixels; ++i) {
    const memory::dim channel = tag == Tag::nhwc ? i % channels : i / pixels % channels;
    worst = std::max(worst, std::fabs(y.elements[i] - (a.elements[i] + b.elements[i] + c.elements[channel])));
  }
  return worst;
}

int main() {
  std::printf("oneDNN %d.%d.%d\n", version()->major, version()->minor, version()->patch);
  struct Row {
    memory::dim images, channels, side;
    Tag tag;
    bool is_wrong;
  };
  const Row ROWS[] = {
      {4, 16, 1, Tag::nchw, true},   // made first: nchw
      {4, 16, 1, Tag::nhwc, true},   // the same primitive
      {4, 24, 1, Tag::nhwc, false},  // made first: nhwc
      {4, 24, 1, Tag::nchw, false},  // the same primitive
      {4, 23, 1, Tag::nchw, true},   {1, 17, 1, Tag::nchw, false},
      {4, 18, 2, Tag::nchw, false},  {4, 18, 2, Tag::nhwc, false},
  };
  bool as_stated = true;
  for (const Row& row : ROWS) {
    const float error = error_of(row.images, row.channels, row.side, row.tag);
    std::printf("%ld images, %ld channels, %ldx%ld pixels, %s: error %g\n", static_cast<long>(row.images),
                static_cast<long>(row.channels), static_cast<long>(row.side), static_cast<long>(row.side),
                row.tag == Tag::nchw ? "nchw" : "nhwc", error);
    as_stated = as_stated && (error > 0) == row.is_wrong;
  }
  return as_stated ? 0 : 1;
}
CODE
venv=$folder/venv
g++ -O1 -std=c++17 "-I$venv/include" "$folder/try.cc" "$venv/lib/libdnnl.so.3" \
  "-Wl,-rpath,$venv/lib" "-Wl,--allow-shlib-undefined" -o "$folder/try"
LD_LIBRARY_PATH=$venv/lib "$folder/try"
