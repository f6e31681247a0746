// The constants that decide how long tuning measures, what it measures, and when it stops.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tessera {

// What belongs here: limits, shares, ratios and counts of src/measure that trade the time of tuning
// for the speed or the certainty of its result. A test or a benchmark may change each in
// tuning::TuneOptions. Not here: constants of a formula, such as the quantiles of an interval,
// guards against overflow, and what a user sets (TuneOptions). docs/decisions/0015 has the
// experiments behind many of these values.
struct MeasureTuning {
  // --- Which candidates are measured (measurement_loop.h, tune.h)

  // Candidates for the same nodes are measured together with the chosen one if their price is at
  // most this many times its price. A larger ratio measures more candidates that hardly win.
  double competitor_ratio = 1.05;
  // From one choice to the next, the number of groups that are measured of one family grows by this
  // factor. The first groups tell much about the others, so more is wasteful; but each choice takes
  // time (0.1 s for DenseNet), so less is slow.
  double family_growth = 1.3;
  // Measuring ends if the choice can become faster by this share of a run at most, and by
  // `gain_per_second` more for each second that tuning has taken. Larger shares end it sooner:
  // without them, DenseNet spent 30 s of 60 on gains below 5 %.
  double little_gain = 0.01;
  double gain_per_second = 0.005;
  // A graph with longer runs than this may spend more seconds in proportion before the same gain
  // counts as little. A larger value ends measuring sooner for such graphs.
  double typical_run_seconds = 0.1;
  // From this number of candidates and conversions on, the speed of the processor is measured for
  // the bounds. For fewer, that takes longer than tighter bounds save.
  size_t candidates_to_measure_speed = 40;
  // A time below this share of the bound is noted as an anomaly: the fastest algorithm, Winograd's
  // F(4x4), needs a quarter of the operations. It changes only the note.
  double anomalous_bound_share = 0.25;
  // Measuring may keep 1 / `available_memory_divisor` of the available memory for captured values
  // and buffers, because other code needs memory, too. A larger divisor makes more reference runs.
  int64_t available_memory_divisor = 4;
  // A group is not measured if this many copies of its values and weights exceed the available
  // memory: one is shared with the worker, the others are in buffers and packs of candidates there.
  int64_t group_copies = 3;

  // --- How long a kernel is timed (measure_group.h)

  // The number of rounds of a candidate that is not far behind, and the maximum number. More rounds
  // narrow the interval of its time.
  int kernel_min_rounds = 5;
  int kernel_max_rounds = 30;
  // After `rounds` rounds, a candidate that is `times` slower than the best one is dropped. The
  // factor falls, because a few disturbed rounds can make a good candidate look slow.
  struct FarBehind {
    int rounds = 0;
    double times = 0;
  };
  std::array<FarBehind, 3> kernel_far_behind = {{{1, 1.7}, {2, 1.4}, {3, 1.2}}};
  // An interval whose half is this share of the time, apart from the variation between processes,
  // needs no more rounds. A smaller share takes more rounds.
  double kernel_narrow_width = 0.05;
  // After the minimum number of rounds, a candidate gets no more if all of them took this long,
  // including overhead. This limits the time for kernels whose times vary.
  double kernel_rounds_seconds = 0.02;
  // After this time, even fewer rounds suffice, because the interval of a slow candidate stays wide
  // anyway.
  double kernel_max_seconds = 0.1;
  // A round of a kernel below the first time is the fastest of three runs, below the second time of
  // two, else one run: disturbances only slow down, and runs of short kernels cost little.
  double three_runs_below_seconds = 1e-4;
  double two_runs_below_seconds = 1e-3;
  // If several threads take longer than this for products, candidates for one thread are skipped:
  // they cannot win by saving the cost of starting threads. (The steps of a recurrence are short,
  // however many there are.)
  double long_for_one_thread_seconds = 5e-4;

  // --- How long plans are run (plan_trials.h, time_plans.h)

  // The seconds for each plan, and the minimum and maximum number of its runs or rounds. More of
  // them find smaller differences.
  double plan_seconds = 0.15;
  int plan_min_runs = 6;
  int plan_max_runs = 60;
  // The seconds for each plan of a short graph: its whole tuning takes half a second.
  double short_plan_seconds = 0.005;
  // A plan gets at most this share of the time that is left, so that others can run, too.
  double plan_share_of_time_left = 0.25;
  // The seconds and runs for the times of steps in context. They are few because such times only
  // choose what is raced.
  double recording_seconds = 0.06;
  int recording_min_runs = 2;
  // Of recorded runs, the faster half counts, but at least this many runs if there are so many: the
  // mean of fewer says little.
  size_t recording_min_fast_runs = 3;
  // In a turn of a race, one run loads the caches. Then `turn_min_runs` runs are timed, and more,
  // up to `turn_max_runs`, until they take `turn_seconds`. More runs make a turn less noisy.
  size_t turn_min_runs = 3;
  size_t turn_max_runs = 31;
  double turn_seconds = 1e-3;
  // Only one run is timed in a turn if a run takes longer than this. A smaller value makes turns of
  // long plans cheaper, and noisier.
  double turn_of_one_timed_run_seconds = 4e-3;
  // The first run is the whole turn if it takes longer than this: such a plan must load most of its
  // weights in each run anyway.
  double turn_of_one_run_seconds = 0.02;
  // Plans that take longer than this run only `very_long_plan_runs` times, as often as is necessary
  // to notice disturbances. A larger value spends more time on long plans.
  double very_long_plan_seconds = 0.05;
  int very_long_plan_runs = 3;
  // The minimum number of rounds in a race of other plans. Fewer let a disturbance decide.
  int race_min_rounds = 5;
  // The time limit of a race grows with the number of plans up to this one, because most plans drop
  // out early.
  size_t race_fully_timed_plans = 3;

