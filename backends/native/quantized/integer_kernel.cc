#include "quantized/integer_kernel.h"

#include <algorithm>
#include <utility>

#include "base/divide_up.h"
#include "quantized/dynamic_kernels.h"
#include "quantized/integer_epilogue.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::RunContext;

namespace {

constexpr int64_t kAlignment = 64;
constexpr auto kNumberBytes = static_cast<int64_t>(sizeof(float));

int64_t aligned(int64_t bytes) { return divide_up(bytes, kAlignment) * kAlignment; }

// How the workspace is divided.
struct WorkspaceParts {
  int64_t column_bytes = 0;
  int64_t packed_bytes = 0;
  int64_t left_bytes = 0;
  int64_t range_bytes = 0;
  int64_t product_bytes = 0;

  WorkspaceParts(const IntegerWork& work, const SizedProduct& sized, int64_t threads) {
    const RightPanels panels = right_panels(sized.right, work.loops);
    column_bytes = aligned(epilogue_bytes(panels));
    if (!work.is_packed) packed_bytes = aligned(panels.bytes());
    if (work.is_dynamic) {
      const IntegerProduct& product = sized.product;
      left_bytes = aligned(left_elements(product));
      range_bytes = aligned(find_scale_workspace(threads));
    }
    product_bytes =
        integer_product_workspace(sized.product, work.loops, work.is_left_signed, threads);
  }

  // Of a product with float32 numbers on the left, which are all of a tensor.
  static int64_t left_elements(const IntegerProduct& product) {
    int64_t matrices = product.has_batch ? 1 : product.count;
    for (size_t axis = 0; axis < product.batch.rank; ++axis) {
      if (product.batch.axes[axis].left != 0) matrices *= product.batch.axes[axis].dim;
    }
    return matrices * product.rows * product.depth;
  }

  int64_t total() const {
    return column_bytes + packed_bytes + left_bytes + range_bytes + product_bytes;
  }
};

class IntegerKernel : public plugin::Kernel {
 public:
  IntegerKernel(IntegerWork work, const SizedProduct& proposed, int64_t threads)
      : work_(std::move(work)),
        threads_(threads),
        workspace_bytes_(integer_workspace(work_, proposed, threads)) {}

  int64_t workspace_bytes() const override { return workspace_bytes_; }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const SizedProduct sized = work_.sized(inputs, outputs);
    const WorkspaceParts parts(work_, sized, threads_);
    auto* workspace = static_cast<uint8_t*>(context.workspace());
    const auto take = [&](int64_t bytes) { return std::exchange(workspace, workspace + bytes); };
    uint8_t* const columns = take(parts.column_bytes);
    uint8_t* const packed = take(parts.packed_bytes);
    uint8_t* const left = take(parts.left_bytes);
    uint8_t* const range = take(parts.range_bytes);
    IntegerOperands operands;
    operands.left = inputs[work_.ports.of(kLeft)].as<const uint8_t>();
    operands.right = inputs[work_.ports.of(kRight)].data;
    operands.to = outputs[0].data;
    operands.to_bytes = work_.to == SumsTo::Bytes ? 1 : kNumberBytes;
    operands.left_elements = {.is_signed = work_.is_left_signed, .zero = work_.left_zero(inputs)};
    float left_scale = work_.left_scale(inputs);
    if (work_.is_dynamic) {
      const Buffer& reals = inputs[work_.ports.of(kLeft)];
      const auto* const numbers = reals.as<const float>();
      const int64_t count = reals.elements();
      const DynamicScale scale = find_scale(context, threads_, numbers, count, range);
      quantize_bytes(context, scale, numbers, count, left);
      left_scale *= scale.scale;
      operands.left = left;
      operands.left_elements = {.is_signed = false, .zero = scale.zero};
    }
    if (!work_.is_packed) {
      context.parallel_for(sized.right.count, 1, [&](int64_t begin, int64_t end) {
        pack_right(sized.right, work_.loops, begin, end, operands.right, packed);
      });
      operands.right = packed;
    }
    const RightPanels panels = right_panels(sized.right, work_.loops);
    operands.epilogue =
        prepare_epilogue(work_, inputs, panels, operands.right,
                         work_.loops.left_zero(operands.left_elements), left_scale, columns);
    run_integer_product(context, sized.product, work_.loops, threads_, operands, workspace);
  }

 private:
  IntegerWork work_;
  int64_t threads_;
  int64_t workspace_bytes_;  // for the sizes of the proposal
};

}  // namespace

int64_t integer_workspace(const IntegerWork& work, const SizedProduct& sized, int64_t threads) {
  return WorkspaceParts(work, sized, threads).total();
}

std::unique_ptr<plugin::Kernel> make_integer_kernel(const IntegerWork& work,
                                                    const SizedProduct& proposed, int64_t threads) {
  return std::make_unique<IntegerKernel>(work, proposed, threads);
}

}  // namespace tessera::native
