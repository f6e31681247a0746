#include "backend/candidates.h"

#include <algorithm>
#include <exception>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "backend/contract/status.h"
#include "backend/node_kernel.h"
#include "backend/node_reads.h"
#include "backend/plugin_call.h"
#include "backend/read_offer.h"
#include "tessera/backend.h"
#include "tessera/backend_abi.h"
#include "tessera/error.h"

namespace tessera {
namespace {

// The tensors that a kernel is built from and keeps.
struct AbsorbedTensors {
  explicit AbsorbedTensors(const std::vector<Value>& constants) {
    for (const Value& constant : constants) {
      const Tensor& tensor = tensors.emplace_back(elements_of(constant));
      if (!tensor.has_elements()) {
        throw Error(ErrorKind::Internal, "weight '" + constant.name + "'",
                    "a kernel is built of it after its elements were released");
      }
    }
    for (const Tensor& tensor : tensors) {
      tessera_buffer& buffer = buffers.emplace_back(tessera_buffer{});
      buffer.data = const_cast<void*>(tensor.data());
      buffer.bytes = tensor.bytes();
      buffer.data_type = static_cast<int32_t>(tensor.type());
      buffer.rank = static_cast<int32_t>(tensor.rank());
      buffer.dims = tensor.dims().data();
    }
  }

  std::vector<Tensor> tensors;
  std::vector<tessera_buffer> buffers;
};

void check_kernel(const tessera_kernel& kernel, const tessera_candidate& candidate,
                  const std::string& backend) {
  if (kernel.run == nullptr) {
    throw Error(ErrorKind::DeviceFailed, "backend '" + backend + "'",
                "the kernel that it built has no function to run");
  }
  if (kernel.workspace_bytes > candidate.workspace_bytes) {
    throw Error(ErrorKind::DeviceFailed, "backend '" + backend + "'",
                "the kernel that it built wants more workspace than its candidate said");
  }
}

Kernel taken_over(const tessera_kernel& kernel, const Status& status,
                  const tessera_candidate& candidate, const std::string& backend,
                  std::shared_ptr<const void> source) {
  Kernel owned(kernel, backend, std::move(source));
  if (!status.is_fine()) throw Error(status.kind(), "backend '" + backend + "'", status.message);
  check_kernel(kernel, candidate, backend);
  return owned;
}

// Returns a function that calls `abi->build` of `plugin` with a number of threads. `dense_layout`
// is the layout chosen for "any dense layout", or "". The kernel keeps the elements of `absorbed`
// alive, none of which may have been released. The function throws Error with the backend's reason.
std::function<Kernel(int threads)> kernel_builder(std::shared_ptr<const tessera_candidate> abi,
                                                  std::shared_ptr<const Plugin> plugin,
                                                  std::string dense_layout,
                                                  std::vector<Value> absorbed) {
  return [abi = std::move(abi), plugin = std::move(plugin), dense_layout = std::move(dense_layout),
          absorbed = std::move(absorbed)](int threads) {
    const auto given = std::make_shared<AbsorbedTensors>(absorbed);
    tessera_build_options options = {};
    options.struct_size = sizeof(options);
    options.threads = threads;
    options.dense_layout = dense_layout.empty() ? nullptr : dense_layout.c_str();
    options.absorbed = given->buffers.data();
    options.absorbed_count = static_cast<int32_t>(given->buffers.size());
    tessera_kernel kernel = {};
    kernel.struct_size = sizeof(kernel);
    const PluginCall call(*plugin);
    const Status status = call_plugin(
        [&](tessera_error* error) { return abi->build(abi->self, &options, &kernel, error); });
    return taken_over(kernel, status, *abi, plugin->name(), given);
  };
}

// Returns a function that calls `abi->load` with the saved bytes of such a candidate's kernel;
// null if there is no load. The kernel keeps the bytes. The function throws Error with the
// backend's reason.
std::function<Kernel(std::shared_ptr<const void> bytes, int64_t size)> kernel_loader(
    std::shared_ptr<const tessera_candidate> abi, std::shared_ptr<const Plugin> plugin) {
  if (abi->load == nullptr) return {};
  return [abi = std::move(abi), plugin = std::move(plugin)](std::shared_ptr<const void> bytes,
                                                            int64_t size) {
    tessera_kernel kernel = {};
    kernel.struct_size = sizeof(kernel);
    const PluginCall call(*plugin);
    const Status status = call_plugin([&](tessera_error* error) {
      return abi->load(abi->self, bytes.get(), static_cast<size_t>(size), &kernel, error);
    });
    return taken_over(kernel, status, *abi, plugin->name(), std::move(bytes));
  };
}

bool has_any_dense(const Candidate& candidate) {
  const auto is_any = [](const auto& port) { return port.layout == kAnyDense; };
  return std::any_of(candidate.inputs.begin(), candidate.inputs.end(), is_any) ||
         std::any_of(candidate.outputs.begin(), candidate.outputs.end(), is_any);
}

// `candidate` with `layout` for "any dense layout"; nullopt if the layout does not support a value.
std::optional<Candidate> with_dense_layout(const Candidate& candidate, LayoutId layout,
                                           const tessera_graph& graph, const LayoutTable& layouts) {
  Candidate result = candidate;
  result.is_any_dense = true;
  const auto settle = [&](auto& ports) {
    return std::all_of(ports.begin(), ports.end(), [&](auto& port) {
      if (port.layout != kAnyDense) return true;
      port.layout = layout;
      return can_hold(layouts, layout, graph.graph[port.value].type);
    });
  };
  if (!settle(result.inputs) || !settle(result.outputs)) return std::nullopt;
  return result;
}

// Asks one plug-in; receives the C callbacks.
class Collector {
 public:
  Collector(const tessera_graph& graph, const LayoutTable& layouts,
            std::shared_ptr<const Plugin> plugin, int preference, Offers& offers)
      : graph_(graph),
        layouts_(layouts),
        plugin_(std::move(plugin)),
        preference_(preference),
        offers_(offers),
        has_offer_or_refusal_(graph.nodes.size(), false) {}

