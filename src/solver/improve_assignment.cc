#include "solver/improve_assignment.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/containers/at.h"
#include "solver/elimination_plan.h"
#include "solver/factor_sum.h"
#include "solver/reduction.h"

namespace tessera {
namespace {

// Sizes of pieces, the sets of variables freed together; one size after the other.
constexpr int kPieces[] = {8, 24, 64};
// The limit for the largest table of a piece; larger pieces are halved.
constexpr double kPieceCells = 1 << 14;
// Stops after a sweep that gains less than this share of the gap to the bound.
constexpr double kMinGain = 0.02;
constexpr int kMaxSweeps = 20;
// The extra work allowed, beyond the effort, to find a feasible assignment.
constexpr double kLastCells = 1e8;

class Improver {
 public:
  Improver(const CostNetwork& network, const NetworkEffort& effort, std::vector<int>& values)
      : network_(network),
        effort_(effort),
        values_(values),
        factors_of_(values.size()),
        is_free_(values.size(), false) {
    double sum_of_highest = 0;
    for (CostFactor& factor : network_.factors) {
      double highest = 0;
      for (const double cost : factor.costs) {
        if (cost != kForbidden) highest = std::max(highest, std::abs(cost));
      }
      sum_of_highest += highest;
      minima_.push_back(*std::min_element(factor.costs.begin(), factor.costs.end()));
    }
    // More expensive than any allowed assignment, but finite, so that fewer forbidden factors are
    // better.
    penalty_ = 1 + 4 * sum_of_highest;
    for (size_t index = 0; index < network_.factors.size(); ++index) {
      CostFactor& factor = network_.factors[index];
      for (double& cost : factor.costs) cost = std::min(cost, penalty_);
      for (const int variable : factor.variables) factors_of_[at(variable)].push_back(index);
    }
  }

  double run() {
    for (const int size : kPieces) {
      for (int sweep_count = 0; sweep_count < kMaxSweeps; ++sweep_count) {
        const double above = above_ = above_minima();
        if (is_over()) return work_cells_;
        if (above <= 0 || sweep(size) <= kMinGain * above) break;
      }
    }
    return work_cells_;
  }

 private:
  // As long as a factor is forbidden, there is no answer yet.
  bool is_over() const {
    if (!effort_.is_over(work_cells_)) return false;
    return above_ < penalty_ || work_cells_ > effort_.work_cells + kLastCells;
  }

  double cost(size_t factor) const {
    return cost_of(network_.factors[factor], values_, network_.domain_sizes);
  }

  double above_minima() const {
    double sum = 0;
    for (size_t factor = 0; factor < minima_.size(); ++factor)
      sum += cost(factor) - minima_[factor];
    return sum;
  }

  // Returns the gain.
  double sweep(int size) {
    std::vector<double> above(values_.size(), 0);
    for (size_t factor = 0; factor < minima_.size(); ++factor) {
      for (const int variable : network_.factors[factor].variables) {
        above[at(variable)] += cost(factor) - minima_[factor];
      }
    }
    std::vector<int> centres(values_.size());
    std::iota(centres.begin(), centres.end(), 0);
    std::erase_if(centres, [&](int variable) { return above[at(variable)] <= 0; });
    std::stable_sort(centres.begin(), centres.end(),
                     [&](int left, int right) { return above[at(left)] > above[at(right)]; });
    std::vector<bool> is_done(values_.size(), false);
    double gained = 0;
    for (const int centre : centres) {
      if (is_done[at(centre)]) continue;
      if (is_over()) break;
      std::vector<int> piece = grow(centre, size);
      // The inner variables of the piece are finished; the outer ones get another piece around
      // them.
      for (size_t index = 0; index < (piece.size() + 2) / 3; ++index) {
        is_done[at(piece[index])] = true;
      }
      const double gain = improve(piece);
      gained += gain;
      above_ -= gain;
    }
    return gained;
  }

  // The variables nearest to `centre`.
  std::vector<int> grow(int centre, int size) {
    std::vector<int> piece = {centre};
    is_free_[at(centre)] = true;
    for (size_t next = 0; next < piece.size() && piece.size() < at(size); ++next) {
      for (const size_t factor : factors_of_[at(piece[next])]) {
        for (const int other : network_.factors[factor].variables) {
          if (is_free_[at(other)] || piece.size() >= at(size)) continue;
          is_free_[at(other)] = true;
          piece.push_back(other);
        }
      }
    }
    for (const int variable : piece) is_free_[at(variable)] = false;
    return piece;
  }

  double improve(const std::vector<int>& nearest) {
    for (size_t size = nearest.size();; size = (size + 1) / 2) {
      std::vector<int> piece(nearest.begin(), nearest.begin() + static_cast<int64_t>(size));
      std::sort(piece.begin(), piece.end());
      const std::vector<size_t> around = factors_around(piece);
      const CostNetwork part = cut_out(piece, around);
      if (size > 1 && !plan_elimination(part, kPieceCells).is_complete) continue;
      Reduction reduction(part);
      for (int next = reduction.next(); next >= 0; next = reduction.next()) {
        work_cells_ += reduction.eliminate(next);
      }
      std::vector<int> found(piece.size(), 0);
      reduction.complete(found);
      double before = 0;
      for (const size_t factor : around) before += cost(factor);
      // Ignores gains within rounding error.
      if (reduction.constant() >= before - 1e-12 * std::abs(before)) return 0;
      for (size_t index = 0; index < piece.size(); ++index) {
        values_[at(piece[index])] = found[index];
      }
      return before - reduction.constant();
    }
  }

  std::vector<size_t> factors_around(const std::vector<int>& piece) const {
    std::vector<size_t> around;
    for (const int variable : piece) {
      around.insert(around.end(), factors_of_[at(variable)].begin(),
                    factors_of_[at(variable)].end());
    }
    std::sort(around.begin(), around.end());
    around.erase(std::unique(around.begin(), around.end()), around.end());
    return around;
  }

  // The network of `piece` (ascending) with all other variables fixed.
  CostNetwork cut_out(const std::vector<int>& piece, const std::vector<size_t>& around) {
    CostNetwork part;
    for (const int variable : piece) {
      part.domain_sizes.push_back(network_.domain_sizes[at(variable)]);
      is_free_[at(variable)] = true;
    }
    for (const size_t index : around) {
      CostFactor factor = network_.factors[index];
      work_cells_ += static_cast<double>(factor.costs.size());
      const std::vector<int> variables = factor.variables;
      for (const int variable : variables) {
        if (is_free_[at(variable)]) continue;
        factor = restrict_factor(factor, variable, values_[at(variable)], network_.domain_sizes);
      }
      part.factors.push_back(std::move(factor));
    }
    for (CostFactor& factor : part.factors) {
      for (int& variable : factor.variables) {
        variable = static_cast<int>(std::lower_bound(piece.begin(), piece.end(), variable) -
                                    piece.begin());
      }
    }
    for (const int variable : piece) is_free_[at(variable)] = false;
    return part;
  }

  CostNetwork network_;
  const NetworkEffort& effort_;
  std::vector<int>& values_;
  std::vector<std::vector<size_t>> factors_of_;  // by variable
  std::vector<double> minima_;                   // by factor
  std::vector<bool> is_free_;                    // by variable
  double penalty_ = 0;                           // replaces kForbidden
  double above_ = 0;                             // cost of the assignment above the sum of minima
  double work_cells_ = 0;
};

}  // namespace

double improve_assignment(const CostNetwork& network, const NetworkEffort& effort,
                          std::vector<int>& values) {
  return Improver(network, effort, values).run();
}

}  // namespace tessera
