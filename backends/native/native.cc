#include "native.h"

#include <string>

#include "context.h"
#include "families.h"
#include "hwy/targets.h"

namespace tessera::native {

namespace {

// Raised when a kernel's code changes in speed or in its last digits: what was measured is void.
constexpr const char* kRevision = "1";

using Propose = void (*)(Context& context);

// What is offered first is chosen among equals.
constexpr Propose kFamilies[] = {
    propose_elementwise,
};

}  // namespace

plugin::Description Native::describe() {
  plugin::Description description;
  description.name = "native";
  description.version = TESSERA_VERSION;
  // Targets are bits, the best one the lowest.
  const int64_t targets = hwy::SupportedTargets();
  const std::string best = hwy::TargetName(targets & -targets);
  description.ingredients = {{"version", TESSERA_VERSION}, {"revision", kRevision}, {"isa", best}};
  description.devices.front().architecture = best;
  return description;
}

void Native::propose(const plugin::Graph& graph, const plugin::ProposeOptions& options,
                     plugin::Proposals& proposals) {
  Context context(graph, options, proposals);
  for (const Propose family : kFamilies) family(context);
  context.report_refusals();
}

}  // namespace tessera::native

TESSERA_PLUGIN(tessera::native::Native)
