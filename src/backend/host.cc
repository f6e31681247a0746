#include "backend/host.h"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "backend/contract/blob_bounds.h"
#include "backend/contract/pattern.h"
#include "backend/contract/status.h"
#include "backend/graph_view.h"
#include "backend/node_kernel.h"
#include "base/threads/fork.h"
#include "base/threads/parallel.h"
#include "export/onnx/export.h"
#include "tessera/error.h"

namespace tessera {
namespace {

// How often another process is asked whether it still makes a blob.
constexpr std::chrono::milliseconds kClaimPoll(5);

template <class Item>
const Item* item_at(const std::vector<Item>& items, int32_t index) {
  return index < 0 || static_cast<size_t>(index) >= items.size()
             ? nullptr
             : &items[static_cast<size_t>(index)];
}

// The plug-in knows what its pattern requires of the nodes of a match, so that counts as read.
void note_match(const tessera_graph& graph, const Pattern& pattern,
                const std::vector<NodeId>& match) {
  for (size_t step = 0; step < match.size(); ++step) {
    const Node& node = graph.graph[match[step]];
    for (const PatternOp& op : pattern.steps[step].ops) {
      if (op.name != node.op || op.domain != node.domain) continue;
      for (const auto& [name, value] : op.attributes) {
        graph.reads.note_attribute(graph.attribute(match[step].index, name.c_str()));
      }
    }
    // Inputs may be in another order than in the pattern.
    const bool has_numbers = std::ranges::any_of(
        pattern.steps[step].inputs,
        [](const PatternInput& input) { return input.kind == PatternInput::Kind::Number; });
    for (const ValueId input : has_numbers ? node.inputs : std::vector<ValueId>()) {
      graph.reads.note_value(input.index);
    }
  }
}

void visit_matches(const tessera_graph& graph, const char* pattern, tessera_match_visitor visitor,
                   void* user) {
  if (pattern == nullptr) {
    throw Error(ErrorKind::InvalidArgument, "pattern", "expected a text, found a null pointer");
  }
  const Matches& found = graph.matches(pattern);
  for (const std::vector<NodeId>& match : found.matches) {
    note_match(graph, found.pattern, match);
    std::vector<int32_t> nodes;
    nodes.reserve(match.size());
    for (const NodeId node : match) nodes.push_back(node.index);
    visitor(user, nodes.data(), static_cast<int32_t>(nodes.size()));
  }
}

std::vector<NodeId> checked_nodes(const tessera_graph& graph, const int32_t* nodes, int32_t count) {
  std::vector<NodeId> ids;
  for (int32_t index = 0; index < count; ++index) {
    if (item_at(graph.nodes, nodes[index]) == nullptr) {
      throw Error(ErrorKind::InvalidArgument, "group",
                  "expected nodes of the graph, found number " + std::to_string(nodes[index]));
    }
    ids.push_back({nodes[index]});
  }
  return ids;
}

// The plug-in gets these nodes completely, so everything in them counts as read.
void note_nodes(const tessera_graph& graph, const int32_t* nodes, int32_t count) {
  for (int32_t index = 0; index < count; ++index) graph.reads.note_node(nodes[index]);
}

// Passes each fused group on, whose nodes the host has lowered to expressions.
struct GroupVisit {
  const tessera_graph& graph;
  tessera_fused_group_visitor visitor;
  void* user;

