// A convolution or deconvolution as oneDNN defines it. convolution.cc proposes candidates.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/context.h"
#include "base/formats.h"
#include "base/window.h"
#include "dnnl.hpp"
#include "tessera/backend.h"

namespace tessera::onednn {

// The computation, independent of formats.
struct ConvolutionProblem {
  bool is_transposed = false;
  bool has_bias = false;
  int64_t groups = 1;
  dnnl::memory::dims input;
  dnnl::memory::dims output;
  dnnl::memory::dims weights;  // outputs, inputs, taps; before them the groups, where there are any
  dnnl::memory::desc stored_weights;  // as the model has them, with the sizes above
  bool has_constant_weights = true;
  Window window;

  double flops() const;
  // Equal for problems that the library treats as equal.
  std::string key() const;
};

// The problem of a Conv or ConvTranspose. Throws Failure with the reason if oneDNN does not support
// it.
ConvolutionProblem convolution_problem(const plugin::Node& node);

// A primitive_desc of a convolution or a deconvolution.
class ConvolutionDescription {
 public:
  ConvolutionDescription() = default;
  explicit ConvolutionDescription(dnnl::convolution_forward::primitive_desc forward)
      : description_(std::move(forward)) {}
  explicit ConvolutionDescription(dnnl::deconvolution_forward::primitive_desc transposed)
      : description_(std::move(transposed)) {}

  bool is_there() const { return base().get(true) != nullptr; }
  const dnnl::primitive_desc_base& base() const;
  dnnl::memory::desc input_desc() const { return query(dnnl::query::src_md); }
  dnnl::memory::desc output_desc() const { return query(dnnl::query::dst_md); }
  dnnl::memory::desc weights_desc() const { return query(dnnl::query::weights_md); }
  dnnl::memory::desc bias_desc() const { return base().query_md(dnnl::query::weights_md, 1); }
  // Whether it is the reference implementation of the library, which is correct but slow.
  bool is_reference() const;
  // A lower bound of the factor by which it is slower than the processor allows.
  double slowness(const ConvolutionProblem& problem) const;

 private:
  dnnl::memory::desc query(dnnl::query what) const { return base().query_md(what, 0); }

  std::variant<dnnl::convolution_forward::primitive_desc,
               dnnl::deconvolution_forward::primitive_desc>
      description_;
};

// Asks the library. Without a format, the library chooses it. Empty if the library has no such
// implementation.
ConvolutionDescription describe_convolution(const Context& context,
                                            const ConvolutionProblem& problem,
                                            std::optional<Format> input,
                                            std::optional<Format> output,
                                            const dnnl::post_ops& operations);

}  // namespace tessera::onednn
