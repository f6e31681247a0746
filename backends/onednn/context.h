// What every family of ops works with while it proposes candidates.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "dnnl.hpp"
#include "tessera/backend.h"

namespace tessera::onednn {

// One call of propose(). Collects what the families say of each node, so that a node that one of
// them refuses and another one takes is not refused.
class Context {
 public:
  Context(const plugin::Graph& graph, const plugin::ProposeOptions& options,
          plugin::Proposals& proposals, const dnnl::engine& engine);

  const plugin::Graph& graph() const { return graph_; }
  const plugin::ProposeOptions& options() const { return options_; }
  const dnnl::engine& engine() const { return engine_; }

  // Attributes for a primitive: scratchpad from outside, arithmetic as exact as asked for.
  dnnl::primitive_attr attributes() const;

  // The least time in which these threads could do so much; `implementation` is impl_info_str(),
  // whose reference and gemm forms are known to be far from what the machine can do.
  double optimistic_seconds(double flops, double bytes, std::string_view implementation) const;

  // Hands a candidate over. Its nodes count as taken.
  void add(plugin::Candidate candidate);

  // Why `node` alone cannot be computed. The first reason stands, unless a candidate is added.
  void refuse(int32_t node, const std::string& reason);

  // Calls `offer` for every node whose op is among `ops` (of ONNX's own domain). What it throws
  // becomes the node's refusal.
  void for_each(std::initializer_list<std::string_view> ops,
                const std::function<void(const plugin::Node& node)>& offer);

  // Tells the host of every node that nobody took. Last.
  void report_refusals();

 private:
  const plugin::Graph& graph_;
  const plugin::ProposeOptions& options_;
  plugin::Proposals& proposals_;
  const dnnl::engine& engine_;
  std::set<int32_t> taken_;
  std::map<int32_t, std::string> reasons_;
};

}  // namespace tessera::onednn