  // --- Who wins a race (race.h)

  // Plans that differ by less than this share count as equally fast, and the first one wins. A
  // smaller share takes more rounds, for a gain that is too small to matter.
  double equal_share = 0.005;
  // By number of rounds so far: a plan that was slower than the leader by this factor in each of
  // them drops out. Later, the interval decides. Smaller factors save rounds, and may drop a plan
  // that was only disturbed.
  std::array<double, 5> hopeless_ratios = {4, 1.25, 1.12, 1.07, 1.04};

  // --- Which plans are raced (run_off.h)

  // Contenders whose price exceeds that of the first by this factor are not run, except for the
  // choice without prices. Prices err by less, so a larger factor mostly adds runs.
  double contender_max_price_ratio = 1.35;
  // For the plan of a backend alone, candidates are measured only while the lower bound of its
  // price is within this factor of the first contender's. A larger one measures more candidates.
  double alone_max_bound_ratio = 1;
  // Limit on the time to measure the plan of each backend alone: this share of the time spent
  // before, or this many seconds if that is more. Users compare with the best single library.
  double alone_share = 0.1;
  double alone_seconds = 1;
  // The choice without prices is made at most this often, because refusals may change it. Each time
  // takes another measurement.
  int in_order_max_trials = 5;
  // Plans within this factor of the fastest, at most `max_finalists`, are compared more closely, in
  // at most `final_rounds` rounds. Larger values find a faster plan now and then, and take longer.
  double finalist_max_ratio = 1.06;
  size_t max_finalists = 3;
  int final_rounds = 4;
  // Another round follows only if the newest winner takes at most this share of the time of the
  // previous one. A larger share continues for smaller gains.
  double final_round_gain = 0.99;
  // No round of the finals begins after this share of the time spent before, or after this many
  // seconds if that is more. So finals are a small part of tuning.
  double finals_share = 0.1;
  double finals_seconds = 2;
  // A recording of the winner is repeated, at most `max_recordings` times, if its runs are slower
  // than those of the race by this factor, because then other processes disturbed it.
  double recording_max_ratio = 1.05;
  int max_recordings = 2;

  // --- How tuning divides its time (tune_placement.h)

  // A graph that takes less than this is short: it gets `short_graph_budget_seconds` at most,
  // because programs may meet many. With 0.1 s, many candidates of small graphs stayed unmeasured.
  double short_graph_seconds = 2e-4;
  double short_graph_budget_seconds = 0.5;
  // How often the plan is timed in context and chosen again before the race. Each round takes a
  // recording and a choice.
  int context_rounds = 2;
  // The share of the remaining time that is reserved for running whole plans, so that the fastest
  // of the candidates known by then is found. A larger share leaves less for candidates.
  double running_share = 0.2;
  // Limit on the time to measure candidates of a startup plan, as a share of the time spent before:
  // such a plan only serves the first runs.
  double startup_share = 0.08;
  // The seconds that a startup plan must save. If a plan is built faster than this, none is
  // searched.
  double startup_min_saved_seconds = 0.02;

  // --- Waiting until other processes compute less (quiet.h)

  // The shortest time over which the load by others can be measured well; loads are read that often
  // while waiting.
  double load_window_seconds = 0.06;
  // Others may use this part of a processor that is needed. A smaller part repeats more
  // measurements.
  double max_disturbance_processors = 0.25;
  // The longest wait in seconds, because programs often compute in bursts of a second or two, and
  // the shortest in windows, because one reading is not enough.
  double max_wait_seconds = 2.5;
  double min_wait_windows = 2;
  // The share of all time that may be lost by waiting and repeating: as much as what counts.
  double max_lost_share = 0.5;
  // After this many waits in a row without success, the machine counts as always busy.
  int max_failed_waits = 2;
  // A wait takes at most this share of the time that is left, so that a budget is not spent by it.
  double wait_share_of_time_left = 0.25;
  // A smaller budget allows no waiting, and no reading of loads, which takes a part of the budget.
  double min_budget_to_wait_seconds = 0.5;

  // --- The quote before measuring (quote.h)

  // The expected seconds: for the start and the races of whole plans, for each candidate that is
  // measured, and for each byte of weights; and the number of runs of the model. Fitted to 17
  // networks of 2 to 200 ms on one thread. They change only the quote.
  double quote_start_seconds = 1.5;
  double quote_candidate_seconds = 0.008;
  double quote_weight_byte_seconds = 0.015 / 1e6;
  double quote_runs = 70;
  // The number of candidates that are expected to be measured for each different group of nodes: on
  // the same networks, 1.1 to 3.3 were.
  int quote_candidates_of_group = 2;
  // The gain is unknown if fewer models than this were tuned here.
  size_t quote_min_gains = 3;
  // The probabilities between which the quoted range of gains lies: all but the least and the
  // largest tenth.
  double quote_low_quantile = 0.1;
  double quote_high_quantile = 0.9;
  // A smaller typical gain, as a share of a run, does not pay, so no number of runs is quoted.
  double quote_min_gain = 0.005;
};

}  // namespace tessera
