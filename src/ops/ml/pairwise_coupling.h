// Probabilities of classes from those of pairs of classes: method 2 of T. Wu, C. Lin and R. Weng,
// "Probability estimates for multi-class classification by pairwise coupling" (2004), as in LIBSVM.
#pragma once

#include <cstddef>
#include <span>

namespace tessera::ops {

// The probability of the first class of a pair, whose decision value is `score`: J. Platt's sigmoid
// with the parameters `a` and `b`, at least 1e-7 away from 0 and 1.
double pair_probability(double score, double a, double b);

// How many numbers couple_pairs() needs as `scratch`.
size_t coupling_numbers(size_t classes);

// Sets the probability of each class. `pairs` has that of the first class of each pair (i, j), i <
// j, in order.
void couple_pairs(std::span<const double> pairs, std::span<double> probabilities,
                  std::span<double> scratch);

}  // namespace tessera::ops
