// Records what a bind found out or loaded, for save_cache() and for reports.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "cache/fingerprint.h"
#include "price/cost_sections.h"
#include "tessera/cache.h"

namespace tessera {

// The data that save_cache() saves, and the report about it. If the plan was known, the other
// sections of its files are read only at the first call of contents().
class CacheRecord {
 public:
  struct Contents {
    std::vector<tuning::PricedLibrary> libraries;
    tuning::FoundCosts found;
    CacheReport report;
  };
  CacheRecord(std::vector<cache::Ingredient> model, tuning::Binding binding, tuning::FoundPlan plan,
              std::function<Contents()> read, bool is_saved = false)
      : model_(std::move(model)),
        binding_(std::move(binding)),
        plan_(std::move(plan)),
        read_(std::move(read)),
        is_saved_(is_saved) {}

  // The ingredients of the file, and those of the plan's section in it.
  const std::vector<cache::Ingredient>& model() const { return model_; }
  const tuning::Binding& binding() const { return binding_; }
  const tuning::FoundPlan& plan() const { return plan_; }
  // Whether the bind has written a file.
  bool is_saved() const { return is_saved_; }
  const Contents& contents() const {
    std::call_once(is_read_, [&] { contents_ = read_(); });
    return contents_;
  }

 private:
  std::vector<cache::Ingredient> model_;
  tuning::Binding binding_;
  tuning::FoundPlan plan_;
  std::function<Contents()> read_;
  bool is_saved_;
  mutable std::once_flag is_read_;
  mutable Contents contents_;
};

using CacheRecords = std::vector<std::shared_ptr<const CacheRecord>>;

}  // namespace tessera
