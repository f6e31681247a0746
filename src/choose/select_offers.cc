#include "choose/select_offers.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "backend/catalog/catalog.h"
#include "base/errors/likely_name.h"
#include "tessera/error.h"

namespace tessera {
namespace {

// The number of nodes of a group that an error lists.
constexpr size_t kMaxReportedNodes = 4;

bool fits(const NodePin& pin, const Node& node) {
  if (node.name == pin.nodes) return true;
  if (pin.nodes.ends_with('*')) {
    return node.name.starts_with(std::string_view(pin.nodes).substr(0, pin.nodes.size() - 1));
  }
  const size_t equals = pin.nodes.find('=');
  if (equals == std::string::npos) return false;
  const auto property = node.metadata.find(pin.nodes.substr(0, equals));
  return property != node.metadata.end() && property->second == pin.nodes.substr(equals + 1);
}

std::string pin_text(const NodePin& pin) {
  return "pin '" + pin.nodes + "=" + pin.backend +
         (pin.algorithm.empty() ? "" : ":" + pin.algorithm) + "'";
}

void check_backend(const std::string& name, const std::string& where,
                   const std::vector<std::string>& backends) {
  if (std::find(backends.begin(), backends.end(), name) != backends.end()) return;
  std::string known;
  for (const std::string& backend : backends) known += (known.empty() ? "" : ", ") + backend;
  throw Error(ErrorKind::InvalidArgument, where,
              "expected one of the backends in use (" + known + "), found '" + name + "'" +
                  did_you_mean(name, backends));
}

// All valid values of NodePin::nodes: names and metadata properties or, if the pin ends with '*',
// prefixes of names that end at a '/' or '.'.
void add_possible_nodes(const NodePin& pin, const Graph& graph, std::set<std::string>& possible) {
  for (const Node& node : graph.nodes) {
    for (const Body& body : node.bodies) add_possible_nodes(pin, body.graph, possible);
    if (!pin.nodes.ends_with('*')) {
      possible.insert(node.name);
      for (const auto& [key, value] : node.metadata) possible.insert(key + "=" + value);
      continue;
    }
    for (size_t end = node.name.find_first_of("/."); end != std::string::npos;
         end = node.name.find_first_of("/.", end + 1)) {
      possible.insert(node.name.substr(0, end + 1) + "*");
    }
  }
}

std::vector<std::string> possible_nodes(const NodePin& pin, const Graph& graph) {
  std::set<std::string> possible;
  add_possible_nodes(pin, graph, possible);
  return {possible.begin(), possible.end()};
}

std::vector<std::string> known_ops(const ops::Registry& registry,
                                   const std::vector<std::shared_ptr<const Plugin>>& plugins) {
  std::vector<std::string> names;
  for (const ops::Op* op : registry.all()) names.push_back(op->name);
  for (const auto& plugin : plugins) {
    for (int32_t index = 0; index < plugin->abi().op_count; ++index) {
      names.emplace_back(plugin->abi().ops[index].name);
    }
  }
  return names;
}

// By node: the pin that applies to it, or nullptr.
std::vector<const NodePin*> pins_by_node(const Graph& graph, const OfferSelection& selection) {
  std::vector<const NodePin*> by_node(graph.nodes.size(), nullptr);
  for (const NodePin& pin : selection.pins) {
    bool is_used = false;
    for (size_t index = 0; index < graph.nodes.size(); ++index) {
      if (!fits(pin, graph.nodes[index])) continue;
      is_used = true;
      const NodePin* other = by_node[index];
      if (other != nullptr &&
          (other->backend != pin.backend || other->algorithm != pin.algorithm)) {
        throw Error(ErrorKind::InvalidArgument, pin_text(pin),
                    "contradicts " + pin_text(*other) + " for " + location_of(graph.nodes[index]));
      }
      by_node[index] = &pin;
    }
    if (is_used || concerns(pin, graph)) continue;
    throw Error(ErrorKind::InvalidArgument, pin_text(pin),
                "expected the name of a node, a prefix with '*', or a metadata property "
                "key=value; found none that fits (`tessera explain` lists the nodes; passes may "
                "have removed or fused it)" +
                    did_you_mean(pin.nodes, possible_nodes(pin, graph)));
  }
  return by_node;
}

bool serves(const Candidate& candidate, const NodePin& pin) {
  return candidate.backend() == pin.backend && candidate.algorithm.starts_with(pin.algorithm);
}

bool is_excluded(const Candidate& candidate, const Graph& graph,
                 const std::vector<BackendExclusion>& exclusions) {
  return std::any_of(exclusions.begin(), exclusions.end(), [&](const auto& exclusion) {
    if (exclusion.backend != candidate.backend()) return false;
    return exclusion.op.empty() ||
           std::any_of(candidate.nodes.begin(), candidate.nodes.end(),
                       [&](NodeId node) { return graph[node].op == exclusion.op; });
  });
}

// `refusals` include those of candidates that the selection left out.
std::string explain_unserved_pin(const Offers& offers, const std::vector<Refusal>& refusals,
                                 const Graph& graph, NodeId node, const NodePin& pin) {
  const auto is_for_node = [&](const Candidate& candidate) {
    return candidate.backend() == pin.backend &&
           std::ranges::find(candidate.nodes, node) != candidate.nodes.end();
  };
  // If the pin's algorithm is offered, other nodes of the group stand in its way.
  const bool is_offered = std::ranges::any_of(offers.candidates, [&](const Candidate& candidate) {
    return is_for_node(candidate) && serves(candidate, pin);
  });
  std::string text;
  std::set<std::string> reported;
  for (const Refusal& refusal : is_offered ? refusals : offers.refusals) {
    if (refusal.node != node || refusal.backend != pin.backend) continue;
    if (!reported.insert(refusal.reason).second) continue;
    text += (text.empty() ? "" : "; ") + refusal.backend + ": " + refusal.reason;
  }
  if (is_offered) return location_of(graph[node]) + " cannot be served: " + text;
  std::string algorithms;
  std::vector<std::string> names;
  for (const Candidate& candidate : offers.candidates) {
    if (is_for_node(candidate)) {
      if (std::find(names.begin(), names.end(), candidate.algorithm) != names.end()) continue;
      algorithms += (algorithms.empty() ? "'" : ", '") + candidate.algorithm + "'";
      names.push_back(candidate.algorithm);
    }
  }
  if (names.size() == 1 && names[0].empty()) {
    text += (text.empty() ? "" : "; ") + pin.backend +
            " has one kernel for it, without a name: pin " + pin.nodes + "=" + pin.backend;
  } else if (!algorithms.empty()) {
    text += (text.empty() ? "" : "; ") + pin.backend + " has " + algorithms;
    if (!pin.algorithm.empty()) text += ", of which none begins with '" + pin.algorithm + "'";
  }
  return location_of(graph[node]) +
         " cannot be served: " + (text.empty() ? pin.backend + " said nothing about it" : text) +
         did_you_mean(pin.algorithm, names);
}

// Lists each node except `left_out`, like "node 'a' (Relu)". After kMaxReportedNodes it
// gives the number of the rest.
std::string places_text(const Graph& graph, const std::vector<NodeId>& nodes, NodeId left_out) {
  std::string text;
  size_t reported = 0;
  for (const NodeId node : nodes) {
    if (node == left_out) continue;
    if (reported == kMaxReportedNodes) break;
    text += (text.empty() ? "" : ", ") + location_of(graph[node]);
    ++reported;
  }
  const size_t more = nodes.size() - 1 - reported;
  return text + (more == 0 ? "" : " and " + std::to_string(more) + " more");
}

// "; backend offers it ..." for each group that may be chosen.
std::string offers_text(const Offers& offers, const Graph& graph, NodeId node,
                        const std::vector<bool>& is_forbidden) {
  std::string text;
  std::set<std::pair<std::string, std::vector<NodeId>>> reported;
  for (size_t index = 0; index < offers.candidates.size(); ++index) {
    const Candidate& candidate = offers.candidates[index];
    const std::vector<NodeId>& nodes = candidate.nodes;
    const bool is_for_node = std::find(nodes.begin(), nodes.end(), node) != nodes.end();
    if (is_forbidden[index] || !is_for_node) continue;
    if (!reported.emplace(candidate.backend(), nodes).second) continue;
    text += "; " + candidate.backend() + " offers it " +
            (nodes.size() == 1 ? "alone" : "with " + places_text(graph, nodes, node));
  }
  return text;
}

// "; backend: reason" for each refusal.
std::string refusals_text(const Offers& offers, NodeId node) {
  std::string text;
  std::set<std::pair<std::string, std::string>>
      reported;  // many candidates may have the same reason
  for (const Refusal& refusal : offers.refusals) {
    if (refusal.node != node || !reported.emplace(refusal.backend, refusal.reason).second) continue;
    text += "; " + refusal.backend + ": " + refusal.reason;
  }
  return text;
}

void check_devices(const std::vector<std::string>& wanted,
                   const std::vector<std::shared_ptr<const Plugin>>& plugins) {
  std::vector<std::string> known = {"cpu"};
  for (const auto& plugin : plugins) {
    for (int32_t index = 0; index < plugin->abi().device_count; ++index) {
      if (interface_of(plugin->abi(), index) == nullptr) continue;
      known.push_back(device_name(plugin->abi().devices[index]));
    }
  }
  for (const std::string& name : wanted) {
    if (std::ranges::find(known, name) != known.end()) continue;
    std::string list;
    for (const std::string& device : known) list += (list.empty() ? "'" : ", '") + device + "'";
    throw Error(ErrorKind::InvalidArgument, "device '" + name + "'",
                "expected a device of the backends that are used, found none of that name; there "
                "are " +
                    list + did_you_mean(name, known) +
                    "; a backend that is not used by default has to be named (backends)");
  }
}

}  // namespace

bool concerns(const NodePin& pin, const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [&](const Node& node) {
    return fits(pin, node) || std::ranges::any_of(node.bodies, [&](const Body& body) {
             return concerns(pin, body.graph);
           });
  });
}

