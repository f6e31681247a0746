#include "infer/merge_types.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

using Outcome = MergedType::Outcome;

const Dim kBatch = Dim::symbol("batch");      // a symbol of a graph input
const Dim kFound = Dim::symbol("found(nz)");  // a symbol that no input determines
const Dim kOther = Dim::symbol("other");

Type floats(std::optional<Shape> shape = std::nullopt) {
  return Type::tensor(DataType::Float32, std::move(shape));
}

struct Case {
  const char* name;
  Type declared;
  Type inferred;
  Type merged;
  Outcome outcome = Outcome::Agrees;
};

const Case kCases[] = {
    {"nothing inferred", floats(Shape{2}), {}, floats(Shape{2})},
    {"nothing declared", {}, floats(Shape{2}), floats(Shape{2})},
    {"declared rank", floats(Shape{2, kOther}), floats(), floats(Shape{2, kOther})},
    {"inferred rank", floats(), floats(Shape{kBatch}), floats(Shape{kBatch})},
    {"declared element", floats(), Type::tensor(DataType::Undefined, Shape{2}), floats(Shape{2})},
    {"declared number", floats(Shape{7}), floats(Shape{kFound}), floats(Shape{7})},
    {"inferred number", floats(Shape{kOther}), floats(Shape{7}), floats(Shape{7})},
    {"an input's symbol stays", floats(Shape{1}), floats(Shape{kBatch}), floats(Shape{kBatch})},
    {"what derives from it stays", floats(Shape{4}), floats(Shape{multiply(kBatch, 4)}),
     floats(Shape{multiply(kBatch, 4)})},
    {"a word is whole", floats(Shape{4}), floats(Shape{Dim::symbol("batches")}), floats(Shape{4})},
    {"a digest stays", floats(Shape{4}), floats(Shape{Dim::symbol("~12ab")}),
     floats(Shape{Dim::symbol("~12ab")})},
    {"of two symbols the inferred", floats(Shape{kOther}), floats(Shape{kBatch}),
     floats(Shape{kBatch})},
    {"rank", floats(Shape{2}), floats(Shape{2, 1}), floats(Shape{2, 1}), Outcome::ShapeContradicts},
    {"number", floats(Shape{2, 3}), floats(Shape{kFound, 4}), floats(Shape{kFound, 4}),
     Outcome::ShapeContradicts},
    {"element", Type::tensor(DataType::Int64), floats(Shape{2}), floats(Shape{2}),
     Outcome::ElementContradicts},
    {"kind", Type::sequence(floats()), floats(), floats(), Outcome::ElementContradicts},
};

TEST(MergeTypes, TakesTheMorePreciseAndTellsContradictions) {
  for (const Case& row : kCases) {
    const MergedType merged = merge_types(row.declared, row.inferred, {"batch"});
    EXPECT_EQ(merged.outcome, row.outcome) << row.name;
    EXPECT_EQ(text(merged.type), text(row.merged)) << row.name;
  }
}

}  // namespace
}  // namespace tessera
