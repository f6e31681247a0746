#include "infer/merge_types.h"

#include "ops/graph_test.h"

namespace tessera {
namespace {

using Outcome = MergedType::Outcome;

const Dim kBatch = Dim::symbol("batch");      // a symbol of a graph input
const Dim kFound = Dim::symbol("found(nz)");  // a symbol that no input determines
const Dim kOther = Dim::symbol("other");

struct Case {
  const char* name;
  Type declared;
  Type inferred;
  Type merged;
  Outcome outcome = Outcome::Agrees;
};

const Case kCases[] = {
    {"nothing inferred", float_type(Shape{2}), {}, float_type(Shape{2})},
    {"nothing declared", {}, float_type(Shape{2}), float_type(Shape{2})},
    {"declared rank", float_type(Shape{2, kOther}), float_type(), float_type(Shape{2, kOther})},
    {"inferred rank", float_type(), float_type(Shape{kBatch}), float_type(Shape{kBatch})},
    {"declared element", float_type(), Type::tensor(DataType::Undefined, Shape{2}),
     float_type(Shape{2})},
    {"declared number", float_type(Shape{7}), float_type(Shape{kFound}), float_type(Shape{7})},
    {"inferred number", float_type(Shape{kOther}), float_type(Shape{7}), float_type(Shape{7})},
    {"an input's symbol stays", float_type(Shape{1}), float_type(Shape{kBatch}),
     float_type(Shape{kBatch})},
    {"what derives from it stays", float_type(Shape{4}), float_type(Shape{multiply(kBatch, 4)}),
     float_type(Shape{multiply(kBatch, 4)})},
    {"a word is whole", float_type(Shape{4}), float_type(Shape{Dim::symbol("batches")}),
     float_type(Shape{4})},
    {"a digest stays", float_type(Shape{4}), float_type(Shape{Dim::symbol("~12ab")}),
     float_type(Shape{Dim::symbol("~12ab")})},
    {"of two symbols the inferred", float_type(Shape{kOther}), float_type(Shape{kBatch}),
     float_type(Shape{kBatch})},
    {"rank", float_type(Shape{2}), float_type(Shape{2, 1}), float_type(Shape{2, 1}),
     Outcome::ShapeContradicts},
    {"number", float_type(Shape{2, 3}), float_type(Shape{kFound, 4}), float_type(Shape{kFound, 4}),
     Outcome::ShapeContradicts},
    {"element", Type::tensor(DataType::Int64), float_type(Shape{2}), float_type(Shape{2}),
     Outcome::ElementContradicts},
    {"kind", Type::sequence(float_type()), float_type(), float_type(), Outcome::ElementContradicts},
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
