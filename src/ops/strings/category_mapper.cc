// CategoryMapper: strings to numbers, or numbers to strings.
// https://onnx.ai/onnx/operators/onnx_aionnxml_CategoryMapper.html
#include <string>

#include "ops/op.h"
#include "ops/strings/lookup_table.h"

namespace tessera::ops {
namespace {

LookUpTable table_of(const Node& node, DataType from) {
  const Attributes& attributes = node.attributes;
  Tensor numbers = tensor_of_list(attributes, "cats_int64s");
  Tensor words = tensor_of_list(attributes, "cats_strings");
  if (from == DataType::String) {
    return {std::move(words), std::move(numbers),
            Tensor::from<int64_t>(DataType::Int64, {}, {attributes.find_int("default_int64"), 1})};
  }
  return {std::move(numbers), std::move(words),
          Tensor::strings({}, {attributes.get_string("default_string")})};
}

void infer_mapping(InferContext& context) {
  const Attributes& attributes = context.node().attributes;
  const std::vector<int64_t>* numbers = attributes.find_ints("cats_int64s");
  const std::vector<std::string>* words = attributes.find_strings("cats_strings");
  const size_t number_count = numbers == nullptr ? 0 : numbers->size();
  const size_t word_count = words == nullptr ? 0 : words->size();
  if (number_count != word_count) {
    context.fail("expected as many elements of 'cats_int64s' as of 'cats_strings', found " +
                 std::to_string(number_count) + " and " + std::to_string(word_count));
  }
  const DataType from = context.element(0);
  const DataType to = from == DataType::Undefined ? DataType::Undefined
                      : from == DataType::String  ? DataType::Int64
                                                  : DataType::String;
  context.set_output(0, to, context.input(0).type.shape);
}

void run_mapping(const ValueCall& call) {
  const Tensor& input = call.inputs[0];
  const auto table = call.prepared<LookUpTable>([&] { return table_of(call.node, input.type()); });
  call.outputs[0] = table->look_up(input);
}

}  // namespace

std::vector<Op> category_mapper_ops() {
  constexpr TypeSet kCategoryTypes = {DataType::String, DataType::Int64};
  return {{.name = "CategoryMapper",
           .domain = "ai.onnx.ml",
           .versions = {1},
           .inputs = {{"X", "T1"}},
           .outputs = {{"Y", "T2"}},
           .type_variables = {{"T1", kCategoryTypes}, {"T2", kCategoryTypes}},
           .attributes = {{"cats_int64s", AttributeKind::Ints},
                          {"cats_strings", AttributeKind::Strings},
                          {"default_int64", AttributeKind::Int, int64_t{-1}},
                          {"default_string", AttributeKind::String, std::string("_Unused")}},
           .infer = infer_mapping,
           .value_kernel = run_mapping}};
}

}  // namespace tessera::ops
