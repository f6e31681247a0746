#include "attention/attention.h"

#include <utility>

#include "base/any_address.h"
#include "base/families.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Candidate;
using plugin::ProposeContext;
using plugin::Value;

namespace {

// With fewer queries, packing keys and values takes as long as their products.
constexpr int64_t kMinRows = 4;

// Scores of this size leave the second-level cache of a core. Of smaller ones, only measuring tells
// whether products of another library are better.
constexpr double kSurelyWorthBytes = 2 << 20;

size_t port_of(Candidate& candidate, const Value& value) {
  return static_cast<size_t>(plugin::input_port(candidate, value));
}

void offer(ProposeContext& context, const AttentionGroup& group) {
  if (!context.is_wanted(group.nodes)) return;
  const plugin::Graph& graph = context.graph();
  const AttentionProblem& problem = group.problem;
  Candidate candidate;
  candidate.nodes = group.nodes;
  candidate.algorithm = "attention";
  if (problem.score_bytes() >= kSurelyWorthBytes) candidate.flags = TESSERA_CANDIDATE_ONE_PASS;
  AttentionPorts ports = {.query = port_of(candidate, graph.value(group.query)),
                          .key = port_of(candidate, graph.value(group.key)),
                          .value = port_of(candidate, graph.value(group.value)),
                          .mask = std::nullopt};
  if (group.mask >= 0) ports.mask = port_of(candidate, graph.value(group.mask));
  candidate.outputs.push_back({.value = group.result});
  candidate.built_for = std::vector<tessera_built_for>();
  candidate.workspace_bytes = attention_workspace_bytes(problem, context.options().threads);
  candidate.workspace_for = [form = group.form, ports, threads = context.options().threads](
                                std::span<const Buffer> inputs, std::span<const Buffer> outputs) {
    return attention_workspace_bytes(attention_problem_of(form, ports.dims_of(inputs, outputs)),
                                     threads);
  };
  auto bytes = static_cast<double>(graph.value(group.result).type().dense_bytes());
  for (const plugin::InputPort& port : candidate.inputs) {
    bytes += static_cast<double>(graph.value(port.value).type().dense_bytes());
  }
  candidate.optimistic_seconds = context.optimistic_seconds(problem.flops(), bytes);
  candidate.build = [group, ports](const plugin::BuildOptions& options) {
    return make_attention_kernel(group, ports, options.threads);
  };
  accept_any_address(context.graph(), candidate);
  context.add(std::move(candidate));
}

void offer_around(ProposeContext& context, const PreparedSoftmax& softmax) {
  const std::optional<AttentionGroup> whole = attention_around(context.graph(), softmax, true);
  if (!whole || whole->problem.rows < kMinRows || whole->problem.is_empty()) return;
  offer(context, *whole);
  // Another library may transpose faster.
  const std::optional<AttentionGroup> core = attention_around(context.graph(), softmax, false);
  if (core && core->nodes.size() < whole->nodes.size()) offer(context, *core);
}

}  // namespace

void propose_attentions(ProposeContext& context) {
  for (const PreparedSoftmax& softmax : find_prepared_softmaxes(context.graph())) {
    offer_around(context, softmax);
  }
  context.for_each({"Softmax"}, [&](const plugin::Node& node) {
    if (const auto softmax = plain_softmax(node)) offer_around(context, *softmax);
  });
}

}  // namespace tessera::native
