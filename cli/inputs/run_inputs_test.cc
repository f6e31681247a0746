#include "cli/inputs/run_inputs.h"

#include <filesystem>

#include "base/errors/error_test.h"
#include "base/files/temporary_folder_test.h"
#include "base/matchers_test.h"
#include "tessera/tensor_file.h"

namespace tessera::cli {
namespace {

ValueDescription input_of(const char* name, std::vector<Dimension> shape, const char* text) {
  ValueDescription input;
  input.name = name;
  input.type = DataType::Float32;
  input.shape = std::move(shape);
  input.text = text;
  return input;
}

Dimension number(int64_t value) { return {.value = value, .symbol = ""}; }
Dimension symbol(const char* name) { return {.value = std::nullopt, .symbol = name}; }

class RunInputs : public testing::Test {
 protected:
  std::string write(const char* name, DataType type, std::vector<int64_t> dims) {
    const std::filesystem::path file = folder_ / name;
    const std::string zeros(static_cast<size_t>(tensor_bytes(type, dims)), '\0');
    write_npy(file, Tensor::copy_of(type, std::move(dims), zeros.data(), zeros.size()));
    return file;
  }

  std::string refusal(const std::vector<std::string>& arguments, const NamedShapes& shapes = {}) {
    return error_of(ErrorKind::InvalidArgument, [&] { read_inputs(arguments, inputs_, shapes); });
  }

