#include "cli/commands/measure_steps.h"

#include <set>
#include <vector>

#include "api/options/argument_text.h"
#include "base/machine/processor.h"
#include "cli/output/quantities.h"
#include "cli/plans/plan_summary.h"
#include "cli/process/interrupt.h"

namespace tessera::cli {
namespace {

constexpr uint64_t kMaxRuns = 100'000;
// The number of runs in a turn, if several models take turns.
constexpr uint64_t kRunsOfTurn = 5;

// The times of one model's runs.
struct Times {
  std::vector<double> runs;
  std::vector<std::vector<double>> steps;
  std::vector<std::vector<double>> nested;
  std::vector<int64_t> nested_runs;  // in the newest run
};

void run_once(const MeasuredModel& model, Times& times) {
  const Clock::time_point start = Clock::now();
  model.bound->executor.run_any(model.bound->feeds);
  times.runs.push_back(microseconds(Clock::now() - start));
  const std::vector<StepRecord>& records = model.bound->executor.steps();
  const std::vector<std::optional<size_t>> indices = plan_indices(records, model.report->plan);
  for (size_t index = 0; index < records.size(); ++index) {
    if (indices[index]) {
      times.steps[*indices[index]].push_back(microseconds(records[index].duration));
    }
  }
  const std::vector<std::optional<size_t>> nested = nested_indices(records, model.report->plan);
  times.nested_runs.assign(times.nested.size(), 0);
  for (size_t index = 0; index < records.size(); ++index) {
    if (!nested[index]) continue;
    times.nested[*nested[index]].push_back(microseconds(records[index].duration));
    times.nested_runs[*nested[index]] = records[index].runs;
  }
}

double median_or_zero(const std::vector<double>& times) {
  return times.empty() ? 0 : percentile(times, 50);
}

}  // namespace

RunLimit parse_run_limit(const std::optional<std::string>& runs) {
  if (!runs) return {};
  return {parse_whole_number("--runs", *runs, 1, kMaxRuns), std::chrono::nanoseconds::max()};
}

ExplainReport describe_bound(const LoadedModel& loaded, const BoundModel& bound,
                             const ModelRequest& request) {
  ExplainReport report;
  report.model = loaded.description.file;
  report.version = version();
  report.processor = processor_name();
  report.threads = bound.executor.threads();
  report.plan = bound.executor.plan();
  std::set<std::string> used;
  for (const PlanStep& step : report.plan.steps) used.insert(step.backend);
  for (const BackendDescription& backend : request.backends().describe()) {
    if (used.contains(backend.name)) report.libraries[backend.name] = backend.version;
  }
  return report;
}

void measure_steps(std::span<const MeasuredModel> models, const RunLimit& limit,
                   Progress& progress) {
  const Interrupt interrupt;
  progress.show("running for the first time");
  std::vector<Times> times;
  for (const MeasuredModel& model : models) {
    model.bound->executor.record_steps(true);
    model.bound->executor.run_any(model.bound->feeds);
    // Nested graphs whose sizes only a run knows have plans now.
    model.report->plan.nested_steps = model.bound->executor.plan().nested_steps;
    Times& own = times.emplace_back();
    own.steps.resize(model.report->plan.steps.size());
    own.nested.resize(model.report->plan.nested_steps.size());
  }
  const Clock::time_point start = Clock::now();
  const auto count = static_cast<std::chrono::nanoseconds::rep>(models.size());
  const auto is_done = [&](const Times& known) {
    if (known.runs.empty()) return false;
    return interrupt.is_interrupted() || known.runs.size() >= limit.runs ||
           (Clock::now() - start) / count >= limit.time;
  };
  while (!is_done(times.back())) {
    for (size_t index = 0; index < models.size(); ++index) {
      if (models.size() > 1) models[index].bound->executor.run_any(models[index].bound->feeds);
      for (uint64_t run = 0; run < kRunsOfTurn && !is_done(times[index]); ++run) {
        run_once(models[index], times[index]);
      }
    }
    progress.show("timing steps, " +
                  count_text(static_cast<int64_t>(times.back().runs.size()), "run") +
                  " (Ctrl-C: stop)");
  }
  for (size_t index = 0; index < models.size(); ++index) {
    ExplainReport& report = *models[index].report;
    report.runs = static_cast<int64_t>(times[index].runs.size());
    report.run_us = percentile(times[index].runs, 50);
    for (const std::vector<double>& step : times[index].steps) {
      report.step_us.push_back(median_or_zero(step));
    }
    for (size_t step = 0; step < times[index].nested.size(); ++step) {
      report.nested_times.push_back(
          {times[index].nested_runs[step], median_or_zero(times[index].nested[step])});
    }
  }
}

}  // namespace tessera::cli
