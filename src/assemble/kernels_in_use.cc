#include "assemble/kernels_in_use.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "backend/packs.h"
#include "graph/same_operation.h"

namespace tessera {
namespace {

std::string key_of(const Candidate& candidate, const Graph& graph) {
  std::string key = candidate.backend() + "\n" + candidate.algorithm;
  for (const NodeId node : candidate.nodes) key += "\n" + graph[node].name;
  return key;
}

std::optional<Digest> digest_of(const Value& constant) {
  if (constant.digest || !constant.constant.has_elements()) return constant.digest;
  return tessera::digest_of(constant.constant);
}

// The weights of a model are the same in all its plans. Constants that a pass made for some shapes
// may differ.
bool is_same_constant(const Value& left, const Value& right) {
  if (left.is_constant() != right.is_constant()) return false;
  if (!left.is_constant()) return true;
  if (left.sparse_constant || right.sparse_constant) {
    return left.sparse_constant == right.sparse_constant;
  }
  if (left.constant.has_elements() && right.constant.has_elements()) {
    return have_same_elements(left.constant, right.constant);
  }
  // The elements of at least one of them were released.
  const std::optional<Digest> one = digest_of(left);
  return one && one == digest_of(right);
}

// Compares the candidates of two plans for the same nodes.
class KernelMatch {
 public:
  KernelMatch(const Candidate& old, const Graph& old_graph, const LayoutTable& old_layouts,
              const Candidate& wanted, const Graph& graph, const LayoutTable& layouts)
      : old_(old),
        old_graph_(old_graph),
        old_layouts_(old_layouts),
        wanted_(wanted),
        graph_(graph),
        layouts_(layouts) {}

  bool is_whole() const {
    // A kernel may refer to absorbed constants, which belong to the plan that it was built for.
    if (!old_.absorbed.empty() || !wanted_.absorbed.empty()) return false;
    return old_.plugin == wanted_.plugin && old_.threads == wanted_.threads &&
           old_.flags == wanted_.flags && have_same_nodes() && have_same_ports() &&
           have_same_dimensions();
  }

 private:
  bool have_same_nodes() const {
    for (size_t index = 0; index < wanted_.nodes.size(); ++index) {
      const Node& before = old_graph_[old_.nodes[index]];
      const Node& now = graph_[wanted_.nodes[index]];
      if (!do_same_operation(before, now) || !have_same_values(before.inputs, now.inputs) ||
          !have_same_values(before.outputs, now.outputs)) {
        return false;
      }
    }
    return true;
  }

  bool have_same_values(const std::vector<ValueId>& before, const std::vector<ValueId>& now) const {
    return std::equal(before.begin(), before.end(), now.begin(), now.end(),
                      [&](ValueId left, ValueId right) {
                        if (left.is_none() || right.is_none()) return left == right;
                        const Value& one = old_graph_[left];
                        const Value& other = graph_[right];
                        return one.name == other.name && is_same_constant(one, other);
                      });
  }

  bool have_same_ports() const {
    const auto is_same_layout = [&](LayoutId left, LayoutId right) {
      return old_layouts_.name(left) == layouts_.name(right);
    };
    const auto is_same_pack = [](const tessera_pack* left, const tessera_pack* right) {
      if (left == nullptr || right == nullptr) return left == right;
      return std::strcmp(left->id, right->id) == 0;
    };
    return std::equal(old_.inputs.begin(), old_.inputs.end(), wanted_.inputs.begin(),
                      wanted_.inputs.end(),
                      [&](const CandidateInput& left, const CandidateInput& right) {
                        return is_same_kind(left.value, right.value) &&
                               is_same_layout(left.layout, right.layout) &&
                               left.alignment_bytes == right.alignment_bytes &&
                               left.accepts_strides == right.accepts_strides &&
                               is_same_pack(left.pack, right.pack);
                      }) &&
           std::equal(old_.outputs.begin(), old_.outputs.end(), wanted_.outputs.begin(),
                      wanted_.outputs.end(),
                      [&](const CandidateOutput& left, const CandidateOutput& right) {
                        return is_same_kind(left.value, right.value) &&
                               is_same_layout(left.layout, right.layout) &&
                               left.alignment_bytes == right.alignment_bytes &&
                               left.accepts_strides == right.accepts_strides &&
                               left.requests == right.requests &&
                               left.in_place_input == right.in_place_input &&
                               left.is_size_unknown == right.is_size_unknown;
                      });
  }

