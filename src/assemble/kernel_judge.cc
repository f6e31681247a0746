#include "assemble/kernel_judge.h"

#include <algorithm>
#include <limits>
#include <map>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "backend/contract/run_context.h"
#include "backend/device_memory/hosted_kernel.h"
#include "cache/fingerprint.h"
#include "graph/extract_group.h"
#include "ops/work.h"
#include "tessera/backend_blobs.h"
#include "tessera/error.h"
#include "verify/check_candidate.h"
#include "verify/guarded_memory.h"
#include "verify/random_tensor.h"

namespace tessera {

using verification::GuardedMemory;
using verification::RepeatedMemory;

namespace {

// Part of the key of a judgement: another number if kernels are judged in another way.
constexpr const char* kJudgement = "judgement 1/";
constexpr const char* kFine = "fine";
// Operations and elements that the reference computes in about a millisecond.
constexpr int64_t kMaxReferenceWork = int64_t{1} << 18;
// The limit for kernels that can be judged only by comparison with the reference.
constexpr int64_t kMaxOnlyWork = int64_t{1} << 23;

// Elements that differ less are only inexact; other code judges the accuracy of candidates.
// Elements that were overwritten or left out differ more.
constexpr double kGrossError = 0.05;

// The fault of a kernel; "": it has none; nullopt: it cannot be judged.
using Fault = std::optional<std::string>;

uint64_t seed_of(size_t input) { return 977 + 31 * input; }

// The code of a kernel that can be saved, else "".
std::string code_of(const Kernel& kernel) {
  if (!kernel.can_be_saved()) return "";
  try {
    return kernel.save();
  } catch (const Error& error) {
    // A kernel may answer that it, in particular, cannot be saved.
    if (error.kind() == ErrorKind::Unsupported) return "";
    throw;
  }
}

std::string name_of_judgement(const std::string& key, const Candidate& candidate,
                              const Kernel& kernel) {
  // Another version of the compiler may make other code of the same text.
  const std::string code = candidate.is_compiled() ? code_of(kernel) : "";
  return kJudgement + cache::digest_text(key + "\n" + code);
}

std::optional<TensorType> tensor_type(const Value& value) {
  if (!value.type.is_known_tensor()) return std::nullopt;
  return TensorType{value.type.element, dims_from(*value.type.shape)};
}

// The computation of one candidate, judged alone.
class Trial {
 public:
  Trial(const Graph& graph, const LayoutTable& layouts, const ops::Registry& registry,
        int precision, const Candidate& candidate, std::shared_ptr<const Kernel> kernel,
        ThreadPool& pool)
      : graph_(graph),
        layouts_(layouts),
        registry_(registry),
        precision_(precision),
        candidate_(candidate),
        kernel_(std::move(kernel)),
        pool_(pool) {}

  Fault fault() {
    if (!is_simple()) return std::nullopt;
    const bool has_small_only = !candidate_.is_compiled() || candidate_.device != kHostDevice;
    const int64_t limit = has_small_only ? kMaxOnlyWork : kMaxReferenceWork;
    if (reference_work() <= limit) {
      if (const Fault found = fault_beside_reference()) return found;
    }
    return has_small_only ? std::nullopt : fault_in_bounds();
  }

 private:
  bool is_simple() const {
    const auto is_known = [&](const auto& port) {
      return tensor_type(graph_[port.value]) && !layouts_.sparse_form(port.layout);
    };
    return std::ranges::all_of(candidate_.inputs,
                               [&](const CandidateInput& port) {
                                 return is_known(port) && port.pack == nullptr;
                               }) &&
           std::ranges::all_of(candidate_.outputs, [&](const CandidateOutput& port) {
             return is_known(port) && !port.is_size_unknown;
           });
  }

  int64_t reference_work() const {
    int64_t work = 0;
    for (const NodeId id : candidate_.nodes) {
      const std::optional<int64_t> flops = ops::node_flops(graph_, graph_[id], registry_);
      const std::optional<int64_t> bytes = ops::node_bytes(graph_, graph_[id], registry_);
      if (!flops || !bytes) return std::numeric_limits<int64_t>::max();
      work = ops::saturating_add(work, ops::saturating_add(*flops, *bytes));
    }
    return work;
  }

  bool is_read(const std::string& name) const {
    return std::ranges::any_of(candidate_.inputs, [&](const CandidateInput& port) {
      return graph_[port.value].name == name;
    });
  }

  // The expected values of the group for random inputs, by the ids of the whole graph; nullopt if
  // the reference does not compute them.
  std::optional<verification::ExpectedValues> expected() const {
    try {
      verification::OpCase op_case;
      op_case.graph = extract_group(graph_, candidate_.nodes);
      for (size_t index = 0; index < op_case.graph.inputs.size(); ++index) {
        const std::optional<TensorType> type =
            tensor_type(op_case.graph[op_case.graph.inputs[index]]);
        if (!type) return std::nullopt;
        op_case.inputs.push_back(
            verification::random_tensor(type->element, type->dims, false, seed_of(index)));
      }
      for (Value& value : op_case.graph.values) {
        if (!value.is_constant() || value.constant.has_elements()) continue;
        // Its elements were released. A kernel that does not read them now read them when built.
        const std::optional<TensorType> type = tensor_type(value);
        if (!type || !is_read(value.name)) return std::nullopt;
        value.constant = verification::random_tensor(type->element, type->dims, false, 1);
      }
      return by_whole_ids(op_case.graph, verification::expected_values(op_case, registry_, pool_));
    } catch (const Error&) {
      return std::nullopt;  // it rejects such elements, or it has no kernel for an op
    }
  }

