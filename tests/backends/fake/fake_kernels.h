// Kernels and conversions of the fake devices: the host's reference kernels, executed by the thread
// of a queue, or on the processor.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "fake_device.h"
#include "tessera/backend.h"

namespace tessera::fake {

// The host's reference kernel of one node, behind ports that list each value once.
struct ReferenceKernel {
  std::shared_ptr<const tessera_kernel> kernel;
  std::vector<int32_t> inputs;   // the port of each input of the node; -1: it is left out
  std::vector<int32_t> outputs;  // the same for outputs
  std::string name;              // "kernel Relu 'relu_1'"
};

// `candidate` has the ports of candidate_for(). Throws Failure with the host's reason if the op has
// no reference kernel.
ReferenceKernel reference_kernel_of(const plugin::Graph& graph, const plugin::Node& node,
                                    const plugin::Candidate& candidate);

// Enqueues the kernel in the queue of a run.
std::unique_ptr<plugin::Kernel> device_kernel(const ReferenceKernel& kernel,
                                              std::shared_ptr<FakeDevice> device);
// Runs the kernel on the processor, and tells the detector which memory it reads and writes.
// Takes at least `duration`.
std::unique_ptr<plugin::Kernel> host_kernel(const ReferenceKernel& kernel,
                                            std::chrono::nanoseconds duration);

inline constexpr const char* kReversed = "fake:reversed";

// The layout kReversed on `device`, the `index`-th of the backend: elements in reverse order.
plugin::Layout reversed_layout(std::shared_ptr<FakeDevice> device, int32_t index);

}  // namespace tessera::fake