void check_selected_names(const OfferSelection& selection, const ops::Registry& registry,
                          const std::vector<std::shared_ptr<const Plugin>>& plugins) {
  check_devices(selection.devices, plugins);
  std::vector<std::string> backends;
  for (const auto& plugin : plugins) backends.push_back(plugin->name());
  for (const NodePin& pin : selection.pins) check_backend(pin.backend, pin_text(pin), backends);
  for (const BackendExclusion& exclusion : selection.exclusions) {
    const std::string where = "exclusion of '" + exclusion.backend +
                              (exclusion.op.empty() ? "" : ":" + exclusion.op) + "'";
    // A backend that is used only if it is named is excluded already.
    const bool is_unnamed = std::ranges::any_of(catalog(), [&](const CatalogEntry& entry) {
      return entry.is_only_if_named && entry.name == exclusion.backend;
    });
    if (!is_unnamed) check_backend(exclusion.backend, where, backends);
    if (exclusion.op.empty()) continue;
    const std::vector<std::string> ops = known_ops(registry, plugins);
    if (std::find(ops.begin(), ops.end(), exclusion.op) != ops.end()) continue;
    throw Error(ErrorKind::InvalidArgument, where,
                "expected an op of ONNX or of a plug-in, found '" + exclusion.op + "'" +
                    did_you_mean(exclusion.op, ops));
  }
}

