#include "compile/build_plan.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "backend/graph_view.h"
#include "base/check.h"
#include "compile/let_go.h"
#include "compile/storage_fallback.h"
#include "place/placement.h"
#include "place/solve_placement.h"
#include "tessera/error.h"

namespace tessera {
namespace {

int64_t stored_bytes(const Graph& graph, const LayoutTable& layouts, ValueId value,
                     LayoutId layout) {
  const std::optional<TensorType> type = known_type(graph[value].type);
  return type ? layouts.storage_bytes(layout, *type).value_or(0) : 0;
}

// A view is nobody's work, so it is chosen among those of the backend that is asked first.
void prefer_views(PlacementProblem& problem) {
  std::map<std::vector<int>, int> best;  // preference by nodes
  for (const PlacementCandidate& candidate : problem.candidates) {
    const auto [entry, is_new] = best.try_emplace(candidate.nodes, candidate.preference);
    if (!is_new) entry->second = std::min(entry->second, candidate.preference);
  }
  for (PlacementCandidate& candidate : problem.candidates) {
    if (candidate.sharing == PlacementCandidate::Sharing::None) continue;
    candidate.preference = best.at(candidate.nodes);
  }
}

// Bytes that a conversion moves: as many as it reads, or writes where these are more or less.
int64_t conversion_bytes(const Value& value, const LayoutTable& layouts) {
  const int64_t dense = type_bytes(value.type).value_or(0);
  if (!value.sparse) return dense;
  const std::optional<LayoutId> layout = layouts.find(text(*value.sparse));
  const std::optional<int64_t> sparse = layouts.storage_bytes(*layout, *known_type(value.type));
  return (dense + sparse.value_or(0)) / 2;
}

PlacementProblem make_problem(const Graph& graph, const Offers& offers,
                              const LayoutTable& layouts) {
  PlacementProblem problem;
  problem.value_count = static_cast<int>(graph.values.size());
  problem.layout_count = static_cast<int>(layouts.size());
  for (const Node& node : graph.nodes) {
    PlacementNode& made = problem.nodes.emplace_back();
    for (const ValueId id : node.inputs) {
      if (!id.is_none()) made.inputs.push_back(id.index);
    }
    for (const ValueId id : node.outputs) {
      if (!id.is_none()) made.outputs.push_back(id.index);
    }
  }
  for (const Candidate& candidate : offers.candidates) {
    PlacementCandidate& made = problem.candidates.emplace_back();
    made.preference = candidate.preference;
    made.seconds = candidate.optimistic_seconds;
    for (const NodeId node : candidate.nodes) made.nodes.push_back(node.index);
    if (candidate.is_view()) made.sharing = PlacementCandidate::Sharing::View;
    if (candidate.is_joint()) made.sharing = PlacementCandidate::Sharing::Joint;
    for (const CandidateInput& port : candidate.inputs) {
      made.inputs.push_back({.value = port.value.index,
                             .layout = port.layout.index,
                             .alignment_bytes = port.alignment_bytes,
                             .accepts_strides = port.accepts_strides,
                             .offset_bytes = port.part.offset_bytes,
                             .has_strides = !port.part.is_dense(),
                             .bytes = stored_bytes(graph, layouts, port.value, port.layout)});
    }
    for (const CandidateOutput& port : candidate.outputs) {
      made.outputs.push_back({.value = port.value.index,
                              .layout = port.layout.index,
                              .offset_bytes = port.part.offset_bytes,
                              .has_strides = !port.part.is_dense(),
                              .bytes = stored_bytes(graph, layouts, port.value, port.layout)});
    }
  }
  prefer_views(problem);
  for (const Value& value : graph.values) {
    problem.is_constant.push_back(value.is_constant());
    problem.conversion_seconds.push_back(
        assumed_conversion_seconds(conversion_bytes(value, layouts)));
    const LayoutId fed = value.is_constant() ? kDefaultLayout : layouts.exchanged_layout(value);
    problem.fed_layout.push_back(fed.index);
  }
  for (int32_t layout = 0; layout < problem.layout_count; ++layout) {
    problem.is_sparse.push_back(layouts.sparse_form(LayoutId{layout}).has_value());
  }
  for (int32_t from = 0; from < problem.layout_count; ++from) {
    std::vector<double>& row = problem.conversion_hops.emplace_back();
    for (int32_t to = 0; to < problem.layout_count; ++to) {
      row.push_back(layouts.hops(LayoutId{from}, LayoutId{to}));
    }
  }
  return problem;
}

std::vector<std::string> node_places(const Graph& graph) {
  std::vector<std::string> places;
  for (const Node& node : graph.nodes) places.push_back(place(node));
  return places;
}

// Kernels by candidate, so that deciding anew builds only what is new.
using KernelsByCandidate = std::map<int, Kernel>;

// Builds what `placement` chose. Gives the candidates that could not be built, having refused them.
std::vector<int> build_kernels(const Placement& placement, Offers& offers, ThreadPool& pool,
                               KernelsByCandidate& kernels) {
  std::vector<int> failed;
  ThreadPool one(1);
  for (const int index : placement.chosen) {
    if (kernels.contains(index)) continue;
    const Candidate& candidate = offers.candidates[static_cast<size_t>(index)];
    if (!candidate.has_kernel()) continue;
    std::string reason;
    ThreadPool& its_pool = candidate.threads == 1 ? one : pool;
    // Libraries on the same thread runtime then build for this pool's threads.
    its_pool.execute([&] {
      try {
        kernels.emplace(index, candidate.build(its_pool.threads()));
      } catch (const Error& error) {
        reason = "its kernel could not be built: " + error.message();
      }
    });
    if (reason.empty()) continue;
    failed.push_back(index);
    for (const NodeId node : candidate.nodes) {
      offers.refusals.push_back({candidate.preference, candidate.backend(), node, reason});
    }
  }
  return failed;
}

class ConstantMaker {
 public:
  ConstantMaker(BuiltPlan& built, PackStore& packs, ThreadPool& pool)
      : built_(built), packs_(packs), context_(pool), pool_(pool) {}