  static void pass_on(void* visit, const tessera_fused_group* group) {
    const GroupVisit& self = *static_cast<const GroupVisit*>(visit);
    note_nodes(self.graph, group->nodes, group->node_count);
    self.visitor(self.user, group);
  }
};

std::vector<ValueId> checked_values(const tessera_graph& graph, const int32_t* values,
                                    int32_t count) {
  std::vector<ValueId> ids;
  for (int32_t index = 0; index < count; ++index) {
    if (item_at(graph.values, values[index]) == nullptr) {
      throw Error(ErrorKind::InvalidArgument, "group",
                  "expected values of the graph, found number " + std::to_string(values[index]));
    }
    ids.push_back({values[index]});
  }
  return ids;
}

// The result of `serve`, or `otherwise` if it throws. For functions that cannot report a failure
// and must not throw.
template <class Result, class Serve>
Result or_else(Result otherwise, const Serve& serve) noexcept {
  try {
    return serve();
  } catch (...) {
    return otherwise;
  }
}

// Runs `body` in a pool of that many threads or, if there is no memory for a pool, on this thread.
// Returns false if `body` throws, which violates the contract.
bool run_in_pool_or_here(int32_t threads, void (*body)(void*), void* argument) noexcept {
  bool has_begun = false;
  const auto run = [&] {
    has_begun = true;
    body(argument);
  };
  const bool is_done = or_else(false, [&] {
    ThreadPool pool(threads < 0 ? 0 : threads);
    pool.execute(run);
    return true;
  });
  if (is_done || has_begun) return is_done;
  return or_else(false, [&] {
    run();
    return true;
  });
}

// Keeps `blobs` within their bounds; the one under `newest` stays.
void forget_if_too_many(std::map<std::string, std::string>& blobs, std::set<std::string>& unkept,
                        const std::string& newest) {
  int64_t bytes = 0;
  for (const auto& [key, blob] : blobs) bytes += std::ssize(blob);
  if (blobs.size() <= kMaxBlobs && bytes <= kMaxBlobBytes) return;
  const auto is_another = [&](const std::string& key) { return key != newest; };
  std::erase_if(blobs, [&](const auto& blob) { return is_another(blob.first); });
  std::erase_if(unkept, is_another);
}

}  // namespace

std::optional<std::string> HostServices::get_blob(const std::string& key) {
  {
    const ForkSafeLock lock(mutex_);
    const auto found = blobs_.find(key);
    if (found != blobs_.end()) return found->second;
  }
  std::optional<std::string> stored = keeper_.find ? keeper_.find(key) : std::nullopt;
  if (!stored) return std::nullopt;
  // Another thread may have put a newer one meanwhile.
  const ForkSafeLock lock(mutex_);
  std::string found = blobs_.try_emplace(key, *std::move(stored)).first->second;
  forget_if_too_many(blobs_, new_, key);
  return found;
}

void HostServices::put_blob(const std::string& key, std::string bytes) {
  {
    const ForkSafeLock lock(mutex_);
    const auto [blob, is_new] = blobs_.try_emplace(key);
    if (!is_new && blob->second == bytes) return;
    blob->second = bytes;
    new_.insert(key);
    forget_if_too_many(blobs_, new_, key);
  }
  if (!keeper_.keep || !keeper_.keep(key, bytes)) return;
  // If another thread has put other bytes meanwhile, theirs are still to be kept.
  const ForkSafeLock lock(mutex_);
  const auto known = blobs_.find(key);
  if (known != blobs_.end() && known->second == bytes) new_.erase(key);
}

std::map<std::string, std::string> HostServices::take_new_blobs() {
  const ForkSafeLock lock(mutex_);
  std::map<std::string, std::string> taken;
  for (const std::string& key : std::exchange(new_, {})) taken[key] = blobs_.at(key);
  return taken;
}

std::map<std::string, std::string> HostServices::blobs() {
  const ForkSafeLock lock(mutex_);
  return blobs_;
}

BlobClaim HostServices::try_claim(const std::string& key) {
  {
    const ForkSafeLock lock(mutex_);
    if (!claimed_.insert(key).second) return nullptr;
  }
  // Ends the claim, whatever happens below.
  BlobClaim mine(static_cast<const void*>(this), [this, key](const void*) { end_claim(key); });
  if (!keeper_.try_claim) return mine;
  BlobClaim theirs = keeper_.try_claim(key);
  if (theirs == nullptr) return nullptr;
  return std::make_shared<const std::pair<BlobClaim, BlobClaim>>(std::move(mine),
                                                                 std::move(theirs));
}

void HostServices::end_claim(const std::string& key) {
  {
    const ForkSafeLock lock(mutex_);
    claimed_.erase(key);
  }
  claim_has_ended_.notify_all();
}

bool HostServices::claim(const std::string& key) {
  const NoForkSection section;
  const auto deadline = std::chrono::steady_clock::now() + max_claim_wait_;
  while (true) {
    BlobClaim claim = try_claim(key);
    if (claim != nullptr) {
      const ForkSafeLock lock(mutex_);
      held_[key] = std::move(claim);
      return true;
    }
    // Other processes do not notify, so they are asked again.
    std::unique_lock lock(mutex_);
    if (std::chrono::steady_clock::now() >= deadline) return false;
    claim_has_ended_.wait_for(lock, kClaimPoll);
  }
}

void HostServices::release(const std::string& key) {
  BlobClaim claim;  // ends after the lock, which ending it needs
  const ForkSafeLock lock(mutex_);
  if (const auto held = held_.find(key); held != held_.end()) {
    claim = std::move(held->second);
    held_.erase(held);
  }
}

HostTable::HostTable(std::shared_ptr<HostServices> services, std::string owner)
    : services_(std::move(services)), owner_(std::move(owner)) {
  abi_.struct_size = sizeof(abi_);
  abi_.contract_version = TESSERA_CONTRACT_VERSION;
  abi_.version = TESSERA_VERSION;
  abi_.host_state = this;
  fill_graph_access();
  fill_services();
}

HostTable& HostTable::of(const tessera_host* host) {
  return *static_cast<HostTable*>(host->host_state);
}

void HostTable::warn(const char* message) const noexcept {
  or_else(false, [&] {
    services_->log().warn(owner_ + ": " + message);
    return true;
  });
}

void HostTable::fill_graph_access() {
  abi_.node_count = [](const tessera_graph* graph) {
    return static_cast<int32_t>(graph->nodes.size());
  };
  abi_.value_count = [](const tessera_graph* graph) {
    return static_cast<int32_t>(graph->values.size());
  };
  abi_.node = [](const tessera_graph* graph, int32_t node) { return item_at(graph->nodes, node); };
  abi_.value = [](const tessera_graph* graph, int32_t value) {
    graph->reads.note_value(value);
    return item_at(graph->values, value);
  };
  abi_.attribute = [](const tessera_graph* graph, int32_t node,
                      const char* name) -> const tessera_attribute* {
    return or_else<const tessera_attribute*>(nullptr, [&] {
      const tessera_attribute* found = graph->attribute(node, name);
      graph->reads.note_attribute(found);
      return found;
    });
  };
  abi_.match = [](const tessera_graph* graph, const char* pattern, tessera_match_visitor visitor,
                  void* user, tessera_error* error) {
    return serve_plugin(error, [&] { visit_matches(*graph, pattern, visitor, user); });
  };
  abi_.group_as_onnx = [](const tessera_graph* graph, const int32_t* nodes, int32_t count,
                          tessera_bytes_visitor visitor, void* user, tessera_error* error) {
    return serve_plugin(error, [&] {
      const std::string bytes =
          export_group(graph->graph, checked_nodes(*graph, nodes, count), graph->registry);
      note_nodes(*graph, nodes, count);
      visitor(user, bytes.data(), bytes.size());
    });
  };
  abi_.open_group_as_onnx = [](const tessera_graph* graph, const int32_t* nodes, int32_t count,
                               const int32_t* constants, int32_t constant_count,
                               tessera_bytes_visitor visitor, void* user, tessera_error* error) {
    return serve_plugin(error, [&] {
      const std::string bytes =
          export_open_group(graph->graph, checked_nodes(*graph, nodes, count),
                            checked_values(*graph, constants, constant_count), graph->registry);
      note_nodes(*graph, nodes, count);
      visitor(user, bytes.data(), bytes.size());
    });
  };
  abi_.find_fused_groups = [](const tessera_graph* graph, uint32_t expression_version,
                              tessera_fused_group_visitor visitor, void* user,
                              tessera_error* error) {
    return serve_plugin(error, [&] {
      GroupVisit visit{*graph, visitor, user};
      graph->fusion().find(expression_version, GroupVisit::pass_on, &visit);
    });
  };
  abi_.fuse_nodes = [](const tessera_graph* graph, const int32_t* nodes, int32_t count,
                       uint32_t expression_version, tessera_fused_group_visitor visitor, void* user,
                       tessera_error* error) {
    return serve_plugin(error, [&] {
      GroupVisit visit{*graph, visitor, user};
      graph->fusion().fuse(checked_nodes(*graph, nodes, count), expression_version,
                           GroupVisit::pass_on, &visit);
    });
  };
  abi_.reference_kernel = [](const tessera_graph* graph, int32_t node, tessera_kernel* kernel,
                             tessera_error* error) {
    return serve_plugin(error, [&] {
      *kernel = make_reference_kernel(*graph, checked_nodes(*graph, &node, 1)[0]);
      note_nodes(*graph, &node, 1);
    });
  };
}

void HostTable::fill_services() {
  abi_.allocate = [](size_t bytes, size_t alignment) {
    return ::operator new(bytes, std::align_val_t{alignment}, std::nothrow);
  };
  abi_.deallocate = [](void* memory, size_t alignment) {
    ::operator delete(memory, std::align_val_t{alignment});
  };
  abi_.run_in_pool = [](const tessera_host* host, int32_t threads, void (*body)(void*),
                        void* argument) {
    if (run_in_pool_or_here(threads, body, argument)) return;
    of(host).warn(
        "a function that it runs in the pool threw an exception, which the contract forbids");
  };
  abi_.log = [](const tessera_host* host, const char* message) {
    if (message != nullptr) of(host).warn(message);
  };
  abi_.get_blob = [](const tessera_host* host, const char* key, tessera_bytes_visitor visitor,
                     void* user) -> int32_t {
    if (key == nullptr || visitor == nullptr) return 0;
    HostTable& table = of(host);
    return or_else(0, [&] {
      const std::optional<std::string> blob = table.services_->get_blob(table.owner_ + "/" + key);
      if (!blob) return 0;
      visitor(user, blob->data(), blob->size());
      return 1;
    });
  };
  abi_.put_blob = [](const tessera_host* host, const char* key, const void* bytes, size_t size) {
    if (key == nullptr || (bytes == nullptr && size > 0)) return;
    HostTable& table = of(host);
    // If there is no memory, it is not kept, as the contract allows.
    or_else(false, [&] {
      table.services_->put_blob(table.owner_ + "/" + key,
                                std::string(static_cast<const char*>(bytes), size));
      return true;
    });
  };
  abi_.claim_blob = [](const tessera_host* host, const char* key) -> int32_t {
    if (key == nullptr) return 0;
    HostTable& table = of(host);
    return or_else(0, [&] { return table.services_->claim(table.owner_ + "/" + key) ? 1 : 0; });
  };
  abi_.release_blob = [](const tessera_host* host, const char* key) {
    if (key == nullptr) return;
    HostTable& table = of(host);
    or_else(false, [&] {
      table.services_->release(table.owner_ + "/" + key);
      return true;
    });
  };
}

}  // namespace tessera
