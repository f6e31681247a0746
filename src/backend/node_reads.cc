#include "backend/node_reads.h"

namespace tessera {

NodeReads::NodeReads(size_t node_count, size_t value_count)
    : nodes_(node_count), values_(value_count) {}

void NodeReads::clear() {
  ++round_;
  const std::lock_guard lock(mutex_);
  attributes_.clear();
}

void NodeReads::note_attribute(const tessera_attribute* attribute) {
  if (attribute == nullptr) return;
  const std::lock_guard lock(mutex_);
  attributes_.insert(attribute);
}

void NodeReads::note_value(int32_t value) { mark(values_, value); }

void NodeReads::note_node(int32_t node) { mark(nodes_, node); }

bool NodeReads::has_attribute(const tessera_attribute* attribute) const {
  const std::lock_guard lock(mutex_);
  return attributes_.contains(attribute);
}

void NodeReads::mark(Marks& marks, int32_t id) const {
  if (id < 0 || static_cast<size_t>(id) >= marks.size()) return;
  marks[static_cast<size_t>(id)].store(round_, std::memory_order_relaxed);
}

bool NodeReads::is_marked(const Marks& marks, int32_t id) const {
  if (id < 0 || static_cast<size_t>(id) >= marks.size()) return false;
  return marks[static_cast<size_t>(id)].load(std::memory_order_relaxed) == round_;
}

}  // namespace tessera