  void make_all() {
    for (const PlanConstant& constant : built_.plan.constants) {
      built_.constants.push_back(make(constant));
    }
    for (const int result : built_.plan.results) {
      const PlanBuffer& buffer = built_.plan.buffers[static_cast<size_t>(result)];
      built_.constant_results.push_back(constant_result(buffer));
    }
  }

 private:
  Tensor constant_result(const PlanBuffer& buffer) const {
    if (buffer.kind != PlanBuffer::Kind::Constant) return {};
    if (!built_.layouts->sparse_form(buffer.layout)) return elements(buffer.value);
    const auto& bytes = built_.constants[static_cast<size_t>(buffer.index)];
    return {DataType::UInt8, {buffer.bytes}, bytes, bytes.get()};
  }

  Tensor elements(ValueId value) const {
    Tensor tensor = elements_of(built_.graph[value]);
    if (!tensor.has_elements()) throw LetGo{built_.graph[value].name};
    return tensor;
  }

  // What a pack is found by.
  std::array<uint64_t, 2> digest(const Value& value, ValueId id) const {
    if (value.digest) return *value.digest;
    const bool is_sparse = value.sparse_constant && !value.constant.has_elements();
    return digest_of(is_sparse ? value.sparse_constant->storage() : elements(id));
  }

  // Whether the file has it in the very form that is asked for.
  bool is_as_in_file(const PlanConstant& constant, const Value& value) const {
    const std::optional<SparseForm> form = built_.layouts->sparse_form(constant.layout);
    return form && value.sparse_constant && constant.pack == nullptr &&
           *form == SparseForm{value.sparse_constant->format(), value.sparse_constant->stored()};
  }

  std::shared_ptr<const void> make(const PlanConstant& constant) {
    const Value& value = built_.graph[constant.value];
    if (constant.pack == nullptr && constant.layout == kDefaultLayout) {
      const auto held = std::make_shared<const Tensor>(elements(constant.value));
      return {held, held->data()};
    }
    if (is_as_in_file(constant, value)) {
      return {value.sparse_constant, value.sparse_constant->storage().data()};
    }
    PackKey key;
    key.weight = digest(value, constant.value);
    if (constant.pack != nullptr) {
      const Candidate& candidate =
          built_.offers.candidates[static_cast<size_t>(constant.candidate)];
      key.id = constant.pack->id;
      key.ingredients = candidate.backend() + ";" + candidate.plugin->ingredients();
    } else {
      key.id = "layout " + built_.layouts->name(constant.layout);
    }
    // The digest of a sparse one is that of its storage, which does not tell all dimensions.
    if (value.sparse_constant) key.id += " of " + text(value.type);
    return packs_.get(key, constant.bytes,
                      [&](void* memory) { pool_.execute([&] { fill(constant, value, memory); }); });
  }

  static tessera_buffer face_of(const Tensor& tensor) {
    tessera_buffer face = {};
    face.data = const_cast<void*>(tensor.data());
    face.bytes = tensor.bytes();
    face.data_type = static_cast<int32_t>(tensor.type());
    face.rank = static_cast<int32_t>(tensor.rank());
    face.dims = tensor.dims().data();
    return face;
  }

