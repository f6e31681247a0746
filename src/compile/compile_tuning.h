// The constants that decide which offers a bind asks for, and whether it keeps a startup plan.
#pragma once

#include <cstdint>

namespace tessera {

// What belongs here: times and ratios of src/compile that leave out work which would not pay. A
// test or a benchmark may change each in PlanOptions. Not here: how much an error message lists.
struct CompileTuning {
  // Kernels reach about a quarter of the peak speed of processors, so a node is assumed to take
  // this many times its bound. A larger ratio makes fewer graphs count as short.
  double seconds_over_bound = 4;
  // A graph that certainly takes less time than this gets no candidates that take long to build.
  // With a larger time, more graphs do without compiled regions, and bind sooner.
  double tiny_graph_seconds = 5e-4;
  // To share less work than this among threads is unlikely to pay, so a graph of such nodes only
  // gets candidates for one thread. Without prices, it must pay for certain; with prices, it is
  // measured whether it pays. With 20 us instead of 2, the first layer of a board game's network
  // was never tried on two threads, which take half the time.
  double min_shared_seconds_unpriced = 2e-5;
  double min_shared_seconds_priced = 2e-6;
  // The packs of a startup plan may have this many times the bytes of the weights. A larger ratio
  // keeps more memory for a plan that only serves the first runs.
  int64_t startup_max_pack_ratio = 2;
  // A plan for a family of shapes may compute by the reference, besides what plans for exact shapes
  // do, what the reference estimates to take this long. It overestimates small work. With a longer
  // time, more models have families, but their runs may take longer than with exact plans.
  double family_max_reference_seconds = 1e-3;
};

}  // namespace tessera
