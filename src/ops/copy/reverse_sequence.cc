// ReverseSequence: reverses the first elements along the time axis, as many as each entry of the
// batch has.
#include <cstring>
#include <string>

#include "ops/index_reader.h"
#include "ops/op.h"
#include "ops/shape_rules.h"

namespace tessera::ops {
namespace {

void infer_reverse_sequence(InferContext& context) {
  const int64_t batch_axis = context.node().attributes.get_int("batch_axis");
  const int64_t time_axis = context.node().attributes.get_int("time_axis");
  if (batch_axis + time_axis != 1 || (batch_axis != 0 && batch_axis != 1)) {
    context.fail("expected 0 and 1 as 'batch_axis' and 'time_axis', in any order, found " +
                 std::to_string(batch_axis) + " and " + std::to_string(time_axis));
  }
  check_one_dimension(context, 1);
  const Shape* shape = context.shape(0);
  const Shape* lengths = context.shape(1);
  if (shape != nullptr && shape->size() < 2) {
    context.fail_input(0, "expected rank 2 or more, found shape " + text(*shape));
  }
  if (shape != nullptr && lengths != nullptr) {
    const Dim& batch = (*shape)[static_cast<size_t>(batch_axis)];
    const Dim& found = lengths->front();
    if (batch.is_known() && found.is_known() && batch != found) {
      context.fail_input(1, "expected a length for each of " + batch.text() +
                                " entries of the batch, found " + found.text());
    }
  }
  context.set_output(0, context.element(0), context.input(0).type.shape);
}

void run_reverse_sequence(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  const bool is_batch_first = call.node.attributes.get_int("batch_axis") == 0;
  const int64_t batch = input.dims[is_batch_first ? 0 : 1];
  const int64_t time = input.dims[is_batch_first ? 1 : 0];
  for (int64_t entry = 0; entry < batch; ++entry) {
    const int64_t length = integer_at(call.inputs[1], entry);
    if (length < 0 || length > time) {
      call.fail("expected lengths in [0, " + std::to_string(time) + "], found " +
                std::to_string(length));
    }
  }
  if (input.elements == 0) return;
  const int64_t bytes = input.elements / (batch * time) * element_bytes(input.type);
  const int64_t batch_stride = is_batch_first ? time : 1;
  const int64_t time_stride = is_batch_first ? 1 : batch;
  const auto* source = static_cast<const char*>(input.data);
  auto* target = static_cast<char*>(call.outputs[0].data);
  call.pool.parallel_for(batch * time, 16384 / bytes + 1, [&](int64_t begin, int64_t end) {
    for (int64_t slice = begin; slice < end; ++slice) {
      const int64_t entry = slice / batch_stride % batch;
      const int64_t step = slice / time_stride % time;
      const int64_t length = integer_at(call.inputs[1], entry);
      const int64_t from = step < length ? length - 1 - step : step;
      std::memcpy(target + slice * bytes,
                  source + (entry * batch_stride + from * time_stride) * bytes,
                  static_cast<size_t>(bytes));
    }
  });
}

}  // namespace

std::vector<Op> reverse_sequence_ops() {
  return {{.name = "ReverseSequence",
           .versions = {10, 28},
           .inputs = {{"input", "T"}, {"sequence_lens", "tensor(int64)"}},
           .outputs = {{"Y", "T"}},
           .type_variables = {{"T", kAllTypesAndStrings}, {"tensor(int64)", kInt64Type}},
           .attributes = {{"batch_axis", AttributeKind::Int, int64_t{1}},
                          {"time_axis", AttributeKind::Int, int64_t{0}}},
           .infer = infer_reverse_sequence,
           .flops = no_flops,
           .kernel = run_reverse_sequence}};
}

}  // namespace tessera::ops