  void fill(const PlanConstant& constant, const Value& value, void* memory) {
    const Tensor dense = elements(constant.value);
    const tessera_buffer from = face_of(dense);
    const std::string place = "weight '" + value.name + "'";
    if (constant.pack == nullptr) {
      convert_along_route(constant, place, from, memory);
      return;
    }
    const Candidate& candidate = built_.offers.candidates[static_cast<size_t>(constant.candidate)];
    const Status status = call_plugin([&](tessera_error* error) {
      return constant.pack->pack(constant.pack->self, context_.face(), &from, memory,
                                 constant.bytes, error);
    });
    if (!status.is_fine()) {
      throw Error(status.kind(), place,
                  "backend '" + candidate.backend() + "' could not pack it: " + status.message);
    }
  }

  void convert_along_route(const PlanConstant& constant, const std::string& place,
                           const tessera_buffer& from, void* memory) {
    const TensorType type = *known_type(built_.graph[constant.value].type);
    // From the default layout there is always a direct way.
    const std::vector<ConversionStep> route =
        built_.layouts->route(kDefaultLayout, constant.layout, type);
    TESSERA_CHECK(!route.empty(), "a constant in the default layout is the tensor itself");
    std::vector<Tensor> between;
    tessera_buffer source = from;
    for (size_t index = 0; index < route.size(); ++index) {
      tessera_buffer target = from;
      target.bytes = *built_.layouts->storage_bytes(route[index].to, type);
      target.data = memory;
      if (index + 1 < route.size()) {
        target.data = between.emplace_back(Tensor(DataType::UInt8, {target.bytes})).mutable_data();
      }
      convert(route[index], place, context_, source, target);
      source = target;
    }
  }

  BuiltPlan& built_;
  PackStore& packs_;
  RunContext context_;
  ThreadPool& pool_;
};

// Lets go of what libraries keep for candidates that were not chosen; indices stay.
void drop_unused(Offers& offers, const Placement& placement) {
  std::vector<bool> is_used(offers.candidates.size(), false);
  for (const int index : placement.chosen) is_used[static_cast<size_t>(index)] = true;
  for (size_t index = 0; index < is_used.size(); ++index) {
    if (!is_used[index]) offers.candidates[index] = {};
  }
}

int64_t pack_bytes(const ExecutionPlan& plan) {
  int64_t total = 0;
  for (const PlanConstant& constant : plan.constants) {
    if (constant.pack != nullptr || constant.layout != kDefaultLayout) total += constant.bytes;
  }
  return total;
}

// Tells the log of each sparse value that a chosen kernel takes dense; an error where that was to
// be.
void report_dense_uses(const BuiltPlan& built, const Placement& placement,
                       const PlanOptions& options) {
  for (const StorageFallback& fallback :
       find_storage_fallbacks(built.graph, built.offers, placement, *built.layouts)) {
    if (options.keeps_sparse_storage) {
      throw Error(ErrorKind::Unsupported, fallback.place,
                  "expected a kernel that takes " + fallback.value +
                      ", as strict storage was asked for, found none: " + fallback.reason);
    }
    if (options.log == nullptr) continue;
    options.log->warn(fallback.place + " reads " + fallback.value + " after a conversion to " +
                      fallback.layout + ": " + fallback.reason);
  }
}

// Measured prices of a whole model are off by about this much.
constexpr double kLeastGain = 0.97;

// Chooses candidates, by price or in order.
class Chooser {
 public:
  Chooser(const Graph& graph, const Offers& offers, const LayoutTable& layouts,
          const PricedOffers* prices, bool keeps_sparse_storage)
      : problem_(make_problem(graph, offers, layouts)),
        places_(node_places(graph)),
        is_by_price_(prices != nullptr),
        keeps_sparse_storage_(keeps_sparse_storage) {
    problem_.is_forbidden.assign(problem_.candidates.size(), false);
    if (is_by_price_) prices->apply(problem_);
    for (size_t index = 0; index < offers.candidates.size(); ++index) {
      const Candidate& candidate = offers.candidates[index];
      if (!is_by_price_ && candidate.is_measured_only()) problem_.is_forbidden[index] = true;
      is_priced_only_.push_back(candidate.threads == 1 || candidate.is_measured_only());
    }
  }

  void forbid(int candidate) { problem_.is_forbidden[static_cast<size_t>(candidate)] = true; }

  Placement choose() const {
    PlacementProblem problem = problem_;
    problem.is_forbidden = settle_storage(problem, keeps_sparse_storage_);
    const Placement placement =
        is_by_price_ ? cheapest(problem) : choose_in_order(problem, places_);
#ifdef TESSERA_CHECKS
    const std::string violation = explain_violation(problem, placement);
    TESSERA_CHECK(violation.empty(), violation);
#endif
    return placement;
  }

  double predict(const Placement& placement) const {
    return predicted_seconds(problem_, placement);
  }

