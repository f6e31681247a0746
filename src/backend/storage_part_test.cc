#include "backend/storage_part.h"

#include "base/matchers_test.h"

namespace tessera {
namespace {

StoredType stored_floats(std::vector<int64_t> dims, const std::string& layout = "row_major") {
  StoredType stored{{DataType::Float32, std::move(dims)}, layout, 0};
  stored.bytes = tensor_bytes(DataType::Float32, stored.type.dims);
  return stored;
}

TEST(DenseStrides, FollowTheLayout) {
  EXPECT_THAT(*dense_strides("row_major", {2, 3, 4}), ElementsAre(12, 4, 1));
  EXPECT_THAT(*dense_strides("nhwc", {2, 3, 4, 5}), ElementsAre(60, 1, 15, 3));
  EXPECT_THAT(*dense_strides("nhwc", {2, 3, 4}), ElementsAre(12, 1, 3));
  EXPECT_FALSE(dense_strides("nchw16c", {2, 3, 4, 5}));
  EXPECT_FALSE(dense_strides("mylib:tiled", {2, 3}));
}

TEST(SimplifiedParts, HaveStridesOnlyWhereTheySaySomething) {
  EXPECT_TRUE(simplified({8, {12, 4, 1}}, stored_floats({2, 3, 4})).is_dense());
  EXPECT_TRUE(simplified({8, {99, 4, 1}}, stored_floats({1, 3, 4})).is_dense());
  EXPECT_FALSE(simplified({8, {99, 4, 1}}, stored_floats({2, 3, 4})).is_dense());
}

TEST(ExplainIllegalPart, SaysWhatIsWrong) {
  const StoredType whole = stored_floats({2, 6});
  const struct {
    StoragePart part;
    StoredType tensor;
    std::string wrong;
  } cases[] = {
      {{0, {}}, stored_floats({12}), ""},
      {{44, {}}, stored_floats({1}), ""},
      {{48, {}}, stored_floats({0}), ""},
      {{8, {6, 1}}, stored_floats({2, 4}), ""},
      {{4, {}}, stored_floats({12}), "beyond the 48 bytes"},
      {{12, {6, 1}}, stored_floats({2, 4}), "beyond the 48 bytes"},
      {{52, {}}, stored_floats({0}), "beyond the 48 bytes"},
      {{-4, {}}, stored_floats({1}), "no element begins"},
      {{2, {}}, stored_floats({1}), "no element begins"},
      {{0, {1}}, stored_floats({2, 2}), "1 strides for 2 dimensions"},
      {{0, {0, 1}}, stored_floats({2, 2}), "below 1"},
      {{0, {int64_t{1} << 62, 1}}, stored_floats({4, 2}), "beyond"},
      {{0, {6, 1}}, stored_floats({2, 4}, "nchw8c"), "cannot locate"},
  };
  for (const auto& [part, tensor, wrong] : cases) {
    const std::string said = explain_illegal_part(part, tensor, whole);
    EXPECT_EQ(said.empty(), wrong.empty()) << said;
    EXPECT_THAT(said, HasSubstr(wrong));
  }
  StoredType halves = stored_floats({2});
  halves.type.element = DataType::Int32;
  EXPECT_THAT(explain_illegal_part({}, halves, whole), HasSubstr("element type"));
}

TEST(ExplainIncomplete, TellsGapsAndOverlaps) {
  const struct {
    std::vector<StoragePart> parts;
    std::vector<StoredType> tensors;
    std::string wrong;
  } cases[] = {
      {{{24, {}}, {0, {}}}, {stored_floats({1, 6}), stored_floats({1, 6})}, ""},
      {{{0, {}}, {20, {}}}, {stored_floats({1, 6}), stored_floats({7})}, "overlap at byte 20"},
      {{{0, {}}, {28, {}}}, {stored_floats({1, 6}), stored_floats({5})}, "leave out byte 24"},
      {{{0, {}}}, {stored_floats({1, 6})}, "leave out byte 24"},
      {{{0, {6, 1}}, {16, {6, 1}}}, {stored_floats({2, 4}), stored_floats({2, 2})}, ""},
      {{{0, {6, 1}}, {12, {6, 1}}},
       {stored_floats({2, 4}), stored_floats({2, 2})},
       "overlap at part 1"},
      {{{0, {6, 1}}, {20, {6, 1}}},
       {stored_floats({2, 4}), stored_floats({2, 1})},
       "leave something out"},
      {{{0, {6, 2}}, {20, {6, 1}}}, {stored_floats({2, 4}), stored_floats({2, 1})}, "no box"},
  };
  for (const auto& [parts, tensors, wrong] : cases) {
    const std::string said = explain_incomplete(parts, tensors, stored_floats({2, 6}));
    EXPECT_EQ(said.empty(), wrong.empty()) << said;
    EXPECT_THAT(said, HasSubstr(wrong));
  }
  // Channels are innermost in memory but not in the dimensions, so a slice of them is strided.
  const std::vector<int64_t> strides = {60, 1, 15, 3};
  EXPECT_EQ(
      explain_incomplete({{0, strides}, {8, strides}},
                         {stored_floats({2, 2, 4, 5}, "nhwc"), stored_floats({2, 1, 4, 5}, "nhwc")},
                         stored_floats({2, 3, 4, 5}, "nhwc")),
      "");
}

}  // namespace
}  // namespace tessera
