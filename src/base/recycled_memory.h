// Memory of tensors of one type and size, which is used again once nobody refers to it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/memory.h"
#include "tessera/tensor.h"

namespace tessera {

// To touch new pages for the first time takes longer than to write to them. Keeps the memory of one
// tensor at most that is not in use. Tensors may outlive this object. Thread-safe, except that
// take() is called by one thread at a time.
class RecycledMemory {
 public:
  // `available` gives the bytes that the process could still allocate; tests substitute it.
  explicit RecycledMemory(int64_t (*available)() = available_memory_bytes);

  // A tensor whose elements nobody else refers to, with any values. Small tensors, and those of
  // another type or size than the one before, are new. Throws OutOfMemory, for large tensors before
  // the system has to end the process.
  Tensor take(DataType type, const std::vector<int64_t>& dims);

 private:
  struct Unused;

  int64_t (*available_)();
  std::shared_ptr<Unused> unused_;
};

}  // namespace tessera
