// The network, for several search threads.
#pragma once

#include <tessera/tessera.h>

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "search.h"

namespace chess {

// The roles of the model's inputs and outputs, which are told by their sizes.
struct NetworkNames {
  std::string planes;    // 112x8x8
  std::string policy;    // the largest output
  std::string outcomes;  // three elements
};

// Throws tessera::Error for a network with other inputs or outputs.
NetworkNames find_names(const tessera::ModelDescription& model);

// One executor, bound to memory of its own: a run allocates and copies nothing. One thread at a
// time may use it.
class Evaluator {
 public:
  // Batches of `batch` positions. Throws tessera::Error.
  Evaluator(const tessera::Model& model, const NetworkNames& names, int64_t batch, int threads);

  // Answers for up to `batch` positions; they are valid until the next call. The executor has one
  // plan, for whole batches, so a few positions take as long as many.
  std::vector<Answer> run(std::span<const Position> positions);

  // Waits until measuring in the background has found the fastest plan.
  void wait_for_fastest_plan() { executor_.wait_for_swap(); }
  // Whether a cache had the plan.
  bool has_known_plan() const { return executor_.cache_report().is_hit; }

 private:
  tessera::Executor executor_;
  // The memory of the executor's input and outputs, into which the spans point.
  tessera::Tensor input_;
  std::vector<tessera::Tensor> outputs_;
  std::span<float> planes_;
  std::span<const float> policy_;
  std::span<const float> outcomes_;
  size_t batch_;
};

// Evaluators that search threads share. There are as many as can run at once; if all are busy, a
// thread waits. Weights exist once.
class EvaluatorPool {
 public:
  explicit EvaluatorPool(std::vector<std::unique_ptr<Evaluator>> evaluators);

  // An evaluator, until the end of the lease.
  class Lease {
   public:
    explicit Lease(EvaluatorPool& pool);
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Evaluator& operator*() { return *evaluator_; }

   private:
    EvaluatorPool& pool_;
    std::unique_ptr<Evaluator> evaluator_;
  };

 private:
  std::mutex mutex_;
  std::condition_variable is_free_;
  std::vector<std::unique_ptr<Evaluator>> free_;
};

}  // namespace chess
