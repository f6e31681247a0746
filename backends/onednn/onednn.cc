#include "onednn.h"

#include <exception>
#include <string>

#include "base/context.h"
#include "base/families.h"
#include "base/formats.h"

namespace tessera::onednn {

namespace {

using Propose = void (*)(Context& context);

// Families with the largest groups first: among equal candidates, the first one is chosen.
constexpr Propose kFamilies[] = {
    propose_convolutions,   propose_matmuls,   propose_recurrences, propose_poolings,
    propose_normalizations, propose_softmaxes, propose_lrns,        propose_reductions,
    propose_resamplings,    propose_concats,   propose_transposes,  propose_broadcasts,
    propose_elementwise,
};

std::string version_text() {
  const dnnl_version_t& version = *dnnl_version();
  return std::to_string(version.major) + "." + std::to_string(version.minor) + "." +
         std::to_string(version.patch);
}

}  // namespace

Onednn::Onednn(const tessera_host* host) : host_(host), engine_(dnnl::engine::kind::cpu, 0) {}

plugin::Description Onednn::describe() {
  plugin::Description description;
  description.name = "onednn";
  description.version = version_text();
  description.ingredients = {
      {"version", version_text()},
      {"commit", dnnl_version()->hash},
      {"revision", kernel_revision()},
      {"isa", std::to_string(static_cast<int>(dnnl::get_effective_cpu_isa()))},
  };
  description.layouts = all_layouts();
  description.conversions = direct_conversions();
  return description;
}

void Onednn::propose(const plugin::Graph& graph, const plugin::ProposeOptions& options,
                     plugin::Proposals& proposals) {
  if (options.takes_sizes) return;
  struct Call {
    Context context;
    std::exception_ptr failure;
  } call{{graph, options, proposals, engine_}, nullptr};
  // A primitive is described for the number of threads that the library sees.
  host_->run_in_pool(
      host_, options.threads,
      [](void* argument) {
        Call& made = *static_cast<Call*>(argument);
        try {
          for (const Propose family : kFamilies) family(made.context);
          made.context.report_refusals("oneDNN has no primitive for this op");
        } catch (...) {
          made.failure = std::current_exception();
        }
      },
      &call);
  if (call.failure) std::rethrow_exception(call.failure);
}

}  // namespace tessera::onednn

TESSERA_PLUGIN(tessera::onednn::Onednn)
