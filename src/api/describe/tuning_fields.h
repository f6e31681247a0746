// The fields of descriptions of what was measured, chosen and loaded from caches, with their texts;
// see described_field.h.
#pragma once

#include <cstddef>
#include <string_view>

#include "api/describe/described_field.h"
#include "measure/contender_name.h"
#include "tessera/bind_options.h"
#include "tessera/cache.h"
#include "tessera/descriptions.h"

namespace tessera {

// "not measured", "fine", "refused", "not built".
constexpr std::string_view name(Verdict verdict) {
  constexpr std::string_view kNames[] = {"not measured", "fine", "refused", "not built"};
  return kNames[static_cast<size_t>(verdict)];
}

template <>
inline constexpr auto kFields<MeasuredTime> = FieldList{
    {.name = "MeasuredTime",
     .json_titles = "Interval",
     .help = "A measured time. 19 of 20 other processes would measure a time between `low` and "
             "`high`."},
    field("seconds", "time_us", &MeasuredTime::seconds, "the lower quartile of the rounds"),
    field("low", "low_us", &MeasuredTime::low, "lower end of the interval",
          {.python_note = ", in seconds"}),
    field("high", "high_us", &MeasuredTime::high, "upper end of the interval",
          {.python_note = ", in seconds"}),
    hidden_field("rounds", &MeasuredTime::rounds,
                 "rounds in which it was measured; 0: it was scaled from the time for other "
                 "shapes"),
};

template <>
inline constexpr auto kFields<CandidateDescription> = FieldList{
    {.name = "CandidateDescription",
     .json_titles = "Candidate",
     .help = "A candidate: one way to compute a node or a group, with its price and verdict."},
    field("nodes", &CandidateDescription::nodes,
          "all nodes that it computes; compare prices only if these are equal"),
    field("op", &CandidateDescription::op, "its operators: `Conv+Relu`"),
    field("backend", &CandidateDescription::backend, "the backend that offers it"),
    field("algorithm", &CandidateDescription::algorithm, "how the backend computes it"),
    field("threads", "thread_count", &CandidateDescription::threads, "threads that it runs on"),
    field("inputs", &CandidateDescription::inputs, "values that it reads"),
    field("outputs", &CandidateDescription::outputs, "values that it writes"),
    field("is_chosen", &CandidateDescription::is_chosen, "the plan has it"),
    field("verdict", &CandidateDescription::verdict, "what measuring and checking it found",
          {.choices = "fine, refused, not measured, not built"}),
    field("refusal", "reason", &CandidateDescription::refusal,
          "why it may not be used; empty: it may be used"),
    field("time", &CandidateDescription::time,
          "measured time; null: it was not measured, or it may not be used"),
    ComputedKey{"round_count", "count",
                "rounds in which it was measured; 0 with a time: scaled from other shapes"},
    field("has_cold_weights", &CandidateDescription::has_cold_weights,
          "`time` is with weights that are not in the processor's caches"),
    field("price_seconds", "price_us", &CandidateDescription::price_seconds,
          "the price that the choice used: `time`, or an estimate"),
    ComputedKey{"margin",
                "one of `chosen`, `only_choice`, `as_good`, `behind`, `never`, `impossible`, "
                "`unknown`",
                "what would change the choice: `behind`, it would have to be faster by "
                "`behind_us`; `never`, `behind_us` exceeds its price; `as_good`, the difference is "
                "less than noise; `impossible`, no plan can use it; `only_choice`, every plan "
                "needs it; `unknown`, not computed (`--margins`)"},
    field("behind_seconds", "behind_us", &CandidateDescription::behind_seconds,
          "increase of the optimal price if this candidate is forced",
          {.python_note = "; infinity: no placement can use it; None: not computed "
                          "(bind(margin_search_seconds=...))",
           .json_note = "; null: not computed, or no placement can use it"}),
    field("ahead_seconds", "ahead_us", &CandidateDescription::ahead_seconds,
          "increase of the optimal price if this candidate is forbidden; 0 if it is not in the "
          "optimal placement",
          {.python_note = "; infinity: every placement needs it; None: not computed",
           .json_note = "; null: not computed, or every placement needs it"}),
    field("error", "relative_error", &CandidateDescription::error,
          "measured error, relative to the magnitude of what was summed",
          {.json_note = "; null: not a number", .kind = "number or null"}),
    field("tolerance", &CandidateDescription::tolerance, "maximum of `error` that is allowed"),
    field("build_seconds", "build_us", &CandidateDescription::build_seconds,
          "time to build its kernel"),
    field("workspace_bytes", &CandidateDescription::workspace_bytes,
          "scratch memory of its kernel, in the arena"),
    field("pack_bytes", &CandidateDescription::pack_bytes, "size of its packed weights"),
    field("library_bytes", &CandidateDescription::library_bytes,
          "memory that its library keeps internally"),
};

template <>
inline constexpr auto kFields<ConversionDescription> = FieldList{
    {.name = "ConversionDescription",
     .json_titles = "Conversion",
     .help = "A conversion from one layout to another, with its price for tensors of about "
             "`bytes`."},
    field("backend", &ConversionDescription::backend,
          "the backend that converts; empty: Tessera itself"),
    field("source", "from_layout", &ConversionDescription::from, "layout that it reads"),
    field("target", "to_layout", &ConversionDescription::to, "layout that it writes"),
    field("type", &ConversionDescription::type, "type of the elements: `float32`"),
    field("bytes", "size_bytes", &ConversionDescription::bytes, "approximate size of the tensor"),
    field("time", &ConversionDescription::time, "measured time, which is its price",
          {.json_note = "; null: it could not be measured", .kind = "Interval or null"}),
    ComputedKey{"round_count", "count", "rounds in which it was measured"},
    field("refusal", "reason", &ConversionDescription::refusal, "why it could not be measured"),
};

template <>
inline constexpr auto kFields<TuningQuote> = FieldList{
    {.name = "TuningQuote",
     .json_titles = "Quote",
     .help = "The time that measuring is expected to take, and its expected gain."},
    field("is_known", &TuningQuote::is_known,
          "a cache has the fastest plan, so nothing has to be measured"),
    field("candidates", "candidate_count", &TuningQuote::candidates,
          "candidates that will be measured"),
    field("seconds", "tuning_us", &TuningQuote::seconds, "time that measuring takes",
          {.python_note = ", at most tune_budget_seconds"}),
    field("run_seconds", "run_us", &TuningQuote::run_seconds,
          "time of a run of the plan without measurements, by estimates"),
    field("gain_low", &TuningQuote::gain_low,
          "the least share of a run that is likely to be saved, by what other models saved; null: "
          "fewer than three models were tuned on this machine"),
    field("gain_high", &TuningQuote::gain_high,
          "the greatest share of a run that is likely to be saved; null as `gain_low`"),
    field("runs", "run_count", &TuningQuote::runs,
          "runs that save as much time as measuring takes; null: not known, or nothing is saved"),
};

template <>
inline constexpr auto kFields<TuningDescription> = FieldList{
    {.name = "TuningDescription", .json_titles = "Tuning", .help = "The measurements of bind()."},
    field("measured", "measured_count", &TuningDescription::measured,
          "candidates and conversions that were measured"),
    field("known", "known_count", &TuningDescription::known,
          "candidates and conversions that had been measured before, or occur twice"),
    field("refused", "refused_count", &TuningDescription::refused,
          "how many of the measured ones were refused"),
    field("reused", "reused_count", &TuningDescription::reused,
          "prices of this graph that were known before measuring"),
    field("reused_seconds", "reused_us", &TuningDescription::reused_seconds,
          "minimum time that measuring those took"),
    field("offered", "offered_count", &TuningDescription::offered,
          "number of all candidates; those that cannot win are not measured"),
    field("is_stopped", &TuningDescription::is_stopped, "measuring ended early"),
    field("is_out_of_time", &TuningDescription::is_out_of_time,
          "measuring ended early because the time budget was spent",
          {.python_note = " (tune_budget_seconds)"}),
    field("seconds", "tuning_us", &TuningDescription::seconds, "total time"),
    field("peak_bytes", "peak_resident_bytes", &TuningDescription::peak_bytes,
          "sum of the peak resident memory of this process and of the measuring process"),
    hidden_field("phases", &TuningDescription::phases,
                 "seconds by activity: `build`, `check`, `time`, `race` and others"),
    ComputedKey{"phases", "list of Phase", "where the time went"},
    field("notes", &TuningDescription::notes, "remarks, a sentence each"),
    field("quote", &TuningDescription::quote,
          "what was expected before; null: nothing was measured, or the graph takes so little time "
          "that measuring it is over at once"),
    field("gain", &TuningDescription::gain,
          "share of a run that the fastest plan saves, compared with the plan without "
          "measurements; null: the two were not compared"),
};

template <>
inline constexpr auto kFields<ContenderDescription> = FieldList{
    {.name = "ContenderDescription",
     .json_titles = "Contender",
     .help = "A placement that was run as a whole, in turns with others."},
    hidden_field("name", &ContenderDescription::name,
                 "`kind`, `backend` and `round` in words: `in order`, `mylib alone, round 2`"),
    field("kind", "contender", &ContenderDescription::kind,
          "how it was found: `chosen`, the cheapest by the prices before whole plans ran; `known`, "
          "the plan of an earlier tuning; `solved`, the cheapest by the prices from those runs; "
          "`greedy`, by the same prices, but node by node; `alone`, the cheapest that uses other "
          "backends only where `backend` has no kernel; `unsplit`, the same in its largest groups",
          {.python_note = "; `in order`, without prices, as if nothing were measured",
           .json_note = "; `in_order`, without prices, as if nothing were measured",
           .choices = "chosen, known, solved, greedy, in order, alone, unsplit"}),
    field("backend", &ContenderDescription::backend,
          "the backend of `alone` and `unsplit`; empty for other kinds"),
    field("round", &ContenderDescription::round,
          "1, or the later round of runs whose prices it was found by"),
    ComputedKey{"is_chosen", "boolean", "it won"},
    hidden_field("seconds", &ContenderDescription::seconds, "time of a run"),
    hidden_field("low", &ContenderDescription::low,
                 "lower end of its 95 % confidence interval, in seconds"),
    hidden_field("high", &ContenderDescription::high, "upper end of the interval, in seconds"),
    ComputedKey{"time", "Interval", "of a run"},
};

template <>
inline constexpr auto kFields<TuneProgress> = FieldList{
    {.name = "TuneProgress", .help = "The progress of bind()."},
    field("what", &TuneProgress::what,
          "what is being done: `Conv+Relu mylib:winograd`; empty if there is nothing to name"),
    field("done", &TuneProgress::done, "finished items of `total`, in this phase"),
    field("total", &TuneProgress::total, "items that are known so far; 0: not known"),
    field("best_seconds", &TuneProgress::best_seconds,
          "the best time of the group that is measured; 0: none so far"),
    field("seconds_left", &TuneProgress::seconds_left,
          "estimated remaining time of the phase; null: not known"),
    field("phase", &TuneProgress::phase,
          "name of the phase: `measuring candidates`, `comparing whole plans`, `choosing a plan` "
          "and others"),
    field("seconds_allowed", &TuneProgress::seconds_allowed,
          "maximum time of the phase; null: no limit"),
    field("can_stop", &TuneProgress::can_stop,
          "bind() is measuring; the callback can end that by returning False"),
    field("may_grow", &TuneProgress::may_grow,
          "results may increase `total`, and thereby `seconds_left`"),
    field("quote", &TuneProgress::quote,
          "what is expected, when starting to measure; null in other phases"),
    field("contender", &TuneProgress::contender,
          "the contender that runs, without its times, when comparing whole plans; null in other "
          "phases"),
};

template <>
inline constexpr auto kFields<PlacementDescription> = FieldList{
    {.name = "PlacementDescription",
     .json_titles = "Placement",
     .help = "The quality of the chosen placement. Prices only count kernels and conversions.",
     .is_nullable = true},
    field("predicted_seconds", "predicted_us", &PlacementDescription::predicted_seconds,
          "price of the chosen placement, the sum of the prices of its steps, without build time"),
    field("isolated_seconds", "isolated_us", &PlacementDescription::isolated_seconds,
          "the same sum with the times of kernels that run alone"),
    field("lower_bound_seconds", "lower_bound_us", &PlacementDescription::lower_bound_seconds,
          "no placement has a lower price. The price is the time of a run; with "
          "optimize_for=`N-runs` "
          "it includes the Nth part of the time to build the kernels"),
    field("is_proven_optimal", &PlacementDescription::is_proven_optimal,
          "the solver found a placement that has the price `lower_bound_seconds`"),
    field("gap", &PlacementDescription::gap,
          "relative distance of the price from `lower_bound_seconds`: 0.02"),
    field("solve_seconds", "solve_us", &PlacementDescription::solve_seconds, "time of the solver"),
    field("build_seconds", "build_us", &PlacementDescription::build_seconds,
          "time to build the chosen kernels one after the other, as far as it was measured"),
    field("measured_seconds", "measured_us", &PlacementDescription::measured_seconds,
          "time of a run of the plan; null: none was timed"),
    hidden_field("contenders", &PlacementDescription::contenders,
                 "whole plans that were run against each other, the fastest first; empty: none "
                 "was run"),
    ComputedKey{"contenders", "list of Contender",
                "whole plans that were run against each other; the first was chosen"},
};

template <>
inline constexpr auto kFields<CacheTypeReport> = FieldList{
    {.name = "CacheTypeReport",
     .json_titles = "CachedType",
     .help = "The results that a bind loaded from caches or measured, for one library or for the "
             "plan."},
    field("type", &CacheTypeReport::type, "a backend's name, or `plan`"),
    field("origin", &CacheTypeReport::origin,
          "who made what was loaded: `found here` (by this process), `found by this user`, `found "
          "by somebody else` (kernels are checked before their results count); empty: nothing was "
          "loaded"),
    field("loaded", "loaded_count", &CacheTypeReport::loaded, "prices or plans that were loaded"),
    field("measured", "measured_count", &CacheTypeReport::measured,
          "prices or plans that were measured"),
    field("seconds_saved", "saved_us", &CacheTypeReport::seconds_saved,
          "time that it took to find out what was loaded"),
};

template <>
inline constexpr auto kFields<CacheReport> = FieldList{
    {.name = "CacheReport",
     .json_titles = "CacheAnswer, tessera cache why-miss",
     .help = "The use of caches by a bind with optimize."},
    field("is_hit", &CacheReport::is_hit, "a cache has the plan, and nothing has to be measured"),
    field("file", &CacheReport::file, "the file that was found; empty: none"),
    field("change", &CacheReport::change,
          "which libraries have changed since the plan was found; the plan runs while they are "
          "measured"),
    field("reason", &CacheReport::reason, "why it is not a hit"),
    field("types", &CacheReport::types, "one report for each library, and one for the plan"),
    hidden_field("fingerprint", &CacheReport::fingerprint,
                 "40 hexadecimal digits; empty without optimize"),
    hidden_field("ingredients", &CacheReport::ingredients,
                 "ingredients of the fingerprint, by name"),
    hidden_field("entry_ingredients", &CacheReport::entry_ingredients,
                 "ingredients of the plan's key, by name: shapes, options and others; the file has "
                 "many plans"),
    hidden_field("saved", &CacheReport::saved, "the file that was written; empty: none"),
    hidden_field("not_saved", &CacheReport::not_saved, "why nothing was written"),
};

}  // namespace tessera
