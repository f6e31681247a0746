#include "measure/quote.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "choose/choice.h"
#include "measure/tune_placement.h"

namespace tessera {
namespace {

// Fits into an int64_t.
constexpr double kMaxRuns = 1e12;

// The value below which the next one is with this probability, if it is like the sorted ones, of
// which there is at least one; at least the least and at most the largest of these.
double quantile(const std::vector<double>& sorted, double probability) {
  const auto count = static_cast<double>(sorted.size());
  const double position = std::clamp(probability * (count + 1) - 1, 0.0, count - 1);
  const auto lower = static_cast<size_t>(position);
  const size_t upper = std::min(lower + 1, sorted.size() - 1);
  return std::lerp(sorted[lower], sorted[upper], position - std::floor(position));
}

// The candidates that will be measured, by the work that they do.
int count_candidates(const TuningContext& context, bool measures_all, const MeasureTuning& tuning) {
  struct Work {
    std::set<tuning::CostKey> unknown;
    bool is_known = false;
  };
  std::map<std::string_view, Work> works;
  const std::vector<Candidate>& offered = context.task.offers.candidates;
  for (size_t index = 0; index < offered.size(); ++index) {
    const std::optional<tuning::CostKey>& key = context.prices.keys()[index];
    if (!key || !offered[index].has_kernel()) continue;
    Work& work = works[key->work];
    if (context.prices.is_measured(static_cast<int>(index))) {
      work.is_known = true;
    } else {
      work.unknown.insert(*key);
    }
  }
  int count = 0;
  for (const auto& [name, work] : works) {
    const auto unknown = static_cast<int>(work.unknown.size());
    if (measures_all) {
      count += unknown;
    } else if (!work.is_known) {
      count += std::min(unknown, tuning.quote_candidates_of_group);
    }
  }
  return count;
}

int64_t weight_bytes(const Graph& graph) {
  int64_t bytes = 0;
  for (const Value& value : graph.values) {
    if (value.is_constant()) bytes += value.constant.bytes();
  }
  return bytes;
}

// "3" for 3.4, "0.1" for 0.12.
std::string seconds_text(double seconds) {
  if (seconds >= 1) return std::to_string(std::lround(seconds));
  return "0." + std::to_string(std::clamp(std::lround(10 * seconds), 1L, 9L));
}

// "2,300" for 2345: two digits are all that a quote knows.
std::string rounded_text(int64_t count) {
  int64_t unit = 1;
  while (count / unit >= 100) unit *= 10;
  std::string digits = std::to_string((count + unit / 2) / unit * unit);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<size_t>(at), ",");
  }
  return digits;
}

std::string gain_text(const TuningQuote& quote, const MeasureTuning& tuning) {
  if (!quote.gain_low || !quote.gain_high) {
    return "gain unknown, as fewer than " + std::to_string(tuning.quote_min_gains) +
           " models were tuned here";
  }
  const std::string low = std::to_string(std::lround(100 * *quote.gain_low));
  const std::string high = std::to_string(std::lround(100 * *quote.gain_high));
  const std::string gain = "likely gain " + (low == high ? low : low + " to " + high) + " %";
  if (!quote.runs) return gain + ", may not pay back";
  return gain + ", pays back after " + rounded_text(*quote.runs) +
         (*quote.runs == 1 ? " run" : " runs");
}

}  // namespace

TuningQuote make_quote(const QuoteBasis& basis, const MeasureTuning& tuning) {
  TuningQuote quote{.candidates = basis.candidates, .run_seconds = basis.run_seconds};
  quote.seconds = tuning.quote_start_seconds + tuning.quote_candidate_seconds * basis.candidates +
                  tuning.quote_runs * basis.run_seconds +
                  tuning.quote_weight_byte_seconds * static_cast<double>(basis.weight_bytes);
  if (basis.budget_seconds > 0) quote.seconds = std::min(quote.seconds, basis.budget_seconds);
  if (basis.gains.size() < tuning.quote_min_gains) return quote;
  std::vector<double> gains = basis.gains;
  std::ranges::sort(gains);
  quote.gain_low = quantile(gains, tuning.quote_low_quantile);
  quote.gain_high = quantile(gains, tuning.quote_high_quantile);
  const double typical = quantile(gains, 0.5);
  if (typical < tuning.quote_min_gain || basis.run_seconds <= 0) return quote;
  const double runs = std::ceil(quote.seconds / (typical * basis.run_seconds));
  quote.runs = static_cast<int64_t>(std::min(runs, kMaxRuns));
  return quote;
}

TuningQuote quote_tuning(const TuningContext& context, const PricingOptions& options) {
  const MeasureTuning& tuning = options.tune.tuning;
  const ChoiceTask task(context.problem, context.prices.choice_prices(), {});
  const Placement unmeasured = in_order(task);
  const double run_seconds = price(task, unmeasured) - amortized_build_seconds(task, unmeasured);
  QuoteBasis basis{.candidates = count_candidates(context, options.measures_all, tuning),
                   .run_seconds = run_seconds,
                   .weight_bytes = weight_bytes(context.base.graph),
                   .budget_seconds = options.tune.budget_seconds};
  const bool is_limited = basis.budget_seconds <= 0 && !options.measures_all;
  if (is_limited && is_short(unmeasured, run_seconds, options))
    basis.budget_seconds = tuning.short_graph_budget_seconds;
  if (options.find_gains) basis.gains = options.find_gains();
  return make_quote(basis, tuning);
}

std::string quote_text(const TuningQuote& quote, const MeasureTuning& tuning) {
  const std::string seconds = seconds_text(quote.seconds) + " s";
  if (quote.is_known) {
    return "nothing to measure, a cache has the fastest plan; measuring again takes about " +
           seconds;
  }
  return "about " + seconds + ", " + gain_text(quote, tuning);
}

}  // namespace tessera
