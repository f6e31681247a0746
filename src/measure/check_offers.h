// Checks that the candidates of backends compute the same as the reference.
#pragma once

#include <memory>
#include <vector>

#include "backend/candidates.h"
#include "backend/plugin.h"
#include "base/parallel.h"
#include "choose/select_offers.h"
#include "graph/graph.h"
#include "measure/tune.h"
#include "ops/registry.h"
#include "tessera/tessera.h"

namespace tessera {

// All candidates for `graph` that `selection` allows, checked against the reference. `graph` must
// have the elements of all its weights.
struct CheckedOffers {
  std::vector<CandidateDescription> candidates;
  TuningDescription tuning;
};
CheckedOffers check_offers(const Graph& graph, const ops::Registry& registry,
                           const std::vector<std::shared_ptr<const Plugin>>& plugins,
                           ThreadPool& pool, const OfferOptions& offered,
                           const OfferSelection& selection, tuning::TuneOptions options);

}  // namespace tessera
