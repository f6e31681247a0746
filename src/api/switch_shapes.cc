// How an executor comes from one set of input shapes to another.
#include <algorithm>
#include <mutex>
#include <utility>

#include "api/backends_state.h"
#include "api/bind_options.h"
#include "api/exchanged_layouts.h"
#include "api/executor_state.h"
#include "api/model_state.h"
#include "api/stage_clock.h"
#include "base/stopwatch.h"
#include "compile/let_go.h"
#include "tessera/backend_abi.h"

namespace tessera {
namespace {

std::string type_text(const Tensor& tensor) {
  return std::string(name(tensor.type())) + " " + dims_text(tensor.dims());
}

// Nothing is measured, and nothing written.
PricingOptions replan_pricing(const BindOptions& options, tuning::CostTable& costs,
                              const tuning::CarriedChoice& carried, tuning::SharedCosts& shared) {
  PricingOptions pricing = pricing_options(options, costs);
  pricing.measures = false;
  pricing.measures_all = false;
  pricing.margin_search_seconds = 0;
  pricing.carried = &carried;
  if (!options.retune) pricing.shared = &shared;
  return pricing;
}

}  // namespace

void Executor::State::add_first_plan(PlanResult result) {
  {
    const std::lock_guard lock(model->mutex);
    const Graph& graph = model->loaded.graph;
    const std::vector<int> uses = use_counts(graph);
    has_one_shape = true;
    for (const ValueId id : graph.inputs) {
      // What is read only for its shape is not read any more once that is bound.
      is_shape_read.push_back(uses[static_cast<size_t>(id.index)] > 0);
      has_one_shape = has_one_shape && (!is_shape_read.back() || graph[id].type.is_known_tensor());
    }
    for (const auto* ids : {&graph.inputs, &graph.outputs}) {
      for (const ValueId id : *ids) {
        if (graph[id].type.shape) declared.emplace(graph[id].name, *graph[id].type.shape);
      }
    }
  }
  plans.push_back(std::make_unique<ShapePlan>(std::move(result), options, place, *registry));
  bound_inputs.resize(plan().inputs.size());
  is_settled = true;
}

void Executor::State::settle(const std::function<const Dims*(size_t input)>& dims_of) {
  bool is_other = false;
  for (size_t index = 0; index < is_shape_read.size(); ++index) {
    if (!is_shape_read[index]) continue;
    const Dims* const dims = dims_of(index);
    if (dims == nullptr || *dims == plan().dims[index]) continue;
    if (options.fixed_shapes) refuse_shape(index, *dims);
    is_other = true;
  }
  if (is_other && !has_one_shape) {
    std::vector<Dims> wanted = plan().dims;
    for (size_t index = 0; index < wanted.size(); ++index) {
      const Dims* const dims = is_shape_read[index] ? dims_of(index) : nullptr;
      if (dims != nullptr) wanted[index] = *dims;
    }
    switch_to(wanted);
  }
  if (!is_settled) bind_memory();
}

void Executor::State::refuse_shape(size_t input, const Dims& dims) const {
  const ValueDescription& bound = plan().inputs[input];
  throw Error(ErrorKind::InvalidArgument, "input '" + bound.name + "'",
              "expected " + bound.text + ", as it was bound with fixed_shapes, found " +
                  std::string(name(bound.type)) + " " + dims_text(dims));
}

void Executor::State::switch_to(const std::vector<Dims>& dims) {
  const auto is_wanted = [&](const std::unique_ptr<ShapePlan>& known) {
    for (size_t index = 0; index < dims.size(); ++index) {
      if (is_shape_read[index] && known->dims[index] != dims[index]) return false;
    }
    return true;
  };
  const auto found = std::find_if(plans.begin(), plans.end(), is_wanted);
  std::unique_ptr<ShapePlan> made;
  if (found == plans.end()) made = make_plan(dims);
  unbind_memory();
  if (made) {
    if (plans.size() >= static_cast<size_t>(options.most_shapes)) {
      if (plans.back().get() == swapped) swapped = nullptr;
      plans.pop_back();
    }
    plans.insert(plans.begin(), std::move(made));
  } else {
    std::rotate(plans.begin(), found, found + 1);
  }
}

std::unique_ptr<ShapePlan> Executor::State::make_plan(const std::vector<Dims>& dims) {
  const Stopwatch stopwatch;
  BindOptions wanted = options;
  for (size_t index = 0; index < dims.size(); ++index) {
    if (is_shape_read[index]) wanted.shapes[plan().inputs[index].name] = dims[index];
  }
  ThreadPool pool(options.threads);
  Backends::State& backends = *model->backends.state_;
  const auto plugins = choose_plugins(backends.set, wanted);
  PlanOptions plan_options = tessera::plan_options(wanted, backends.set);
  plan_options.log = &model->log;
  tuning::CostTable known;
  if (has_prices) {
    plan_options.pricing = replan_pricing(wanted, known, carried, backends.store.prices());
    if (is_optimizing(wanted)) {
      backends.store.tell(model->plan_question(wanted, {}, pool.threads()), model->log, known,
                          plan_options.pricing);
    }
  }
  for (const std::unique_ptr<ShapePlan>& other : plans) {
    plan_options.siblings.push_back(&other->runner->built());
  }
  const auto build = [&] {
    return build_plan(model->bound_graph(wanted, pool), *registry, plugins, model->packs, pool,
                      plan_options, [](const std::string&) {});
  };
  StageClock clock;
  PlanResult result = model->build_with_weights(build, clock);
  {
    const std::lock_guard lock(model->mutex);
    let_go_packed_constants(model->loaded.graph, result.built);
  }
  auto made = std::make_unique<ShapePlan>(std::move(result), wanted, place, *registry);
  made->seconds = stopwatch.read().seconds;
  return made;
}

bool Executor::State::is_as_declared(const std::string& name, const Dims& dims) const {
  const auto shape = declared.find(name);
  return shape == declared.end() ||
         std::equal(
             shape->second.begin(), shape->second.end(), dims.begin(), dims.end(),
             [](const Dim& known, int64_t dim) { return !known.is_known() || known == Dim(dim); });
}

bool Executor::State::may_become(const std::string& name, const Dims& dims) const {
  return !has_one_shape && is_as_declared(name, dims);
}

void Executor::State::check_declared(const ValueDescription& input, const Dims& dims) const {
  if (is_as_declared(input.name, dims)) return;
  const std::string type(name(input.type));
  throw Error(ErrorKind::InvalidArgument, "input '" + input.name + "'",
              "expected " + type + " " + text(declared.at(input.name)) + ", found " + type + " " +
                  dims_text(dims));
}

void Executor::State::bind_input(size_t index, const AnyTensor& memory) {
  const ExchangedValue input{plan().inputs[index], plan().input_forms[index]};
  const bool is_at_hand =
      dims_of(memory) == plan().dims[index] || !may_become(input.description.name, dims_of(memory));
  is_all_bound = false;
  if (is_at_hand) {
    Tensor fed = feed(input, memory);
    if (is_settled) plan().runner->exchange().bind_input(index, std::move(fed));
  } else {
    check_kind(input, memory);
    if (options.fixed_shapes) refuse_shape(index, dims_of(memory));
    is_settled = false;
  }
  bound_inputs[index] = memory;
}

void Executor::State::bind_output(size_t index, Tensor memory) {
  const ValueDescription& output = plan().outputs[index];
  const std::string where = "output '" + output.name + "'";
  if (output.layout != TESSERA_LAYOUT_DEFAULT) {
    throw Error(ErrorKind::InvalidArgument, where,
                "expected a dense output, found one that was bound in " + output.layout +
                    ": take it from what run_any() gives");
  }
  const bool is_as_planned = is_for(output, memory);
  const bool is_for_others = !options.fixed_shapes && memory.type() == output.type &&
                             may_become(output.name, memory.dims());
  if (!is_as_planned && !is_for_others) {
    throw Error(ErrorKind::InvalidArgument, where,
                "expected memory for " + output.text + ", found " + type_text(memory));
  }
  if (!memory.is_writable()) {
    throw Error(ErrorKind::InvalidArgument, where,
                "expected memory that may be written (Tensor::over), found a tensor to read from");
  }
  is_all_bound = false;
  if (is_as_planned && is_settled) {
    plan().runner->exchange().bind_result(index, memory);
  } else {
    is_settled = false;
  }
  bound_outputs[output.name] = std::move(memory);
}

void Executor::State::bind_memory() {
  Exchange& exchange = plan().runner->exchange();
  for (size_t index = 0; index < bound_inputs.size(); ++index) {
    const std::optional<AnyTensor>& memory = bound_inputs[index];
    // What is given for one run in its place may have other dimensions.
    const bool is_fit = memory && dims_of(*memory) == plan().dims[index];
    const ExchangedValue input{plan().inputs[index], plan().input_forms[index]};
    exchange.bind_input(index, is_fit ? feed(input, *memory) : Tensor());
  }
  for (size_t index = 0; index < plan().outputs.size(); ++index) {
    const ValueDescription& output = plan().outputs[index];
    const auto memory = bound_outputs.find(output.name);
    if (memory == bound_outputs.end()) continue;
    if (!is_for(output, memory->second)) {
      throw Error(ErrorKind::InvalidArgument, "output '" + output.name + "'",
                  "expected memory for " + output.text + ", which it is for these inputs, found " +
                      type_text(memory->second) + "; bind other memory, or clear the bindings");
    }
    exchange.bind_result(index, memory->second);
  }
  is_settled = true;
}

void Executor::State::unbind_memory() {
  Exchange& exchange = plan().runner->exchange();
  for (size_t index = 0; index < plan().inputs.size(); ++index) exchange.bind_input(index, {});
  for (size_t index = 0; index < plan().outputs.size(); ++index) exchange.bind_result(index, {});
  is_settled = false;
  is_all_bound = false;
}

bool Executor::State::is_for(const ValueDescription& output, const Tensor& memory) {
  const bool is_known =
      output.shape && std::all_of(output.shape->begin(), output.shape->end(),
                                  [](const Dimension& dim) { return dim.value.has_value(); });
  return !is_known || output.text == type_text(memory);
}

}  // namespace tessera
