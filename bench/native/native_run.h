// One kernel of the native backend, ready to run repeatedly.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/candidates.h"
#include "backend/contract/run_context.h"
#include "backend/layouts.h"
#include "backend/plugin.h"
#include "base/threads/parallel.h"
#include "native_case.h"
#include "ops/registry.h"

namespace tessera::bench {

// The plug-in, and the plug-ins that bring the layouts in which it works.
class NativeBackend {
 public:
  // `file`: the plug-in; "": that of this build.
  explicit NativeBackend(const std::string& file = "");

  const ops::Registry& registry() const { return registry_; }
  const LayoutTable& layouts() const { return *layouts_; }
  std::span<const std::shared_ptr<const Plugin>> plugins() const { return plugins_; }

 private:
  ops::Registry registry_;
  std::vector<std::shared_ptr<const Plugin>> plugins_;
  std::vector<std::shared_ptr<const Plugin>> layout_plugins_;
  std::unique_ptr<LayoutTable> layouts_;
};

// The kernel of the candidate that a case asks for, or its conversion, with the buffers.
class NativeRun {
 public:
  // Throws std::runtime_error with the existing candidates if there is none of this kind.
  NativeRun(const NativeBackend& backend, const BandwidthCase& wanted, int64_t bytes,
            ThreadPool& pool);

  // The size of all inputs and outputs as they are stored.
  int64_t bytes() const { return bytes_; }
  void run();

 private:
  void choose(const NativeBackend& backend, const BandwidthCase& wanted);
  void choose_conversion(const NativeBackend& backend, const BandwidthCase& wanted);
  void fill_buffers(const NativeBackend& backend, const BandwidthCase& wanted);
  tessera_buffer stored(const NativeBackend& backend, ValueId value, LayoutId layout);
  tessera_buffer add_buffer(ValueId value, int64_t bytes);

  ThreadPool& pool_;
  CaseGraph case_;
  Graph typed_;
  std::optional<Candidate> candidate_;  // unless there is a conversion
  std::optional<ConversionStep> conversion_;
  Kernel kernel_;
  RunContext context_;
  std::vector<Tensor> memory_;
  std::vector<std::vector<int64_t>> dims_;
  std::vector<tessera_buffer> inputs_;
  std::vector<tessera_buffer> outputs_;
  Tensor workspace_;
  int64_t bytes_ = 0;
};

}  // namespace tessera::bench
