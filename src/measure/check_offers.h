// Measures or checks everything that is offered for a graph.
#pragma once

#include <memory>
#include <vector>

#include "backend/candidates.h"
#include "backend/plugin.h"
#include "base/threads/parallel.h"
#include "choose/select_offers.h"
#include "graph/graph.h"
#include "measure/tune.h"
#include "ops/registry.h"
#include "tessera/tessera.h"

namespace tessera {

namespace tuning {

// Measures all candidates and conversions of the task.
TuneReport tune(const TuningTask& task, std::vector<std::shared_ptr<const Plugin>> plugins,
                const TuneOptions& options, CostTable& table);

}  // namespace tuning

// Checks that the candidates of backends compute the same as the reference: all candidates for
// `graph` that `selection` allows. `graph` must have the elements of all its weights.
struct CheckedOffers {
  std::vector<CandidateDescription> candidates;
  TuningDescription tuning;
};
CheckedOffers check_offers(const Graph& graph, const ops::Registry& registry,
                           const std::vector<std::shared_ptr<const Plugin>>& plugins,
                           ThreadPool& pool, const OfferOptions& offered,
                           const OfferSelection& selection, tuning::TuneOptions options);

}  // namespace tessera
