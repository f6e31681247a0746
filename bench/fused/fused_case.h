// The groups that tessera_bench_fused times: what nodes of a graph compute, as one kernel.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/threads/parallel.h"
#include "fused_kernel.h"
#include "native_case.h"

namespace tessera::bench {

struct FusedCase {
  std::string name;
  // Appends the nodes from "x" to "y"; rows have kFusedColumns elements.
  std::function<void(CaseGraph& graph)> make;
  double low = -3;  // of the elements of "x"
  double high = 3;
};

constexpr int64_t kFusedColumns = 512;

std::vector<FusedCase> fused_cases();

// A compiled group with its tensors, ready to run repeatedly.
class FusedRun {
 public:
  // `bytes`: of the tensor "x". Throws std::runtime_error or Failure with the reason if the nodes
  // are no group, or if it cannot be compiled.
  FusedRun(const ops::Registry& registry, const FusedCase& wanted, int64_t bytes,
           const std::shared_ptr<jit::KernelStore>& store);

  const plugin::FusedGroup& group() const { return *group_; }
  // Of all inputs and outputs, each once.
  int64_t bytes() const { return bytes_; }
  void run(ThreadPool& pool);
  // The kernel in a form of TESSERA_KERNEL_.
  std::string text(int32_t form) const { return kernel_->text(form).value_or(""); }

 private:
  std::shared_ptr<const plugin::FusedGroup> group_;
  std::unique_ptr<plugin::Kernel> kernel_;
  std::vector<Tensor> memory_;
  std::vector<plugin::Buffer> inputs_;
  std::vector<plugin::Buffer> outputs_;
  int64_t bytes_ = 0;
};

}  // namespace tessera::bench