  verification::ExpectedValues by_whole_ids(const Graph& group,
                                            verification::ExpectedValues computed) const {
    std::map<std::string, size_t> ids;
    for (size_t id = 0; id < group.values.size(); ++id) ids.emplace(group.values[id].name, id);
    verification::ExpectedValues expected;
    expected.values.resize(graph_.values.size());
    expected.magnitudes.resize(graph_.values.size());
    const auto take = [&](const auto& ports) {
      for (const auto& port : ports) {
        const size_t from = ids.at(graph_[port.value].name);
        const auto to = static_cast<size_t>(port.value.index);
        expected.values[to] = computed.values[from];
        expected.magnitudes[to] = computed.magnitudes[from];
      }
    };
    take(candidate_.inputs);
    take(candidate_.outputs);
    return expected;
  }

  Fault fault_beside_reference() const {
    const std::optional<verification::ExpectedValues> values = expected();
    if (!values) return std::nullopt;
    const bool is_on_host = candidate_.device == kHostDevice;
    const Candidate on_host = hosted(candidate_, layouts_);
    std::optional<Kernel> wrapped;
    if (!is_on_host) wrapped.emplace(hosted(kernel_, candidate_, layouts_));
    verification::Report report;
    const verification::NumberCheck numbers =
        verification::check_kernel({.expected = *values,
                                    .layouts = layouts_,
                                    .candidate = on_host,
                                    .pool = pool_,
                                    .location = "",
                                    .precision = precision_},
                                   wrapped ? *wrapped : *kernel_, report);
    for (const verification::Failure& failure : report.failures()) {
      const bool is_only_inexact = failure.check == "numbers" && numbers.error <= kGrossError;
      if (!is_only_inexact) return failure.check + ": " + failure.message;
    }
    return "";
  }

  // "" if no guard bytes are damaged. Inputs come first in `memory`.
  static std::string damaged_guard_bytes(const std::vector<std::unique_ptr<RepeatedMemory>>& memory,
                                         size_t input_count) {
    for (size_t index = 0; index < memory.size(); ++index) {
      const std::string damage = memory[index]->explain_damage();
      if (damage.empty()) continue;
      const bool is_input = index < input_count;
      return std::string("guard bytes: ") + (is_input ? "input " : "output ") +
             std::to_string(is_input ? index : index - input_count) + ": " + damage;
    }
    return "";
  }

  // Runs on memory that only has the right size.
  Fault fault_in_bounds() const {
    std::vector<std::unique_ptr<RepeatedMemory>> memory;
    std::vector<TensorType> types;
    types.reserve(candidate_.inputs.size() + candidate_.outputs.size());
    const auto buffer_of = [&](const auto& port, int32_t request) {
      const TensorType& type = types.emplace_back(*tensor_type(graph_[port.value]));
      const int64_t elements = RepeatedMemory::kPieceBytes / element_bytes(type.element);
      const Tensor pattern =
          verification::random_tensor(type.element, {elements}, false, seed_of(memory.size()));
      memory.push_back(
          std::make_unique<RepeatedMemory>(layouts_.known_storage_bytes(port.layout, type),
                                           std::span(static_cast<const char*>(pattern.data()),
                                                     static_cast<size_t>(pattern.bytes()))));
      tessera_buffer buffer = {};
      buffer.data = memory.back()->data();
      buffer.bytes = memory.back()->bytes();
      buffer.data_type = static_cast<int32_t>(type.element);
      buffer.rank = static_cast<int32_t>(type.dims.size());
      buffer.dims = type.dims.data();
      buffer.request = request;
      return buffer;
    };
    std::vector<tessera_buffer> inputs;
    std::vector<tessera_buffer> outputs;
    for (const CandidateInput& port : candidate_.inputs) inputs.push_back(buffer_of(port, 0));
    for (const CandidateOutput& port : candidate_.outputs) {
      if ((port.requests & TESSERA_REQUEST_WRITE) == 0) return std::nullopt;
      outputs.push_back(buffer_of(port, TESSERA_REQUEST_WRITE));
    }
    const GuardedMemory workspace(kernel_->workspace_bytes(), TESSERA_ALIGNMENT_BYTES, 0);
    RunContext context(pool_);
    context.set_workspace(workspace.data(), workspace.bytes());
    pool_.execute([&] { kernel_->run("kernel", context, inputs.data(), outputs.data()); });
    if (const std::string damage = workspace.explain_damage(); !damage.empty()) {
      return "workspace: " + damage;
    }
    return damaged_guard_bytes(memory, inputs.size());
  }

  const Graph& graph_;
  const LayoutTable& layouts_;
  const ops::Registry& registry_;
  int precision_;
  const Candidate& candidate_;
  std::shared_ptr<const Kernel> kernel_;
  ThreadPool& pool_;
};

}  // namespace

bool is_judged(const Candidate& candidate) {
  return candidate.has_kernel() &&
         (candidate.is_compiled() || candidate.plugin->compile_counts().has_value());
}

std::string KernelJudge::explain_fault(const Candidate& candidate,
                                       const std::shared_ptr<const Kernel>& kernel,
                                       const std::optional<std::string>& key,
                                       ThreadPool& pool) const {
  const plugin::Blobs judgements(candidate.plugin->host());
  try {
    const std::string name = key ? name_of_judgement(*key, candidate, *kernel) : "";
    if (const auto known = key ? judgements.get(name) : std::nullopt) {
      return *known == kFine ? "" : *known;
    }
    const Fault fault =
        Trial(graph_, layouts_, registry_, precision_, candidate, kernel, pool).fault();
    if (!fault) return "";
    if (key) judgements.put(name, fault->empty() ? kFine : *fault);
    return *fault;
  } catch (const Error& error) {
    return error.message();
  } catch (const std::bad_alloc&) {
    return "there was not enough memory to judge it";
  }
}

}  // namespace tessera
