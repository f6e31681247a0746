// QLinearSigmoid and QLinearLeakyRelu of com.microsoft: functions of single bytes, by a table.
#include <cmath>
#include <memory>
#include <utility>

#include "base/families.h"
#include "base/refusal.h"
#include "elementwise/byte_function.h"
#include "quantized/byte_tables.h"
#include "quantized/region.h"

namespace tessera::native {

using plugin::Node;
using plugin::ProposeContext;

namespace {

template <class Function>
std::shared_ptr<const ByteTable> table_of(const Quantization& from, const Quantization& to,
                                          const Function& function) {
  auto table = std::make_shared<ByteTable>();
  for (size_t byte = 0; byte < table->size(); ++byte) {
    const double real = function(real_of_byte(from, static_cast<uint8_t>(byte)));
    (*table)[byte] = byte_of_real(to, real);
  }
  return table;
}

void offer_function(ProposeContext& context, const Node& node) {
  const plugin::Type type = node.output(0).type();
  if (!type.is_known()) refuse("takes tensors of known shape only");
  const Quantization from = linear_quantization(node, type.data_type, 1, 2);
  const Quantization to = linear_quantization(node, type.data_type, 3, 4);
  const double alpha = node.attributes().get_float("alpha", 0.01F);
  const bool is_sigmoid = node.op() == "QLinearSigmoid";
  auto table = table_of(from, to, [&](double real) {
    if (is_sigmoid) return 1 / (1 + std::exp(-real));
    return real < 0 ? alpha * real : real;
  });
  plugin::Candidate candidate;
  candidate.nodes = {node.id()};
  candidate.algorithm = "byte_table";
  candidate.inputs.push_back({.value = node.input(0).id(), .layout = TESSERA_LAYOUT_ANY_DENSE});
  candidate.outputs.push_back({.value = node.output(0).id(),
                               .layout = TESSERA_LAYOUT_ANY_DENSE,
                               .requests = TESSERA_REQUEST_WRITE | TESSERA_REQUEST_IN_PLACE,
                               .in_place_input = 0});
  candidate.built_for.emplace();
  const auto bytes = static_cast<double>(type.elements());
  candidate.optimistic_seconds = context.optimistic_seconds(bytes, 2 * bytes);
  candidate.build = [program = table_program(type, std::move(table))](
                        const plugin::BuildOptions& options) {
    const bool is_dense = !options.dense_layout.empty();
    return make_program_kernel(program, is_dense ? options.dense_layout : TESSERA_LAYOUT_DEFAULT);
  };
  accept_unaligned(candidate);
  context.add(std::move(candidate));
}

}  // namespace

void propose_linear_functions(ProposeContext& context) {
  for_each_of_microsoft(context, {"QLinearSigmoid", "QLinearLeakyRelu"},
                        [&](const Node& node) { offer_function(context, node); });
}

}  // namespace tessera::native
