// Shapes with ranges of sizes, such as tokens=1x8..128, from which `tessera bench` draws a shape
// for each request. Shapes without a range are in run_inputs.h.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "api/options/shape_ranges.h"
#include "cli/inputs/run_inputs.h"
#include "tessera/tessera.h"

namespace tessera::cli {

// A --shape argument with at least one range. A plain number is a range of that size alone.
struct RangedShape {
  std::string argument;  // as given
  std::string name;      // of the input, or #<index>
  std::vector<SizeRange> ranges;
};

// Whether the shape in a --shape argument has a range. Such an argument may be wrong.
bool has_range(const std::string& argument);

// Throws InvalidArgument if the argument cannot be parsed.
RangedShape parse_ranged_shape(const std::string& argument);

// Throws InvalidArgument if the argument has a range: the error of all commands that bind to one
// shape.
void refuse_range(const std::string& argument);

// Draws the shapes of requests. Dimensions to which the model gives one name get one size. Equal
// seeds give equal shapes on every platform.
class ShapeDraw {
 public:
  // `fixed` has the shapes of --shape arguments without a range, and `files` the inputs from files.
  // Throws InvalidArgument if a name is not one of `inputs`, if an input has another shape or a
  // file, if the model declares another rank or size, if the largest shape exceeds 64 bits, and if
  // two ranges of dimensions with one name differ.
  ShapeDraw(const std::vector<RangedShape>& shapes, const std::vector<ValueDescription>& inputs,
            NamedShapes fixed, const NamedTensors& files, uint64_t seed);

  // The ranges, by the name of the input.
  std::map<std::string, std::vector<SizeRange>> ranges() const;
  // The shapes of the next request: those that were drawn, and the fixed ones.
  NamedShapes next();

 private:
  struct DrawnDim {
    SizeRange range;
    std::string symbol;  // "" if the model declares none
  };

  void add(const RangedShape& shape, const ValueDescription& input);
  void check_names() const;

  std::map<std::string, std::vector<DrawnDim>> dims_;  // by the name of the input
  NamedShapes fixed_;
  std::mt19937_64 random_;
};

// Gives `inputs`, those of an executor, the shapes of another request: those of `shapes`; else the
// declared dimensions, where one without a size gets that of the dimensions with its name, if
// `shapes` gives these one size. Other dimensions stay unknown. `declared` are the model's inputs.
void set_shapes(const NamedShapes& shapes, const std::vector<ValueDescription>& declared,
                std::vector<ValueDescription>& inputs);

}  // namespace tessera::cli