Offers select_offers(Offers offers, const Graph& graph, const OfferSelection& selection) {
  const std::vector<const NodePin*> pins = pins_by_node(graph, selection);
  std::vector<bool> is_served(graph.nodes.size(), false);
  Offers kept;
  kept.refusals = offers.refusals;
  for (Candidate& candidate : offers.candidates) {
    std::string reason;
    if (is_excluded(candidate, graph, selection.exclusions)) reason = "it was excluded";
    for (const NodeId node : candidate.nodes) {
      const NodePin* pin = pins[static_cast<size_t>(node.index)];
      if (pin == nullptr) continue;
      if (!serves(candidate, *pin)) {
        const bool is_alone = candidate.nodes.size() == 1;
        reason =
            (is_alone ? "the node" : location_of(graph[node])) + " is held by " + pin_text(*pin);
      }
      // A pin selects the candidate at any price, so no measured price is necessary.
      candidate.flags &= ~uint32_t{TESSERA_CANDIDATE_MEASURED_ONLY};
    }
    if (reason.empty()) {
      for (const NodeId node : candidate.nodes) is_served[static_cast<size_t>(node.index)] = true;
      kept.candidates.push_back(candidate);
      continue;
    }
    for (const NodeId node : candidate.nodes) {
      kept.refusals.push_back({candidate.preference, candidate.backend(), node, reason});
    }
  }
  for (size_t index = 0; index < graph.nodes.size(); ++index) {
    if (pins[index] == nullptr || is_served[index]) continue;
    throw Error(ErrorKind::Unsupported, pin_text(*pins[index]),
                explain_unserved_pin(offers, kept.refusals, graph, {static_cast<int32_t>(index)},
                                     *pins[index]));
  }
  return kept;
}

void check_is_covered(const Offers& offers, const Graph& graph,
                      const std::vector<bool>& is_forbidden) {
  std::vector<bool> is_covered(graph.nodes.size(), false);
  for (size_t index = 0; index < offers.candidates.size(); ++index) {
    if (is_forbidden[index]) continue;
    for (const NodeId node : offers.candidates[index].nodes) {
      is_covered[static_cast<size_t>(node.index)] = true;
    }
  }
  const auto uncovered = std::find(is_covered.begin(), is_covered.end(), false);
  if (uncovered == is_covered.end()) return;
  const NodeId node{static_cast<int32_t>(uncovered - is_covered.begin())};
  throw explain_uncovered(offers, graph, node, is_forbidden);
}

Error explain_uncovered(const Offers& offers, const Graph& graph, NodeId node,
                        const std::vector<bool>& is_forbidden) {
  const std::string offered = offers_text(offers, graph, node, is_forbidden);
  const std::string refused = refusals_text(offers, node);
  if (!offered.empty()) {
    return {ErrorKind::Unsupported, location_of(graph[node]),
            "no choice was found that computes this node beside all others" + offered + refused};
  }
  return {
      ErrorKind::Unsupported, location_of(graph[node]),
      "no backend can compute this node" + (refused.empty() ? "; none gave a reason" : refused)};
}

}  // namespace tessera
