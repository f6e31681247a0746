// The rate at which this processor computes the operations of a group if nothing waits for memory
// or for another operation.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernel_store.h"
#include "tessera/backend_fusion.h"

namespace tessera::bench {

// Operations that differ in what they cost.
struct OperationCount {
  std::string kind;
  int count = 0;  // at each point
};

// What a group computes at each point. What is the same for all points of a row counts for nothing,
// and neither do bit casts and constants. A comparison whose result chooses between its arguments
// is one operation, "min or max".
std::vector<OperationCount> operations_of(const plugin::FusedGroup& group);

// The same mix of operations on independent vectors in registers.
class OperationPeak {
 public:
  OperationPeak(const plugin::FusedGroup& group, const std::shared_ptr<jit::KernelStore>& store);

  // Computes the operations of so many points; a multiple of lanes().
  void run(int64_t points) const;
  int lanes() const { return lanes_; }

 private:
  std::shared_ptr<const jit::ReadyKernel> kernel_;
  int lanes_;
};

}  // namespace tessera::bench
