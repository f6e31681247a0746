// What stands behind the public handle Executor.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "api/bind_cache.h"
#include "engine/plan_runner.h"
#include "graph/sparse_form.h"
#include "ops/registry.h"
#include "tessera/tessera.h"
#include "tune/cost_table.h"

namespace tessera {

struct Executor::State {
  // Shared with the model, so that an executor may outlive it; kernels of the reference need it.
  std::shared_ptr<const ops::Registry> registry;
  PlanRunner runner;
  std::vector<ValueDescription> inputs;
  std::vector<ValueDescription> outputs;
  std::vector<std::optional<SparseForm>> input_forms;
  std::vector<std::optional<SparseForm>> output_forms;  // of the model's outputs
  PlanDescription plan;
  tuning::CostTable costs;
  std::vector<StageRecord> stages;
  bool is_all_bound = false;                 // known since the last time that something was bound
  std::shared_ptr<const CacheRecord> cache;  // null where it was bound without optimize
  // By which it is planned anew.
  std::shared_ptr<Model::State> model;
  BindOptions options;
  bool is_recording = false;
  std::vector<StepRecord> steps;
  std::once_flag are_costs_written;
  std::string costs_text;  // of `costs`, once somebody asked

  template <class AnyOrTensor>
  std::vector<Tensor> inputs_in_order(const std::map<std::string, AnyOrTensor>& given) const;
  std::vector<Tensor> run(const std::vector<Tensor>& ordered);
  void run_bound();
  // Throws InvalidArgument naming what is not bound.
  void check_all_bound() const;
  // Which input or output has this name; throws InvalidArgument, naming all, where none has.
  size_t input_named(const std::string& name) const;
  size_t output_named(const std::string& name) const;
  void record(const PlanEvent& event, std::chrono::steady_clock::time_point run_start);
};

}  // namespace tessera
