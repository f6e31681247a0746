// A sum that keeps what its additions lose to rounding.
#pragma once

#include <cmath>

namespace tessera::ops {

// Knuth's two-sum (The Art of Computer Programming 2, 4.2.2): the error of the result hardly grows
// with the number of elements.
class CompensatedSum {
 public:
  void add(double x) {
    const double total = total_ + x;
    const double part = total - total_;
    lost_ += (total_ - (total - part)) + (x - part);
    total_ = total;
  }
  void scale(double factor) {
    total_ *= factor;
    lost_ *= factor;
  }
  // Beyond infinity, nothing is lost, but NaN.
  double value() const { return std::isfinite(lost_) ? total_ + lost_ : total_; }

 private:
  double total_ = 0;
  double lost_ = 0;
};

}  // namespace tessera::ops
