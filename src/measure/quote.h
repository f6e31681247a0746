// Estimates the duration and the gain of tuning before it measures.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "measure/measure_tuning.h"
#include "measure/measurement_loop.h"
#include "measure/pricing_options.h"
#include "tessera/tessera.h"

namespace tessera {

// The numbers from which a quote is made.
struct QuoteBasis {
  int candidates = 0;         // that are to be measured
  double run_seconds = 0;     // of the choice without prices, predicted
  int64_t weight_bytes = 0;   // of all constants
  double budget_seconds = 0;  // of tuning; 0: no limit
  std::vector<double> gains;  // the shares of a run that tuning saved other models here
};

// Seconds: 1.5 s for the start and the races of whole plans, 8 ms for each candidate that is
// measured, 70 runs of the model, and 15 ms for each megabyte of weights; at most the budget. On 17
// networks of 2 to 200 ms on one thread, this was within a factor of 2 of the real time.
//
// Gain: the gains of models that were tuned on this machine, without the least and the largest
// tenth; for fewer than nine models, the whole range. So the next model gains as much with a
// probability of 80 % if there are nine or more, of 50 % if there are three (Hahn and Meeker,
// Statistical Intervals, chapter 5: order statistics as a prediction interval). Unknown for fewer
// than three. Estimates of unmeasured kernels do not help: their errors exceed what tuning gains.
//
// It pays back after so many runs that the median of these gains saves the seconds.
TuningQuote make_quote(const QuoteBasis& basis, const MeasureTuning& tuning = {});

// The quote for tune_placement() with the same arguments. The prices of `context` must be guesses.
// Counts two candidates for each different group of nodes of which no candidate was measured: on
// the networks above, 1.1 to 3.3 were measured. With `measures_all`, it counts all candidates.
TuningQuote quote_tuning(const TuningContext& context, const PricingOptions& options);

// "about 15 s, likely gain 15 to 25 %, pays back after 2,000 runs".
std::string quote_text(const TuningQuote& quote, const MeasureTuning& tuning = {});

}  // namespace tessera
