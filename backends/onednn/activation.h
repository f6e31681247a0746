// Activations that oneDNN computes together with the op whose result they read, in every form in
// which exporters write them.
#pragma once

#include <cstdint>
#include <vector>

#include "dnnl.hpp"
#include "tessera/backend.h"

namespace tessera::onednn {

// dnnl's eltwise `algorithm` with its parameters, computed by `nodes`.
struct Activation {
  dnnl::algorithm algorithm = dnnl::algorithm::undef;
  float alpha = 0;
  float beta = 0;
  std::vector<int32_t> nodes;  // ascending
  int32_t output = -1;         // the value
};

// Whether only `nodes` know of `value`: nobody else reads it, and it is no output of the graph. A
// group may leave out such a value only.
bool is_inner(const plugin::Value& value, const std::vector<int32_t>& nodes);

// The activations that read `value` and can be fused with what makes it: `value` is inner to each
// of them, and so are their own intermediate values. Largest first, mostly none or one.
std::vector<Activation> activations_after(const plugin::Graph& graph, const plugin::Value& value);

// Adds `activation` to what the primitive does with its result.
void append_activation(dnnl::post_ops& operations, const Activation& activation);

}  // namespace tessera::onednn
