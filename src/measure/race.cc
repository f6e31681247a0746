#include "measure/race.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/errors/check.h"

namespace tessera::tuning {
namespace {

// The two-sided 95 % quantile of the normal distribution.
constexpr double kQuantile = 1.96;
// With fewer rounds, no interval covers 95 %.
constexpr size_t kMinRoundsOfInterval = 6;
static_assert(std::tuple_size_v<decltype(MeasureTuning::hopeless_ratios)> ==
              kMinRoundsOfInterval - 1);

double median(std::vector<double> numbers) {
  std::ranges::sort(numbers);
  const size_t count = numbers.size();
  return (numbers[(count - 1) / 2] + numbers[count / 2]) / 2;
}

// The number of ordered means of pairs that lie outside of the interval on each side.
size_t excluded_means(size_t rounds) {
  const auto count = static_cast<double>(rounds);
  const double middle = count * (count + 1) / 4;
  const double deviation = std::sqrt(count * (count + 1) * (2 * count + 1) / 24);
  return static_cast<size_t>(std::max(0.0, std::floor(middle - kQuantile * deviation)));
}

}  // namespace

PairedRatio summarise_ratios(std::span<const double> logarithms) {
  TESSERA_CHECK(!logarithms.empty(), "something was measured");
  std::vector<double> means;
  means.reserve(logarithms.size() * (logarithms.size() + 1) / 2);
  for (size_t left = 0; left < logarithms.size(); ++left) {
    for (size_t right = left; right < logarithms.size(); ++right) {
      means.push_back((logarithms[left] + logarithms[right]) / 2);
    }
  }
  std::ranges::sort(means);
  const size_t count = means.size();
  PairedRatio ratio{.middle = std::exp((means[(count - 1) / 2] + means[count / 2]) / 2)};
  if (logarithms.size() < kMinRoundsOfInterval) return ratio;
  const size_t excluded = std::max<size_t>(excluded_means(logarithms.size()), 1) - 1;
  ratio.low = std::exp(means[excluded]);
  ratio.high = std::exp(means[count - 1 - excluded]);
  return ratio;
}

Race::Race(std::vector<double> extra_seconds, const MeasureTuning& tuning)
    : tuning_(tuning),
      extra_seconds_(std::move(extra_seconds)),
      seconds_(extra_seconds_.size()),
      log_seconds_(extra_seconds_.size()),
      running_(extra_seconds_.size()) {
  TESSERA_CHECK(!running_.empty(), "a race has contenders");
  std::iota(running_.begin(), running_.end(), size_t{0});
}

void Race::add_round(std::span<const double> seconds) {
  TESSERA_CHECK(seconds.size() == running_.size(), "every contender ran");
  for (size_t position = 0; position < running_.size(); ++position) {
    const size_t contender = running_[position];
    seconds_[contender].push_back(seconds[position]);
    log_seconds_[contender].push_back(std::log(seconds[position] + extra_seconds_[contender]));
  }
  ++rounds_;
  const size_t first = leader();
  std::erase_if(running_, [&](size_t contender) { return !can_win(contender, first); });
}

PairedRatio Race::ratio(size_t contender, size_t other) const {
  const std::vector<double>& own = log_seconds_[contender];
  const std::vector<double>& others = log_seconds_[other];
  std::vector<double> logarithms;
  for (size_t round = 0; round < std::min(own.size(), others.size()); ++round) {
    logarithms.push_back(own[round] - others[round]);
  }
  return summarise_ratios(logarithms);
}

// The contender with the least median of its times relative to the medians of their rounds. The
// contenders in running() took part in every round.
size_t Race::leader() const {
  std::vector<double> middles;
  for (size_t round = 0; round < rounds_; ++round) {
    std::vector<double> all;
    for (const size_t contender : running_) all.push_back(log_seconds_[contender][round]);
    middles.push_back(median(std::move(all)));
  }
  return *std::ranges::min_element(running_, {}, [&](size_t contender) {
    std::vector<double> relative;
    for (size_t round = 0; round < rounds_; ++round) {
      relative.push_back(log_seconds_[contender][round] - middles[round]);
    }
    return median(std::move(relative));
  });
}

bool Race::can_win(size_t contender, size_t leader) const {
  if (contender == leader) return true;
  if (rounds_ >= kMinRoundsOfInterval) return ratio(contender, leader).low <= 1;
  const double limit = std::log(tuning_.hopeless_ratios[rounds_ - 1]);
  for (size_t round = 0; round < rounds_; ++round) {
    if (log_seconds_[contender][round] - log_seconds_[leader][round] <= limit) return true;
  }
  return false;
}

bool Race::is_decided() const {
  if (rounds_ == 0) return false;
  const size_t first = leader();
  return std::ranges::all_of(running_, [&](size_t contender) {
    return contender == first || ratio(contender, first).low > 1 - tuning_.equal_share;
  });
}

size_t Race::winner() const {
  TESSERA_CHECK(rounds_ > 0, "the contenders ran");
  const size_t first = leader();
  return *std::ranges::find_if(running_, [&](size_t contender) {
    if (contender == first) return true;
    const PairedRatio to_first = ratio(contender, first);
    return to_first.low <= 1 && to_first.middle <= 1 + tuning_.equal_share;
  });
}

std::vector<Timing> Race::timings() const {
  const size_t first = winner();
  const std::vector<double>& own = seconds_[first];
  std::vector<double> logarithms;
  for (const double seconds : own) logarithms.push_back(std::log(seconds));
  const PairedRatio spread = summarise_ratios(logarithms);
  const double seconds = median(own);
  const double total = seconds + extra_seconds_[first];
  std::vector<Timing> timings;
  for (size_t contender = 0; contender < seconds_.size(); ++contender) {
    Timing& timing = timings.emplace_back();
    timing.rounds = static_cast<int>(seconds_[contender].size());
    if (contender == first) {
      const auto [least, most] = std::ranges::minmax(own);
      const bool has_interval = spread.low > 0;
      timing.seconds = seconds;
      timing.low = std::min(seconds, has_interval ? spread.low : least);
      timing.high = std::max(seconds, has_interval ? spread.high : most);
      continue;
    }
    const PairedRatio to_first = ratio(contender, first);
    const auto without_extra = [&](double ratio) {
      return std::max(ratio * total - extra_seconds_[contender], 0.0);
    };
    timing.seconds = timing.low = timing.high = without_extra(to_first.middle);
    if (to_first.low > 0) {
      timing.low = without_extra(to_first.low);
      timing.high = without_extra(to_first.high);
    }
  }
  return timings;
}

}  // namespace tessera::tuning