  std::vector<ValueDescription> inputs_ = {
      input_of("picture", {symbol("batch"), number(3)}, "float32 batchx3"),
      input_of("mask", {number(2)}, "float32 2")};
  const TemporaryFolder folder_;
};

TEST_F(RunInputs, FilesGiveTensorsAndShapes) {
  const std::string file = write("a=b.npy", DataType::Float32, {4, 3});
  EXPECT_THAT(refusal({"picture=" + file}), HasSubstr("has no such input"))
      << "the last sign separates";
  const std::string plain = write("a.npy", DataType::Float32, {4, 3});
  const NamedTensors tensors = read_inputs({"#0=" + plain}, inputs_, {});
  EXPECT_THAT(shapes_to_bind({{"mask", {2}}}, tensors),
              ElementsAre(testing::Pair("mask", ElementsAre(2)),
                          testing::Pair("picture", ElementsAre(4, 3))));
}

TEST_F(RunInputs, WhatDoesNotFitIsNamedWithBothShapes) {
  const std::string type = write("type.npy", DataType::Int64, {4, 3});
  const std::string rank = write("rank.npy", DataType::Float32, {3});
  const std::string size = write("size.npy", DataType::Float32, {4, 5});
  const std::string fine = write("fine.npy", DataType::Float32, {4, 3});
  EXPECT_THAT(refusal({"picture=" + type}),
              HasSubstr("input 'picture': expected float32 batchx3, found int64 4x3 in file"));
  EXPECT_THAT(refusal({"picture=" + rank}), HasSubstr("expected float32 batchx3, found float32 3"));
  EXPECT_THAT(refusal({"picture=" + size}), HasSubstr("found float32 4x5"));
  EXPECT_THAT(refusal({"picture=" + fine}, {{"picture", {1, 3}}}),
              HasSubstr("expected float32 1x3 (--shape), found float32 4x3"));
  EXPECT_THAT(refusal({"picture=" + fine, "#0=" + fine}), HasSubstr("expected one --input"));
  EXPECT_EQ(refusal({"picture=" + fine}), "");
}

TEST_F(RunInputs, AListHasOneFileForEachOfItsTensors) {
  ValueDescription list = input_of("list", {}, "sequence(float32 ?)");
  list.type = DataType::Sequence;
  list.shape.reset();
  inputs_.push_back(list);
  const std::string one = write("one.npy", DataType::Float32, {1});
  const std::string two = write("two.npy", DataType::Float32, {2});
  const NamedTensors tensors = read_inputs({"list=" + two, "#2=" + one}, inputs_, {});
  ASSERT_EQ(tensors.at("list").list().size(), 2U);
  EXPECT_THAT(tensors.at("list").list()[0].dims(), ElementsAre(2));
  EXPECT_THAT(tensors.at("list").list()[1].dims(), ElementsAre(1));
  EXPECT_THAT(shapes_to_bind({}, tensors), IsEmpty());
  EXPECT_THAT(read_inputs({"list=[]"}, inputs_, {}).at("list").list(), IsEmpty());
  EXPECT_THAT(error_of(ErrorKind::InvalidArgument,
                       [&] {
                         check_all_given(inputs_, {{"picture", Tensor(DataType::Float32, {1, 3})},
                                                   {"mask", Tensor(DataType::Float32, {2})}});
                       }),
              HasSubstr("once for each of its tensors, or 'list=[]' for an empty list"));
}

TEST_F(RunInputs, AnOptionalMayBeLeftOut) {
  inputs_ = {input_of("mask", {}, "optional(float32 2)")};
  inputs_[0].shape.reset();
  check_all_given(inputs_, {});
  NamedTensors none;
  add_random(inputs_, 1, none);
  EXPECT_THAT(none, IsEmpty());
  const std::string file = write("mask.npy", DataType::Float32, {2});
  EXPECT_THAT(read_inputs({"mask=" + file}, inputs_, {}).at("mask").dims(), ElementsAre(2));
}

TEST_F(RunInputs, OnlyWhatIsReadMustBeGiven) {
  inputs_[1].is_read = false;
  EXPECT_THROW(check_all_given(inputs_, {}), Error);
  check_all_given(inputs_, {{"picture", Tensor(DataType::Float32, {1, 3})}});
}

TEST_F(RunInputs, RandomFillsTheRest) {
  NamedTensors tensors = {{"picture", Tensor(DataType::Float32, {1, 3})}};
  const void* const given = tensors["picture"].data();
  add_random(inputs_, 1, tensors);
  EXPECT_EQ(tensors["picture"].data(), given);
  EXPECT_THAT(tensors["mask"].dims(), ElementsAre(2));
  NamedTensors none;
  EXPECT_THROW(add_random(inputs_, 1, none), Error) << "the picture's batch is unknown";
  inputs_[0].is_read = false;
  add_random(inputs_, 1, none);
  EXPECT_EQ(none.size(), 1U);
}

TEST_F(RunInputs, ShapesGoByNameOrIndex) {
  const NamedShapes shapes = parse_shapes({"#1=2", "picture=1x3"}, inputs_);
  EXPECT_THAT(shapes.at("picture"), ElementsAre(1, 3));
  EXPECT_THAT(shapes.at("mask"), ElementsAre(2));
  EXPECT_THROW(parse_shapes({"picture=1x3", "#0=1x3"}, inputs_), Error);
  EXPECT_THROW(parse_shapes({"picture=1xN"}, inputs_), Error);
  EXPECT_THROW(parse_shapes({"other=1"}, inputs_), Error);
}

TEST(ShapeSets, AreAsManyAsTheInputThatIsNamedMostOftenHas) {
  EXPECT_THAT(shape_sets({}), ElementsAre(IsEmpty()));
  EXPECT_THAT(shape_sets({"x=1x2"}), ElementsAre(ElementsAre("x=1x2")));
  EXPECT_THAT(shape_sets({"x=1", "mask=5", "x=2"}),
              ElementsAre(testing::UnorderedElementsAre("x=1", "mask=5"),
                          testing::UnorderedElementsAre("x=2", "mask=5")));
  EXPECT_THROW(shape_sets({"x=1", "x=2", "x=3", "y=1", "y=2"}), Error);
  EXPECT_THROW(shape_sets({"x"}), Error);
}

}  // namespace
}  // namespace tessera::cli