  // Whether both values have the same name, element type and rank.
  bool is_same_kind(ValueId before, ValueId now) const {
    const Value& left = old_graph_[before];
    const Value& right = graph_[now];
    const auto rank = [](const Value& value) {
      return value.type.shape ? static_cast<int>(value.type.shape->size()) : -1;
    };
    return left.name == right.name && left.type.element == right.type.element &&
           rank(left) == rank(right);
  }

  bool have_same_dimensions() const {
    const tessera_candidate* const abi = wanted_.abi.get();
    const tessera_candidate* const before = old_.abi.get();
    if (have_same_types()) return true;
    if (!wanted_.takes_sizes() || !old_.takes_sizes() ||
        before->built_for_count != abi->built_for_count) {
      return false;
    }
    // The workspace that was announced for the wanted sizes is that of a kernel built for them.
    if (old_.has_workspace_for() || !are_sizes_of_one_family()) return false;
    for (const auto& [input, axis] :
         std::span(abi->built_for, static_cast<size_t>(abi->built_for_count))) {
      const auto port = static_cast<size_t>(input);
      const Type& left = old_graph_[old_.inputs[port].value].type;
      const Type& right = graph_[wanted_.inputs[port].value].type;
      const auto at = static_cast<size_t>(axis);
      if ((*left.shape)[at] != (*right.shape)[at]) return false;
    }
    return true;
  }

  bool have_same_types() const {
    const auto are_same = [&](const auto& before, const auto& now) {
      return std::equal(before.begin(), before.end(), now.begin(), now.end(),
                        [&](const auto& left, const auto& right) {
                          return old_graph_[left.value].type == graph_[right.value].type;
                        });
    };
    return are_same(old_.inputs, wanted_.inputs) && are_same(old_.outputs, wanted_.outputs);
  }

  // Whether dimensions of 0, 1 and more stay apart, and equal ones stay equal; see
  // tessera_built_for.
  bool are_sizes_of_one_family() const {
    std::map<int64_t, int64_t> now_of;  // of dimensions above 1
    const auto note = [&](ValueId before, ValueId now) {
      const Type& left = old_graph_[before].type;
      const Type& right = graph_[now].type;
      if (!left.is_known_tensor() || !right.is_known_tensor()) return false;
      if (left.shape->size() != right.shape->size()) return false;
      for (size_t axis = 0; axis < left.shape->size(); ++axis) {
        const int64_t size = (*left.shape)[axis].value();
        const int64_t wanted = (*right.shape)[axis].value();
        const bool is_kept = size <= 1 || wanted <= 1
                                 ? size == wanted
                                 : now_of.try_emplace(size, wanted).first->second == wanted;
        if (!is_kept) return false;
      }
      return true;
    };
    for (size_t index = 0; index < old_.inputs.size(); ++index) {
      if (!note(old_.inputs[index].value, wanted_.inputs[index].value)) return false;
    }
    for (size_t index = 0; index < old_.outputs.size(); ++index) {
      if (!note(old_.outputs[index].value, wanted_.outputs[index].value)) return false;
    }
    return true;
  }

  const Candidate& old_;
  const Graph& old_graph_;
  const LayoutTable& old_layouts_;
  const Candidate& wanted_;
  const Graph& graph_;
  const LayoutTable& layouts_;
};

}  // namespace

KernelsInUse::KernelsInUse(std::span<const BuiltPlan* const> plans) {
  for (const BuiltPlan* plan : plans) {
    for (size_t index = 0; index < plan->plan.steps.size(); ++index) {
      if (plan->plan.steps[index].kind != ExecutionStep::Kind::Kernel) continue;
      const auto candidate = static_cast<size_t>(plan->plan.steps[index].candidate);
      entries_.emplace(key_of(plan->offers.candidates[candidate], plan->graph), Entry{plan, index});
    }
  }
}

KernelsInUse::Found KernelsInUse::find(const Candidate& candidate, const Graph& graph,
                                       const LayoutTable& layouts) const {
  if (entries_.empty()) return {};
  const auto [begin, end] = entries_.equal_range(key_of(candidate, graph));
  for (auto entry = begin; entry != end; ++entry) {
    const BuiltPlan& plan = *entry->second.plan;
    const auto old = static_cast<size_t>(plan.plan.steps[entry->second.step].candidate);
    const Candidate& built = plan.offers.candidates[old];
    const KernelMatch match(built, plan.graph, *plan.layouts, candidate, graph, layouts);
    if (match.is_whole()) return {plan.kernels[entry->second.step], built.library_bytes};
  }
  return {};
}

}  // namespace tessera
