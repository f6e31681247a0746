// One convolution or deconvolution as oneDNN sees it. convolution.cc proposes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "context.h"
#include "dnnl.hpp"
#include "formats.h"
#include "tessera/backend.h"
#include "window.h"

namespace tessera::onednn {

// What is to be computed, whatever the formats.
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
  // Equal for problems that are equal to the library.
  std::string key() const;
};

// Of a Conv or ConvTranspose. Throws Failure with the reason where oneDNN has no such thing.
ConvolutionProblem convolution_problem(const plugin::Node& node);

// What the library would do: a primitive_desc of either kind.
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
  // The library's plain loops, which are there for correctness.
  bool is_reference() const;
  // At least how many times slower than the best that a processor can do.
  double slowness(const ConvolutionProblem& problem) const;

 private:
  dnnl::memory::desc query(dnnl::query what) const { return base().query_md(what, 0); }

  std::variant<dnnl::convolution_forward::primitive_desc,
               dnnl::deconvolution_forward::primitive_desc>
      description_;
};

// Asks the library. No format: it chooses. Not there where it has no such implementation.
ConvolutionDescription describe_convolution(const Context& context,
                                            const ConvolutionProblem& problem,
                                            std::optional<Format> input,
                                            std::optional<Format> output,
                                            const dnnl::post_ops& operations);

}  // namespace tessera::onednn
