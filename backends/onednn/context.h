// What every family of ops works with while it proposes candidates.
#pragma once

#include <memory>
#include <string_view>

#include "dnnl.hpp"
#include "implementation.h"
#include "tessera/backend.h"

namespace tessera::onednn {

class Chains;

// One call of propose().
class Context : public plugin::ProposeContext {
 public:
  Context(const plugin::Graph& graph, const plugin::ProposeOptions& options,
          plugin::Proposals& proposals, const dnnl::engine& engine)
      : ProposeContext(graph, options, proposals), engine_(engine) {}

  const dnnl::engine& engine() const { return engine_; }

  // Of the graph; found when the first family asks.
  const Chains& chains();

  // Attributes for a primitive: scratchpad from outside, arithmetic as exact as asked for.
  dnnl::primitive_attr attributes() const;

  // Whether what gives a finite number for NaN is of no use.
  bool keeps_nan() const { return options().nan == TESSERA_NAN_EXACT; }
  // Whether a primitive with a Sigmoid in it is of no use for that reason.
  bool loses_nan(const dnnl::primitive_desc_base& description, bool has_sigmoid) const {
    return keeps_nan() && has_sigmoid && has_portable_functions(description);
  }

  // The least time in which these threads could do so much; `implementation` is impl_info_str(),
  // whose reference and gemm forms are known to be far from what the machine can do.
  double optimistic_seconds(double flops, double bytes, std::string_view implementation) const;

 private:
  const dnnl::engine& engine_;
  std::shared_ptr<const Chains> chains_;
};

}  // namespace tessera::onednn
