#include "elementwise/byte_function.h"

#include <array>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace tessera::native {

namespace {

constexpr int64_t kBytes = 256;

bool is_constant_number(const ProgramOperand& operand) {
  return operand.port < 0 && static_cast<int64_t>(operand.elements.size()) == operand.element_bytes;
}

// The index of the only operand that is no number; nullopt unless it has one byte for each result.
std::optional<size_t> operand_of_bytes(const Program& text) {
  std::optional<size_t> found;
  for (size_t index = 0; index < text.operands.size(); ++index) {
    const ProgramOperand& operand = text.operands[index];
    if (is_constant_number(operand)) continue;
    const bool is_usable =
        operand.port >= 0 && operand.element_bytes == 1 && operand.dims == text.result.dims;
    if (found || !is_usable) return std::nullopt;
    found = index;
  }
  return found;
}

plugin::Buffer buffer_of(ByteTable& bytes, int32_t data_type, const int64_t* dims) {
  plugin::Buffer buffer = {};
  buffer.data = bytes.data();
  buffer.data_type = data_type;
  buffer.rank = 1;
  buffer.dims = dims;
  return buffer;
}

// The results for all bytes.
ByteTable all_results(Program text, size_t argument) {
  text.result = {text.result.data_type, {kBytes}};
  for (ProgramOperand& operand : text.operands) operand.dims = {1};
  text.operands[argument].dims = {kBytes};
  text.operands[argument].is_row_major = false;
  text.operands[argument].port = 0;
  const auto kernel = make_program_kernel(text, TESSERA_LAYOUT_DEFAULT);
  ByteTable arguments;
  std::iota(arguments.begin(), arguments.end(), uint8_t{0});
  ByteTable results = {};
  const plugin::Buffer input = buffer_of(arguments, text.result.data_type, &kBytes);
  const plugin::Buffer output = buffer_of(results, text.result.data_type, &kBytes);
  // One thread computes these few elements, and the context has no other service for a program.
  tessera_run_context state = {};
  state.struct_size = sizeof(state);
  state.threads = 1;
  plugin::RunContext context(&state);
  kernel->run(context, std::span(&input, 1), std::span(&output, 1));
  return results;
}

}  // namespace

std::optional<Program> table_program(const Program& text) {
  if (text.steps.size() < 2 || plugin::element_bytes(text.result.data_type) != 1) {
    return std::nullopt;
  }
  // A bool is a byte too, but not each byte is a bool.
  if (text.result.data_type == TESSERA_BOOL) return std::nullopt;
  const std::optional<size_t> argument = operand_of_bytes(text);
  if (!argument) return std::nullopt;
  try {
    Program table =
        table_program(text.result, std::make_shared<const ByteTable>(all_results(text, *argument)));
    table.operands = {text.operands[*argument]};
    table.steps[0].location = text.steps.back().location;
    return table;
  } catch (const plugin::Failure&) {
    return std::nullopt;  // it fails for some bytes, which need not occur
  }
}

Program table_program(const plugin::Type& result, std::shared_ptr<const ByteTable> table) {
  Program program;
  program.result = result;
  program.operands.push_back({.port = 0, .elements = {}, .element_bytes = 1, .dims = result.dims});
  ProgramStep step;
  step.loops = find_table_loops();
  step.to = {ValueRef::Kind::Result, 0};
  step.to_bytes = 1;
  step.parameters.table = table->data();
  program.steps.push_back(std::move(step));
  program.table = std::move(table);
  return program;
}

}  // namespace tessera::native
