#include "api/options/shape_ranges.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "graph/dim_names.h"
#include "tessera/error.h"

namespace tessera {
namespace {

constexpr std::string_view kRangeMark = "..";
constexpr char kStepMark = '/';

// If the largest inputs have so many times the elements of the smallest, kernels are chosen for
// several sizes. With a smaller number, more executors keep several plans; with a larger one, a
// choice serves sizes for which another is faster.
constexpr double kManySizes = 8;

std::optional<int64_t> parse_size(std::string_view text) {
  int64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  const bool is_size = error == std::errc() && end == text.data() + text.size() && size >= 0;
  return is_size ? std::optional(size) : std::nullopt;
}

// "8", "8..128", "32..256/32".
std::optional<SizeRange> parse_range(std::string_view text) {
  const size_t mark = text.find(kRangeMark);
  if (mark == std::string_view::npos) {
    const std::optional<int64_t> size = parse_size(text);
    return size ? std::optional(SizeRange{*size, *size}) : std::nullopt;
  }
  const size_t step_mark = std::min(text.find(kStepMark), text.size());
  const bool has_step = step_mark < text.size();
  const size_t high_begin = mark + kRangeMark.size();
  const std::optional<int64_t> low = parse_size(text.substr(0, mark));
  const std::optional<int64_t> high = parse_size(text.substr(high_begin, step_mark - high_begin));
  const std::optional<int64_t> step =
      has_step ? parse_size(text.substr(step_mark + 1)) : std::optional<int64_t>(1);
  if (!low || !high || !step || *step < 1 || *low > *high) return std::nullopt;
  return SizeRange{*low, *high - (*high - *low) % *step, *step};
}

// The size at this share of the way from the smallest to the largest one, in logarithms. It is at
// least 2 if the range has such sizes and is none of a single size: dimensions of 0 and 1
// broadcast, so plans for these are for nothing else.
int64_t size_at(const SizeRange& range, double share) {
  if (range.is_single() || range.high < 2 || share >= kLargest) return range.high;
  const double low = static_cast<double>(std::max<int64_t>(1, range.low));
  // The conversion is exact enough: sizes beyond 2^53 are no sizes of tensors.
  const double mean =
      std::exp2(std::lerp(std::log2(low), std::log2(static_cast<double>(range.high)), share));
  constexpr double kRounding = 1e-9;
  const auto wanted = std::clamp(static_cast<int64_t>(mean * (1 + kRounding)),
                                 std::max<int64_t>(2, range.low), range.high);
  const int64_t steps = (wanted - range.low + range.step - 1) / range.step;
  return std::min(range.low + steps * range.step, range.high);
}

// The elements of all inputs that have ranges, in the largest over those in the smallest sizes.
double ratio_of_elements(const BindOptions& options) {
  double low = 0;
  double high = 0;
  for (const auto& [input, ranges] : options.shape_ranges) {
    double of_low = 1;
    double of_high = 1;
    for (const SizeRange& range : ranges) {
      of_low *= static_cast<double>(size_at(range, 0));
      of_high *= static_cast<double>(range.high);
    }
    low += of_low;
    high += of_high;
  }
  return low > 0 ? high / low : 1;
}

[[noreturn]] void refuse(const std::string& input, const std::string& message) {
  throw Error(ErrorKind::InvalidArgument, "input '" + input + "'", message);
}

void check_range(const std::string& input, const SizeRange& range) {
  if (0 <= range.low && range.low <= range.high && range.step >= 1 &&
      (range.high - range.low) % range.step == 0) {
    return;
  }
  refuse(input,
         "expected a range from 0 or more, in steps of 1 or more, to at least as much, found " +
             std::to_string(range.low) + ".." + std::to_string(range.high) +
             (range.step == 1 ? "" : " in steps of " + std::to_string(range.step)));
}

// A size in place of a range is no mistake: a model may give one name to dimensions that differ.
void check_names(const Graph& loaded, const BindOptions& options) {
  std::map<std::string, SizeRange> by_name;
  for (const ValueId id : loaded.inputs) {
    const auto given = options.shape_ranges.find(loaded[id].name);
    const std::optional<Shape>& declared = loaded[id].type.shape;
    if (given == options.shape_ranges.end() || !declared) continue;
    for (size_t axis = 0; axis < declared->size(); ++axis) {
      const SizeRange& range = given->second[axis];
      const std::string name = name_of((*declared)[axis]);
      if (name.empty() || range.is_single()) continue;
      const SizeRange& first = by_name.emplace(name, range).first->second;
      if (first == range) continue;
      refuse(given->first, "expected sizes " + range_text(first) + " for dimension '" + name +
                               "', which another dimension of this name has, found " +
                               range_text(range));
    }
  }
}

}  // namespace

std::vector<SizeRange> parse_ranges(const std::string& where, std::string_view text) {
  std::vector<SizeRange> ranges;
  if (text == "scalar") return ranges;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('x', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    const std::optional<SizeRange> range = parse_range(part);
    if (!range) {
      throw Error(ErrorKind::InvalidArgument, where,
                  "expected sizes, or ranges LOW..HIGH of sizes with LOW at most HIGH, such as "
                  "1x8..128 or 1x32..256/32; found '" +
                      std::string(part) + "'");
    }
    ranges.push_back(*range);
    begin = end + 1;
  }
  return ranges;
}

std::string range_text(const SizeRange& range) {
  std::string low = std::to_string(range.low);
  if (range.is_single()) return low;
  const std::string step = range.step == 1 ? "" : kStepMark + std::to_string(range.step);
  return low + std::string(kRangeMark) + std::to_string(range.high) + step;
}

std::string ranges_text(std::span<const SizeRange> ranges) {
  std::string text;
  for (const SizeRange& range : ranges) text += (text.empty() ? "" : "x") + range_text(range);
  return text.empty() ? "scalar" : text;
}

bool contain(std::span<const SizeRange> ranges, std::span<const int64_t> dims) {
  return std::ranges::equal(ranges, dims, &SizeRange::contains);
}

BindOptions with_shapes_at(BindOptions options, double share) {
  for (const auto& [input, ranges] : options.shape_ranges) {
    const auto [shape, is_new] = options.shapes.try_emplace(input);
    if (!is_new) continue;
    std::ranges::transform(ranges, std::back_inserter(shape->second),
                           [&](const SizeRange& range) { return size_at(range, share); });
  }
  return options;
}

std::vector<double> other_shares(const BindOptions& options) {
  const double ratio = ratio_of_elements(options);
  if (ratio < kManySizes) return {};
  return {1.0 / 6, 5.0 / 6};
}

void check_ranges(const Graph& loaded, const BindOptions& options) {
  for (const auto& shapes : options.more_shapes) check_given_shapes(loaded, shapes);
  if (options.shape_ranges.empty()) return;
  if (options.run.fixed_shapes) {
    throw Error(ErrorKind::InvalidArgument, "fixed_shapes",
                "expected no ranges of sizes beside it, found some for input '" +
                    options.shape_ranges.begin()->first + "'");
  }
  BindOptions lowest;
  for (const auto& [input, ranges] : options.shape_ranges) {
    for (const SizeRange& range : ranges) check_range(input, range);
    if (options.shapes.contains(input)) {
      refuse(input, "expected either a shape or ranges of sizes, found both");
    }
    std::ranges::transform(ranges, std::back_inserter(lowest.shapes[input]), &SizeRange::low);
  }
  const InputShapes largest = with_shapes_at(options, kLargest).shapes;
  for (const ValueId id : loaded.inputs) {
    const auto given = options.shape_ranges.find(loaded[id].name);
    const std::optional<Shape>& declared = loaded[id].type.shape;
    if (given == options.shape_ranges.end() || !declared) continue;
    if (permits(*declared, lowest.shapes.at(given->first)) &&
        permits(*declared, largest.at(given->first))) {
      continue;
    }
    refuse(given->first, "the model declares " + text(loaded[id].type) +
                             ", but the ranges given are " + ranges_text(given->second));
  }
  check_given_shapes(loaded, lowest.shapes);
  check_given_shapes(loaded, largest);
  check_names(loaded, options);
}

}  // namespace tessera
