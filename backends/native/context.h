// What every family of ops works with while it proposes candidates.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/backend.h"

namespace tessera::native {

// One call of propose(). Collects what the families say of each node, so that a node that one of
// them refuses and another one takes is not refused.
class Context {
 public:
  Context(const plugin::Graph& graph, const plugin::ProposeOptions& options,
          plugin::Proposals& proposals)
      : graph_(graph), options_(options), proposals_(proposals) {}

  const plugin::Graph& graph() const { return graph_; }
  const plugin::ProposeOptions& options() const { return options_; }

  // The least time in which these threads could do so much.
  double optimistic_seconds(double flops, double bytes) const;

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
  std::set<int32_t> taken_;
  std::map<int32_t, std::string> reasons_;
};

}  // namespace tessera::native
