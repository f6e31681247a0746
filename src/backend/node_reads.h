// Records the parts of nodes that a plug-in reads while it proposes, and refuses candidates of
// plug-ins that ignore a part. An op gets attributes and inputs with new versions, and a plug-in
// that is older, or whose author forgot one, would compute something else than the model says.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "graph/graph.h"
#include "tessera/backend_abi.h"

struct tessera_graph;

namespace tessera {

struct Candidate;

// Thread-safe, apart from clear(). Ids that do not exist are ignored.
class NodeReads {
 public:
  NodeReads(size_t node_count, size_t value_count);

  // Forgets what the last plug-in read.
  void clear();

  // `attribute` is a view of tessera_graph, or null.
  void note_attribute(const tessera_attribute* attribute);
  void note_value(int32_t value);
  // Notes that all of the node was read, because the host exports or computes it.
  void note_node(int32_t node);

  bool has_attribute(const tessera_attribute* attribute) const;
  bool has_value(int32_t value) const { return is_marked(values_, value); }
  bool has_node(int32_t node) const { return is_marked(nodes_, node); }

 private:
  // The last round in which each was read. Values are read very often, so reading takes no lock.
  using Marks = std::vector<std::atomic<uint32_t>>;

  void mark(Marks& marks, int32_t id) const;
  bool is_marked(const Marks& marks, int32_t id) const;

  uint32_t round_ = 1;
  Marks nodes_;
  Marks values_;
  mutable std::mutex mutex_;  // protects the next member
  std::unordered_set<const tessera_attribute*> attributes_;
};

// The attributes of the node that can change its elements and were not read since graph.reads was
// cleared.
std::vector<std::string> unread_attributes(const tessera_graph& graph, NodeId node);

// Which attribute or optional input of its nodes a candidate ignores, as the end of a sentence
// ("ignores attribute 'mode' of node 'd'"); "" if none. An input is ignored if it is a constant
// that is no port, not absorbed, and never asked for.
std::string explain_unread(const tessera_graph& graph, const Candidate& candidate);

}  // namespace tessera
