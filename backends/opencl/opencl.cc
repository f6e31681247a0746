#include "opencl.h"

#include <cstdlib>
#include <string>

#include "devices.h"
#include "offers.h"
#include "programs.h"

namespace tessera::opencl {

namespace {

using Propose = void (*)(const Offers& offers);

constexpr Propose kFamilies[] = {
    propose_convolutions, propose_matmuls,    propose_poolings, propose_normalizations,
    propose_softmaxes,    propose_reductions, propose_views,    propose_copies,
    propose_elementwise,  propose_fused,
};

plugin::Device described(const std::shared_ptr<Device>& device) {
  const DeviceFacts& facts = device->facts();
  return {.kind = "opencl",
          .ordinal = facts.ordinal,
          .architecture = facts.name + " (" + facts.driver + ")",
          .interface = device};
}

}  // namespace

Opencl::Opencl(const tessera_host* host) {
  const auto runtime = std::make_shared<LazyRuntime>();
  const plugin::Blobs blobs(host);
  const char* selection = std::getenv("TESSERA_OPENCL_DEVICE");
  for (const DeviceFacts& facts :
       selected_devices(known_devices(*runtime, blobs), selection == nullptr ? "" : selection)) {
    devices_.push_back(std::make_shared<Device>(facts, runtime, blobs));
  }
}

plugin::Description Opencl::describe() {
  plugin::Description description;
  description.name = "opencl";
  description.version = "1.2";
  description.ingredients = {{"revision", kernel_revision()}};
  description.devices.clear();
  for (const std::shared_ptr<Device>& device : devices_) {
    description.devices.push_back(described(device));
    const DeviceFacts& facts = device->facts();
    description.ingredients.emplace_back("device" + std::to_string(facts.ordinal),
                                         facts.name + ", " + facts.driver);
  }
  return description;
}

void Opencl::propose(const plugin::Graph& graph, const plugin::ProposeOptions& options,
                     plugin::Proposals& proposals) {
  if (options.takes_sizes) return;
  plugin::ProposeContext context(graph, options, proposals);
  for (const std::shared_ptr<Device>& device : devices_) {
    const Offers offers(context, device);
    for (const Propose family : kFamilies) family(offers);
  }
  context.report_refusals("there is no OpenCL kernel for this op");
}

}  // namespace tessera::opencl

TESSERA_PLUGIN(tessera::opencl::Opencl)

// For tests: how many programs this process has compiled from source.
TESSERA_EXPORT uint64_t tessera_opencl_built_programs() {
  return static_cast<uint64_t>(tessera::opencl::Programs::counts().compiled);
}
