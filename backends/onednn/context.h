// What every family of ops works with while it proposes candidates.
#pragma once

#include <string_view>

#include "dnnl.hpp"
#include "tessera/backend.h"

namespace tessera::onednn {

// One call of propose().
class Context : public plugin::ProposeContext {
 public:
  Context(const plugin::Graph& graph, const plugin::ProposeOptions& options,
          plugin::Proposals& proposals, const dnnl::engine& engine)
      : ProposeContext(graph, options, proposals), engine_(engine) {}

  const dnnl::engine& engine() const { return engine_; }

  // Attributes for a primitive: scratchpad from outside, arithmetic as exact as asked for.
  dnnl::primitive_attr attributes() const;

  // The least time in which these threads could do so much; `implementation` is impl_info_str(),
  // whose reference and gemm forms are known to be far from what the machine can do.
  double optimistic_seconds(double flops, double bytes, std::string_view implementation) const;

 private:
  const dnnl::engine& engine_;
};

}  // namespace tessera::onednn
