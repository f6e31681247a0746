#include "ops/detection/regions.h"

#include <string>

#include "ops/check_shape.h"

namespace tessera::ops {

void infer_regions(InferContext& context, int64_t numbers, const Dim& height, const Dim& width) {
  context.set_output(0, context.element(0));
  const Shape* input = context.shape(0);
  if (input != nullptr && input->size() != 4) {
    context.fail_input(0, "expected batch x channels x height x width, found " + text(*input));
  }
  const Shape* regions = context.shape(1);
  if (regions != nullptr &&
      (regions->size() != 2 || !can_be_equal({(*regions)[1]}, {Dim(numbers)}))) {
    context.fail_input(1, "expected regions of " + std::to_string(numbers) +
                              " numbers each, found shape " + text(*regions));
  }
  std::optional<Dim> count;
  if (regions != nullptr) count = (*regions)[0];
  if (const Shape* images = context.has_input(2) ? context.shape(2) : nullptr) {
    if (images->size() != 1 || (count && !can_be_equal(*images, {*count}))) {
      context.fail_input(2, "expected one index for each " +
                                (count ? "of " + count->text() + " regions" : "region") +
                                ", found shape " + text(*images));
    }
    if (!count || !count->is_known()) count = (*images)[0];
  }
  if (input == nullptr || !count) return;
  context.set_output(0, context.element(0), Shape{*count, (*input)[1], height, width});
}

int64_t positive_attribute(const InferContext& context, const char* name) {
  const int64_t value = context.node().attributes.get_int(name);
  if (value < 1) {
    context.fail("expected '" + std::string(name) + "' of at least 1, found " +
                 std::to_string(value));
  }
  return value;
}

int64_t checked_image(const KernelCall& call, int64_t region, int64_t image) {
  const int64_t images = call.inputs[0].dims[0];
  if (image < 0 || image >= images) {
    call.fail("expected region " + std::to_string(region) + " to be of an image in [0, " +
              std::to_string(images) + "), found " + std::to_string(image));
  }
  return image;
}

RegionSizes region_sizes(const KernelCall& call) {
  const auto input = call.inputs[0].dims;
  const auto output = call.outputs[0].dims;
  return {output[0], input[1], input[2], input[3], output[2], output[3]};
}

}  // namespace tessera::ops