  void ask(const OfferOptions& options) {
    if (options.wanted != nullptr) {
      wanted_.emplace();
      for (const CandidateId& id : *options.wanted) {
        const bool is_own = id.backend == plugin_->name() && id.threads == options.threads;
        if (is_own) wanted_->push_back(&id);
      }
      if (wanted_->empty()) return;
    }
    accepts_rough_ = options.accuracy == TESSERA_ACCURACY_FAST;
    graph_.reads.clear();
    ask_propose(options);
    ask_simple_kernels();
    if (wanted_) return;
    for (size_t node = 0; node < graph_.nodes.size(); ++node) {
      if (!has_offer_or_refusal_[node])
        add_refusal(static_cast<int32_t>(node), explain_silence(static_cast<int32_t>(node)));
    }
  }

 private:
  std::string explain_silence(int32_t node) const {
    const std::string small = explain_small_type(graph_.graph, {node});
    return small.empty() ? "it does not know this op" : "it does not know " + small;
  }

  void ask_propose(const OfferOptions& options) {
    const tessera_backend& abi = plugin_->abi();
    if (abi.propose == nullptr) return;
    tessera_propose_options wanted = {};
    wanted.struct_size = sizeof(wanted);
    wanted.threads = options.threads;
    wanted.precision = options.precision;
    wanted.nan = options.nan;
    wanted.accuracy = options.accuracy;
    wanted.skips_measured_only = options.skips_measured_only ? 1 : 0;
    wanted.takes_sizes = options.takes_sizes ? 1 : 0;
    std::vector<tessera_wanted> candidates;
    if (wanted_) {
      for (const CandidateId* id : *wanted_) candidates.push_back(to_abi(*id));
      wanted.wanted = candidates.data();
      wanted.wanted_count = static_cast<int32_t>(candidates.size());
    }
    tessera_proposals sink = {};
    sink.struct_size = sizeof(sink);
    sink.host_state = this;
    sink.add = [](tessera_proposals* proposals, const tessera_candidate* candidate) {
      of(proposals).keep_failure([&] { of(proposals).add_candidate(candidate); });
    };
    sink.refuse = [](tessera_proposals* proposals, int32_t node, const char* reason) {
      of(proposals).keep_failure([&] {
        of(proposals).add_refusal(node, reason == nullptr ? "without a reason" : reason);
      });
    };
    const PluginCall call(*plugin_);
    const std::lock_guard lock(plugin_->propose_mutex());
    const Status status = call_plugin([&](tessera_error* error) {
      return abi.propose(abi.self, &graph_, &wanted, &sink, error);
    });
    if (failure_) std::rethrow_exception(failure_);
    if (status.is_fine()) return;
    for (size_t node = 0; node < graph_.nodes.size(); ++node) {
      if (!has_offer_or_refusal_[node]) {
        add_refusal(static_cast<int32_t>(node), "it failed to propose: " + status.message);
      }
    }
  }

