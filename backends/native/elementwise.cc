// Functions of one variable, in whatever dense layout their input is.
#include <string>

#include "context.h"
#include "dense.h"
#include "elementwise_kernels.h"
#include "families.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Node;
using plugin::RunContext;
using plugin::Value;

namespace {

// Elements that one thread works on at least.
constexpr int64_t kGrain = 16 * 1024;

class UnaryKernel : public plugin::Kernel {
 public:
  UnaryKernel(UnaryLoop loop, DenseStorage storage, bool keeps_zero)
      : loop_(loop), storage_(storage), keeps_zero_(keeps_zero) {}

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const float* from = inputs[0].as<float>();
    float* to = outputs[0].as<float>();
    context.parallel_for(storage_.elements, kGrain, [&](int64_t begin, int64_t end) {
      loop_(from + begin, to + begin, end - begin);
    });
    if (!keeps_zero_) clear_padding(context, storage_.padding, to, sizeof(float));
  }

 private:
  UnaryLoop loop_;
  DenseStorage storage_;
  bool keeps_zero_;
};

void offer_unary(Context& context, const Node& node) {
  const plugin::Type type = node.input(0).type();
  if (type.data_type != TESSERA_FLOAT32 || !type.is_known()) {
    context.refuse(node.id(), "takes float32 tensors of known shape only");
    return;
  }
  plugin::Candidate candidate = plugin::candidate_for(node);
  candidate.inputs[0].layout = TESSERA_LAYOUT_ANY_DENSE;
  candidate.outputs[0].layout = TESSERA_LAYOUT_ANY_DENSE;
  candidate.outputs[0].requests = TESSERA_REQUEST_WRITE | TESSERA_REQUEST_IN_PLACE;
  candidate.outputs[0].in_place_input = 0;
  const auto elements = static_cast<double>(type.elements());
  candidate.optimistic_seconds = context.optimistic_seconds(elements, 2 * elements * sizeof(float));
  const bool keeps_zero = node.op() != "Exp";
  candidate.build = [loop = find_unary_loop(node.op()), type,
                     keeps_zero](const plugin::BuildOptions& options) {
    return std::make_unique<UnaryKernel>(loop, dense_storage(options.dense_layout, type),
                                         keeps_zero);
  };
  context.add(std::move(candidate));
}

}  // namespace

void propose_elementwise(Context& context) {
  context.for_each({"Abs", "Exp", "Neg"}, [&](const Node& node) { offer_unary(context, node); });
}

}  // namespace tessera::native