 private:
  // The cheapest for the prices measured; but what would be chosen without prices, which is no
  // worse than a group at a time, where the gain could be noise.
  Placement cheapest(const PlacementProblem& problem) const {
    const Placement known = contender(problem);
    Placement best = choose_by_price(problem, known, places_);
    const PlacementSolution solved = solve_placement(problem);
    double seconds = predicted_seconds(problem, best);
    if (solved.is_found() && predicted_seconds(problem, solved.placement) < seconds) {
      best = solved.placement;
      seconds = predicted_seconds(problem, best);
    }
    const bool is_worth_it =
        known.chosen.empty() || seconds < kLeastGain * predicted_seconds(problem, known);
    return is_worth_it ? best : known;
  }

  // What would be chosen without prices, or nothing where only candidates for one thread are left.
  Placement contender(const PlacementProblem& problem) const {
    PlacementProblem all_threads = problem;
    for (size_t index = 0; index < is_priced_only_.size(); ++index) {
      if (is_priced_only_[index]) all_threads.is_forbidden[index] = true;
    }
    try {
      return choose_in_order(all_threads, places_);
    } catch (const Error&) {
      return {};
    }
  }

  PlacementProblem problem_;
  std::vector<std::string> places_;
  bool is_by_price_;
  bool keeps_sparse_storage_;
  std::vector<bool> is_priced_only_;  // by candidate: never chosen in order
};

}  // namespace

PlanResult build_plan(Graph graph, const ops::Registry& registry,
                      std::vector<std::shared_ptr<const Plugin>> plugins, PackStore& packs,
                      ThreadPool& pool, const PlanOptions& options, const StageWatcher& watcher) {
  PlanResult result;
  BuiltPlan& built = result.built;
  built.graph = std::move(graph);
  built.plugins = std::move(plugins);
  built.layouts = std::make_shared<const LayoutTable>(built.plugins, sparse_forms(built.graph));
  const PricingOptions& pricing = options.pricing;
  if (pricing.measures) check_has_elements(built.graph);

  watcher("propose");
  const tessera_graph view(built.graph, registry);
  if (pricing.costs != nullptr) {
    built.offers =
        collect_offers_by_threads(view, built.plugins, *built.layouts, pool, options.precision);
  } else {
    pool.execute([&] {
      built.offers = collect_offers(view, built.plugins, *built.layouts,
                                    {.threads = pool.threads(),
                                     .precision = options.precision,
                                     .skips_measured_only = options.selection.pins.empty()});
    });
  }
  built.offers = select_offers(std::move(built.offers), built.graph, options.selection,
                               names_of(built.plugins));

  const tuning::Subject subject{.graph = built.graph,
                                .offers = built.offers,
                                .layouts = *built.layouts,
                                .registry = registry,
                                .threads = pool.threads(),
                                .precision = options.precision};
  std::optional<PricedOffers> prices;
  if (pricing.measures) {
    watcher("tune");
    result.tuning =
        describe_tuning(tuning::tune(subject, built.plugins, pricing.tune, *pricing.costs));
  }
  watcher("place");
  if (pricing.costs != nullptr) prices.emplace(subject, *pricing.costs);
  if (prices) {
    for (Refusal& refusal : prices->refusals()) {
      built.offers.refusals.push_back(std::move(refusal));
    }
  }
  Chooser chooser(built.graph, built.offers, *built.layouts, prices ? &*prices : nullptr,
                  options.keeps_sparse_storage);
  KernelsByCandidate kernels;
  Placement placement;
  while (true) {
    placement = chooser.choose();
    watcher("build");
    const std::vector<int> failed = build_kernels(placement, built.offers, pool, kernels);
    if (failed.empty()) break;
    for (const int index : failed) chooser.forbid(index);
    watcher("place");
  }
  if (prices) {
    result.candidates = prices->describe(placement);
    result.conversions = prices->describe_conversions();
    result.predicted_seconds = chooser.predict(placement);
  }

  report_dense_uses(built, placement, options);

  watcher("plan");
  if (options.returns_step_outputs) {
    result.step_outputs = values_between_steps(built.offers, placement);
  }
  built.plan = make_plan(built.graph, built.offers, placement, *built.layouts, result.step_outputs);
  for (const ExecutionStep& step : built.plan.steps) {
    const bool is_kernel = step.kind == ExecutionStep::Kind::Kernel;
    built.kernels.push_back(is_kernel ? std::move(kernels.at(step.candidate)) : Kernel());
  }

  watcher("pack");
  ConstantMaker(built, packs, pool).make_all();
  result.pack_bytes = pack_bytes(built.plan);
  drop_unused(built.offers, placement);
  return result;
}

}  // namespace tessera