  // For an illegal candidate, reading it reports the error.
  bool has_wanted_nodes(const tessera_candidate& abi) const {
    if (!wanted_ || abi.nodes == nullptr || abi.node_count < 0) return true;
    return is_wanted({abi.nodes, static_cast<size_t>(abi.node_count)});
  }

  static tessera_wanted to_abi(const CandidateId& id) {
    tessera_wanted abi = {};
    abi.nodes = id.nodes.data();
    abi.node_count = static_cast<int32_t>(id.nodes.size());
    abi.algorithm = id.algorithm.c_str();
    abi.ports = id.ports.c_str();
    return abi;
  }

  bool is_wanted(std::span<const int32_t> nodes) const {
    if (!wanted_) return true;
    return std::any_of(wanted_->begin(), wanted_->end(),
                       [&](const CandidateId* id) { return std::ranges::equal(id->nodes, nodes); });
  }

  // Runs `take` during a call of the plug-in, which no exception may pass through: an exception is
  // kept until the plug-in has returned.
  template <class Take>
  void keep_failure(const Take& take) noexcept {
    try {
      take();
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  static Collector& of(tessera_proposals* proposals) {
    return *static_cast<Collector*>(proposals->host_state);
  }

  void add_candidate(const tessera_candidate* abi) {
    if (abi == nullptr) return;
    // From here on, the plug-in's candidate is ours, legal or not. It keeps the plug-in open.
    const std::shared_ptr<const tessera_candidate> held(
        abi, [plugin = plugin_](const tessera_candidate* candidate) {
          if (candidate->release != nullptr) candidate->release(candidate->self);
        });
    if (!has_wanted_nodes(*held)) return;
    try {
      Candidate candidate = read_offer(*held, *plugin_, graph_, layouts_);
      candidate.plugin = plugin_;
      candidate.preference = preference_;
      candidate.abi = held;
      if (candidate.is_rough() && !accepts_rough_) return refuse_rough(candidate);
      const std::string unread = explain_unread(graph_, candidate);
      if (!unread.empty()) throw IllegalOffer{"it " + unread};
      expand(candidate);
    } catch (const IllegalOffer& illegal) {
      refuse_nodes(*held, illegal.reason);
    } catch (const UnusableOffer& unusable) {
      if (unusable.reason.empty() || held->nodes == nullptr) return;
      for (int32_t index = 0; index < held->node_count; ++index) {
        add_refusal(held->nodes[index], unusable.reason);
      }
    }
  }

  void refuse_nodes(const tessera_candidate& abi, const std::string& reason) {
    const std::string algorithm = abi.algorithm == nullptr ? "" : abi.algorithm;
    const std::string text =
        "its candidate" + (algorithm.empty() ? "" : " '" + algorithm + "'") + " is not legal: ";
    if (abi.nodes == nullptr) return;
    for (const int32_t node :
         std::span(abi.nodes, static_cast<size_t>(std::max(0, abi.node_count)))) {
      add_refusal(node, text + reason);
    }
  }

  void refuse_rough(const Candidate& candidate) {
    const std::string algorithm =
        candidate.algorithm.empty() ? "" : " '" + candidate.algorithm + "'";
    for (const NodeId node : candidate.nodes) {
      add_refusal(node.index, "the error of its candidate" + algorithm +
                                  " may exceed the op's bound, which only accuracy=fast allows");
    }
  }

  void expand(const Candidate& candidate) {
    if (!has_any_dense(candidate)) {
      accept(candidate, "");
      return;
    }
    for (size_t index = 0; index < layouts_.size(); ++index) {
      const LayoutId layout{static_cast<int32_t>(index)};
      const bool is_here = layouts_.device_of(layout) == candidate.device;
      if (!is_here || !layouts_.is_dense(layout)) continue;
      if (std::optional<Candidate> settled =
              with_dense_layout(candidate, layout, graph_, layouts_)) {
        accept(*std::move(settled), layouts_.name(layout));
      }
    }
  }

  void accept(Candidate candidate, const std::string& dense_layout) {
    check_parts(candidate, graph_, layouts_);
    note_values(candidate);
    for (const NodeId node : candidate.nodes)
      has_offer_or_refusal_[static_cast<size_t>(node.index)] = true;
    std::vector<Value> absorbed;
    for (const ValueId id : candidate.absorbed) absorbed.push_back(graph_.graph[id]);
    candidate.build = kernel_builder(candidate.abi, plugin_, dense_layout, std::move(absorbed));
    candidate.load = kernel_loader(candidate.abi, plugin_);
    offers_.candidates.push_back(std::move(candidate));
  }

  // Such a node is computed alone. Its outputs are values that it makes, unless they have memory of
  // known size.
  void note_values(Candidate& candidate) const {
    if (candidate.nodes.size() != 1) return;
    const Node& node = graph_.graph[candidate.nodes.front()];
    candidate.runs_on_values = ops::runs_on_values(graph_.registry.of(node), graph_.graph, node);
  }

  void add_refusal(int32_t node, const std::string& reason) {
    if (node < 0 || static_cast<size_t>(node) >= graph_.nodes.size()) return;
    has_offer_or_refusal_[static_cast<size_t>(node)] = true;
    offers_.refusals.push_back({preference_, plugin_->name(), {node}, reason});
  }

  void ask_simple_kernels() {
    const tessera_backend& abi = plugin_->abi();
    for (const tessera_simple_kernel& simple :
         std::span(abi.simple_kernels, static_cast<size_t>(abi.simple_kernel_count))) {
      for (size_t index = 0; index < graph_.nodes.size(); ++index) {
        const Node& node = graph_.graph.nodes[index];
        if (node.op != simple.op || node.domain != simple.domain) continue;
        const auto id = static_cast<int32_t>(index);
        if (is_wanted({&id, 1})) offer_simple(simple, index);
      }
    }
  }

  void offer_simple(const tessera_simple_kernel& simple, size_t index) {
    std::string reason;
    const Status status = call_plugin([&](tessera_error*) {
      const char* explanation =
          simple.explain_refusal(simple.self, &graph_, static_cast<int32_t>(index));
      if (explanation != nullptr)
        reason = explanation[0] == '\0' ? "without a reason" : explanation;
      return TESSERA_OK;
    });
    if (!status.is_fine()) reason = status.message;
    const Node& node = graph_.graph.nodes[index];
    const std::string small = explain_small_type(graph_.graph, {static_cast<int32_t>(index)});
    if (!small.empty()) reason = "simple kernels get no " + small;
    for (const ValueId id : node.outputs) {
      if (!id.is_none() && !known_type(graph_.graph[id].type)) {
        reason = "the size of an output is not known before running";
      }
    }
    if (!reason.empty()) {
      add_refusal(static_cast<int32_t>(index), reason);
      return;
    }
    offers_.candidates.push_back(simple_candidate(simple, {static_cast<int32_t>(index)}));
    has_offer_or_refusal_[index] = true;
  }

  Candidate simple_candidate(const tessera_simple_kernel& simple, NodeId id) const {
    Candidate candidate;
    candidate.plugin = plugin_;
    candidate.preference = preference_;
    candidate.nodes = {id};
    const Node& node = graph_.graph[id];
    for (const ValueId value : node.inputs) {
      const bool is_listed =
          std::any_of(candidate.inputs.begin(), candidate.inputs.end(),
                      [&](const CandidateInput& port) { return port.value == value; });
      if (!value.is_none() && !is_listed) candidate.inputs.push_back({value, kDefaultLayout});
    }
    for (const ValueId value : node.outputs) {
      if (!value.is_none()) candidate.outputs.push_back({value, kDefaultLayout});
    }
    candidate.build = [&simple, node, unread = unread_attributes(graph_, id),
                       plugin = plugin_](int) {
      return Kernel(make_kernel(simple, node, unread), plugin->name());
    };
    return candidate;
  }

  const tessera_graph& graph_;
  const LayoutTable& layouts_;
  std::shared_ptr<const Plugin> plugin_;
  int preference_;
  Offers& offers_;
  std::vector<bool> has_offer_or_refusal_;
  // The wanted candidates of this plug-in; nullopt: all.
  std::optional<std::vector<const CandidateId*>> wanted_;
  bool accepts_rough_ = false;
  std::exception_ptr failure_;
};

}  // namespace

namespace {

// An input in CandidateId::ports.
std::string port_text(const CandidateInput& port, const LayoutTable& layouts) {
  const std::string& layout = layouts.name(port.layout);
  return port.pack == nullptr ? layout : layout + ":" + port.pack->id;
}

}  // namespace

CandidateId id_of(const Candidate& candidate, const LayoutTable& layouts, int threads) {
  CandidateId id{.backend = candidate.backend(),
                 .algorithm = candidate.algorithm,
                 .threads = candidate.threads == 0 ? threads : candidate.threads};
  for (const NodeId node : candidate.nodes) id.nodes.push_back(node.index);
  id.ports = plugin::ports_text(
      candidate.inputs, candidate.outputs,
      [&](const CandidateInput& port) { return port_text(port, layouts); },
      [&](const CandidateOutput& port) { return layouts.name(port.layout); });
  return id;
}

CandidateId id_alone(const Candidate& candidate, const Graph& graph, const LayoutTable& layouts,
                     int threads) {
  CandidateId id = id_of(candidate, layouts, threads);
  std::iota(id.nodes.begin(), id.nodes.end(), 0);
  id.ports = named_ports_text(candidate, layouts, [&](ValueId value) { return graph[value].name; });
  return id;
}

std::string named_ports_text(const Candidate& candidate, const LayoutTable& layouts,
                             const std::function<std::string(ValueId value)>& name_of) {
  return plugin::ports_text(
      candidate.inputs, candidate.outputs,
      [&](const CandidateInput& port) {
        return name_of(port.value) + "=" + port_text(port, layouts);
      },
      [&](const CandidateOutput& port) {
        return name_of(port.value) + "=" + layouts.name(port.layout);
      });
}

Offers collect_offers(const tessera_graph& graph,
                      std::span<const std::shared_ptr<const Plugin>> plugins,
                      const LayoutTable& layouts, const OfferOptions& options) {
  Offers offers;
  for (size_t index = 0; index < plugins.size(); ++index) {
    Collector(graph, layouts, plugins[index], static_cast<int>(index), offers).ask(options);
  }
  return offers;
}

}  // namespace tessera
