#include "place/improve_assignment.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "place/elimination_plan.h"
#include "place/factor_sum.h"
#include "place/reduction.h"

namespace tessera {
namespace {

// Of variables that are freed together; one size after the other.
constexpr int kPieces[] = {8, 24, 64};
// Of the largest table of a piece: larger pieces are halved.
constexpr double kPieceCells = 1 << 14;
// Sweeps that gain less of what is above the bound are the last ones.
constexpr double kLeastGain = 0.02;
constexpr int kMostSweeps = 20;
// What may be spent beyond the effort on an assignment without anything forbidden.
constexpr double kLastCells = 1e8;

size_t at(int index) { return static_cast<size_t>(index); }

class Improver {
 public:
  Improver(const CostNetwork& network, const NetworkEffort& effort, std::vector<int>& values)
      : network_(network),
        effort_(effort),
        values_(values),
        factors_of_(values.size()),
        is_free_(values.size(), false) {
    double most = 0;
    for (CostFactor& factor : network_.factors) {
      double highest = 0;
      for (const double cost : factor.costs) {
        if (cost != kForbidden) highest = std::max(highest, std::abs(cost));
      }
      most += highest;
      least_.push_back(*std::min_element(factor.costs.begin(), factor.costs.end()));
    }
    // Dearer than anything allowed, and yet a number, so that fewer of them are better.
    penalty_ = 1 + 4 * most;
    for (size_t index = 0; index < network_.factors.size(); ++index) {
      CostFactor& factor = network_.factors[index];
      for (double& cost : factor.costs) cost = std::min(cost, penalty_);
      for (const int variable : factor.variables) factors_of_[at(variable)].push_back(index);
    }
  }

  double run() {
    for (const int size : kPieces) {
      for (int sweep_count = 0; sweep_count < kMostSweeps; ++sweep_count) {
        const double above = above_ = above_least();
        if (is_over()) return work_cells_;
        if (above <= 0 || sweep(size) <= kLeastGain * above) break;
      }
    }
    return work_cells_;
  }

 private:
  // As long as something forbidden is assigned there is no answer yet.
  bool is_over() const {
    if (!effort_.is_over(work_cells_)) return false;
    return above_ < penalty_ || work_cells_ > effort_.work_cells + kLastCells;
  }

  double cost(size_t factor) const {
    return cost_of(network_.factors[factor], values_, network_.domain_sizes);
  }

  double above_least() const {
    double sum = 0;
    for (size_t factor = 0; factor < least_.size(); ++factor) sum += cost(factor) - least_[factor];
    return sum;
  }

  // Gives what was gained.
  double sweep(int size) {
    std::vector<double> above(values_.size(), 0);
    for (size_t factor = 0; factor < least_.size(); ++factor) {
      for (const int variable : network_.factors[factor].variables) {
        above[at(variable)] += cost(factor) - least_[factor];
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
      // Those in the middle are done with: around the others, another piece looks further.
      for (size_t place = 0; place < (piece.size() + 2) / 3; ++place)
        is_done[at(piece[place])] = true;
      const double gain = improve(piece);
      gained += gain;
      above_ -= gain;
    }
    return gained;
  }

  // The nearest of `centre`.
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
      // More than rounding.
      if (reduction.constant() >= before - 1e-12 * std::abs(before)) return 0;
      for (size_t place = 0; place < piece.size(); ++place)
        values_[at(piece[place])] = found[place];
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

  // The network of `piece` (ascending) alone, the other variables fixed.
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
  std::vector<double> least_;                    // by factor
  std::vector<bool> is_free_;                    // by variable
  double penalty_ = 0;                           // in place of kForbidden
  double above_ = 0;                             // what the assignment costs beyond least_
  double work_cells_ = 0;
};

}  // namespace

double improve_assignment(const CostNetwork& network, const NetworkEffort& effort,
                          std::vector<int>& values) {
  return Improver(network, effort, values).run();
}

}  // namespace tessera
