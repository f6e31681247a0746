#include "api/bind/bind_progress.h"

#include <array>
#include <memory>
#include <string_view>
#include <utility>

namespace tessera {
namespace {

struct StageRow {
  std::string_view stage;
  BindPhase phase;
};

constexpr std::array kStages = {
    StageRow{"look up", BindPhase::Preparing}, StageRow{"open", BindPhase::Preparing},
    StageRow{"restore", BindPhase::Preparing}, StageRow{"specialise", BindPhase::Preparing},
    StageRow{"propose", BindPhase::Preparing}, StageRow{"place", BindPhase::Choosing},
    StageRow{"build", BindPhase::Building},    StageRow{"plan", BindPhase::Packing},
    StageRow{"pack", BindPhase::Packing},      StageRow{"keep", BindPhase::Storing},
};

}  // namespace

std::string_view name(BindPhase phase) {
  switch (phase) {
    case BindPhase::Waiting:
      return "waiting";
    case BindPhase::Preparing:
      return "preparing the model";
    case BindPhase::Starting:
      return "starting to measure";
    case BindPhase::Reference:
      return "computing expected values";
    case BindPhase::Measuring:
      return "measuring candidates";
    case BindPhase::Checking:
      return "checking candidates";
    case BindPhase::Choosing:
      return "choosing a plan";
    case BindPhase::Building:
      return "building kernels";
    case BindPhase::TimingSteps:
      return "timing the steps of a plan";
    case BindPhase::Comparing:
      return "comparing whole plans";
    case BindPhase::Margins:
      return "computing margins";
    case BindPhase::Packing:
      return "packing weights";
    case BindPhase::Storing:
      return "storing what was found";
  }
  return "binding";
}

BindOptions with_lasting_stop(BindOptions options) {
  if (!options.on_progress) return options;
  options.on_progress = [report = std::move(options.on_progress),
                         is_stopped = std::make_shared<bool>(false)](const TuneProgress& progress) {
    if (!report(progress)) *is_stopped = true;
    return !*is_stopped;
  };
  return options;
}

StageClock::Watcher stage_reporter(const BindOptions& options) {
  if (!options.on_progress) return {};
  return [&report = options.on_progress](const std::string& stage) {
    for (const StageRow& row : kStages) {
      if (row.stage == stage) report({.phase = row.phase});
    }
  };
}

}  // namespace tessera
