// Shapes of inputs whose sizes lie in ranges (BindOptions::shape_ranges).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "infer/specialise.h"
#include "tessera/bind_options.h"

namespace tessera {

// "1x8..128", "1x3x32..256/32". Throws InvalidArgument, at `where`, for what is no list of sizes
// and ranges.
std::vector<SizeRange> parse_ranges(const std::string& where, std::string_view text);
// What parse_ranges() reads.
std::string ranges_text(std::span<const SizeRange> ranges);
std::string range_text(const SizeRange& range);

// Whether the sizes lie in the ranges.
bool contain(std::span<const SizeRange> ranges, std::span<const int64_t> dims);

// The options with shapes in place of ranges: each size lies at this share of the way from the
// smallest to the largest one of its range, in logarithms. Inputs that have a shape keep it.
BindOptions with_shapes_at(BindOptions options, double share);
constexpr double kMiddle = 0.5;  // the geometric mean
constexpr double kLargest = 1;

// The shares, besides the middle, at which kernels are chosen as well: none if the ranges are
// narrow.
std::vector<double> other_shares(const BindOptions& options);

// Throws InvalidArgument if an input is unknown, has a shape and ranges, or ranges that contradict
// what the model declares; if a range is none, or dimensions with one name have two; and if the
// largest sizes exceed 64 bits.
void check_ranges(const Graph& loaded, const BindOptions& options);

}  // namespace tessera
