#include "print_reduction.h"

#include <algorithm>
#include <functional>

#include "print_operation.h"

namespace tessera::jit {

namespace {

// Combines two values of `lanes` lanes into one.
using Combine =
    std::function<std::string(const std::string& left, const std::string& right, int lanes)>;

// The result of a reduction over no elements, as a scalar.
std::string print_identity(IrWriter& writer, int32_t operation, int32_t data_type) {
  const IrType& type = ir_type(data_type);
  const bool is_32 = type.bytes == 4;
  const bool is_max = operation == TESSERA_EXPRESSION_REDUCE_MAX;
  uint64_t bits = 0;
  switch (operation) {
    case TESSERA_EXPRESSION_REDUCE_SUM:
      break;
    case TESSERA_EXPRESSION_REDUCE_PRODUCT:
      bits = !type.is_float ? 1 : is_32 ? 0x3f800000U : 0x3ff0000000000000U;
      break;
    default:
      if (type.is_float) {
        bits = is_32 ? (is_max ? 0xff800000U : 0x7f800000U)
                     : (is_max ? 0xfff0000000000000U : 0x7ff0000000000000U);
      } else {
        const uint64_t lowest = is_32 ? 0x80000000U : 0x8000000000000000U;
        bits = is_max ? lowest : lowest - 1;
      }
  }
  return print_constant(writer, data_type, bits);
}

// Combines two values into one.
std::string print_combination(IrWriter& writer, int32_t operation, int32_t data_type,
                              const std::string& left, const std::string& right, int lanes) {
  const IrType& type = ir_type(data_type);
  const std::string vector = of_lanes(type.value, lanes) + " ";
  if (operation == TESSERA_EXPRESSION_REDUCE_SUM) {
    return writer.value((type.is_float ? "fadd " : "add ") + vector + left + ", " + right);
  }
  if (operation == TESSERA_EXPRESSION_REDUCE_PRODUCT) {
    return writer.value((type.is_float ? "fmul " : "mul ") + vector + left + ", " + right);
  }
  const bool is_max = operation == TESSERA_EXPRESSION_REDUCE_MAX;
  // A comparison with NaN is false, so a NaN on the right is not taken.
  const std::string comparison =
      type.is_float ? (is_max ? "fcmp ogt " : "fcmp olt ") : (is_max ? "icmp sgt " : "icmp slt ");
  const std::string takes_right = writer.value(comparison + vector + right + ", " + left);
  return writer.value("select " + of_lanes("i1", lanes) + " " + takes_right + ", " + vector +
                      right + ", " + vector + left);
}

// `number`, or `other` where that is NaN.
std::string print_with_nan(IrWriter& writer, int32_t data_type, const std::string& number,
                           const std::string& other, int lanes) {
  const std::string vector = of_lanes(ir_type(data_type).value, lanes) + " ";
  const std::string is_nan = writer.value("fcmp uno " + vector + other + ", " + other);
  return writer.value("select " + of_lanes("i1", lanes) + " " + is_nan + ", " + vector + other +
                      ", " + vector + number);
}

std::string print_across_lanes(IrWriter& writer, int32_t data_type, const std::string& vector,
                               int lanes, const Combine& combine) {
  const std::string_view type = ir_type(data_type).value;
  std::string rest = vector;
  for (; lanes > 2; lanes /= 2) {
    const auto half = [&](int first) {
      std::string indices;
      for (int lane = 0; lane < lanes / 2; ++lane) {
        indices += (lane == 0 ? "i32 " : ", i32 ") + std::to_string(first + lane);
      }
      const std::string whole = of_lanes(type, lanes);
      return writer.value("shufflevector " + whole + " " + rest + ", " + whole + " poison, <" +
                          std::to_string(lanes / 2) + " x i32> <" + indices + ">");
    };
    const std::string low = half(0);
    rest = combine(low, half(lanes / 2), lanes / 2);
  }
  const std::string pair = "extractelement " + of_lanes(type, 2) + " " + rest + ", i64 ";
  const std::string left = writer.value(pair + "0");
  return combine(left, writer.value(pair + "1"), 1);
}

std::vector<std::string> load_all(IrWriter& writer, const Accumulator& accumulator,
                                  const std::vector<std::string>& variables) {
  const std::string type = of_lanes(ir_type(accumulator.data_type).value, accumulator.lanes);
  std::vector<std::string> values;
  for (const std::string& variable : variables) {
    values.push_back(writer.value("load " + type + ", ptr " + variable));
  }
  return values;
}

// Combines all lanes of all vectors by one operation.
std::string print_all(IrWriter& writer, const Accumulator& accumulator, int32_t operation,
                      std::vector<std::string> vectors) {
  const Combine combine = [&](const std::string& left, const std::string& right, int lanes) {
    return print_combination(writer, operation, accumulator.data_type, left, right, lanes);
  };
  // In pairs, so that few operations wait for each other.
  for (size_t count = vectors.size(); count > 1; count = (count + 1) / 2) {
    for (size_t pair = 0; pair < count / 2; ++pair) {
      vectors[pair] = combine(vectors[pair], vectors[count - 1 - pair], accumulator.lanes);
    }
  }
  return print_across_lanes(writer, accumulator.data_type, vectors[0], accumulator.lanes, combine);
}

// The totals, with their rests and the sums of the last blocks added.
std::vector<std::string> load_totals(IrWriter& writer, const Accumulator& accumulator) {
  std::vector<std::string> totals = load_all(writer, accumulator, accumulator.totals);
  const std::vector<std::string> rests = load_all(writer, accumulator, accumulator.rests);
  const std::vector<std::string> blocks = load_all(writer, accumulator, accumulator.blocks);
  const std::string vector =
      of_lanes(ir_type(accumulator.data_type).value, accumulator.lanes) + " ";
  // One more rounding each; a short row has no other.
  for (size_t index = 0; index < blocks.size(); ++index) {
    totals[index] = writer.value("fadd " + vector + totals[index] + ", " + blocks[index]);
  }
  for (size_t index = 0; index < rests.size(); ++index) {
    const std::string sum = writer.value("fadd " + vector + totals[index] + ", " + rests[index]);
    const std::string is_nan =
        writer.value("fcmp uno " + vector + rests[index] + ", " + rests[index]);
    totals[index] = writer.value("select " + of_lanes("i1", accumulator.lanes) + " " + is_nan +
                                 ", " + vector + totals[index] + ", " + vector + sum);
  }
  return totals;
}

// The rounding error of the addition `left` + `right` = `sum`.
std::string print_rounding(IrWriter& writer, const std::string& vector, const std::string& left,
                           const std::string& right, const std::string& sum) {
  const auto minus = [&](const std::string& one, const std::string& other) {
    return writer.value("fsub " + vector + one + ", " + other);
  };
  const std::string added = minus(sum, left);
  const std::string kept = minus(sum, added);
  const std::string of_left = minus(left, kept);
  return writer.value("fadd " + vector + of_left + ", " + minus(right, added));
}

// Sets a variable to after(its value), in the lanes of `mask` ("": in all).
template <class After>
void update(IrWriter& writer, const Accumulator& accumulator, const std::string& variable,
            const std::string& mask, const After& after) {
  const std::string type = of_lanes(ir_type(accumulator.data_type).value, accumulator.lanes);
  const std::string before = writer.value("load " + type + ", ptr " + variable);
  std::string value = after(before);
  if (!mask.empty()) {
    value = writer.value("select " + of_lanes("i1", accumulator.lanes) + " " + mask + ", " + type +
                         " " + value + ", " + type + " " + before);
  }
  writer.line("store " + type + " " + value + ", ptr " + variable);
}

void combine_into(IrWriter& writer, const Accumulator& accumulator, const std::string& variable,
                  const std::string& next, const std::string& mask) {
  update(writer, accumulator, variable, mask, [&](const std::string& before) {
    return print_combination(writer, accumulator.operation, accumulator.data_type, before, next,
                             accumulator.lanes);
  });
}

// Adds a vector to a total. If the total has a rest, adds the rounding error to the rest.
void add_to_total(IrWriter& writer, const Accumulator& accumulator, size_t vector,
                  const std::string& next, const std::string& mask) {
  if (accumulator.rests.empty()) {
    return combine_into(writer, accumulator, accumulator.totals[vector], next, mask);
  }
  const std::string type = of_lanes(ir_type(accumulator.data_type).value, accumulator.lanes) + " ";
  const std::string& total = accumulator.totals[vector];
  const std::string left = writer.value("load " + type + ", ptr " + total);
  const std::string sum = writer.value("fadd " + type + left + ", " + next);
  const std::string lost = print_rounding(writer, type, left, next, sum);
  update(writer, accumulator, total, mask,
         [&](const std::string&) -> const std::string& { return sum; });
  update(writer, accumulator, accumulator.rests[vector], mask, [&](const std::string& before) {
    return writer.value("fadd " + type + before + ", " + lost);
  });
}

bool reads_float64(const plugin::FusedGroup& group) {
  return std::ranges::any_of(group.instructions, [](const plugin::Instruction& instruction) {
    return instruction.operation == TESSERA_EXPRESSION_OPERAND &&
           instruction.data_type == TESSERA_FLOAT64;
  });
}

}  // namespace

Accumulator new_accumulator(IrWriter& writer, const plugin::FusedGroup& group, size_t instruction,
                            size_t vectors, int lanes) {
  const plugin::Instruction& given = group.instructions[instruction];
  const int32_t type_number = given.data_type;
  if (type_number != TESSERA_FLOAT32 && type_number != TESSERA_FLOAT64 &&
      type_number != TESSERA_INT32 && type_number != TESSERA_INT64) {
    throw plugin::Failure(TESSERA_UNSUPPORTED,
                          "compiled kernels do not have reductions of this type");
  }
  Accumulator accumulator;
  accumulator.instruction = instruction;
  accumulator.operation = given.operation;
  accumulator.data_type = given.data_type;
  accumulator.lanes = lanes;
  const IrType& element = ir_type(given.data_type);
  const std::string type = of_lanes(element.value, lanes);
  const auto add_variables = [&](std::vector<std::string>& variables, int32_t operation) {
    const std::string identity =
        writer.splat(element.value, print_identity(writer, operation, given.data_type), lanes);
    for (size_t vector = 0; vector < vectors; ++vector) {
      variables.push_back(writer.variable(type));
      writer.line("store " + type + " " + identity + ", ptr " + variables.back());
    }
  };
  add_variables(accumulator.totals, given.operation);
  if (element.is_float && given.operation >= TESSERA_EXPRESSION_REDUCE_MAX) {
    add_variables(accumulator.nans, TESSERA_EXPRESSION_REDUCE_SUM);
  }
  if (given.operation == TESSERA_EXPRESSION_REDUCE_SUM) {
    const bool is_float32 = type_number == TESSERA_FLOAT32;
    if (is_float32) add_variables(accumulator.blocks, TESSERA_EXPRESSION_REDUCE_SUM);
    if (is_float32 || (element.is_float && reads_float64(group)))
      add_variables(accumulator.rests, TESSERA_EXPRESSION_REDUCE_SUM);
  }
  return accumulator;
}

void print_accumulation(IrWriter& writer, const Accumulator& accumulator, size_t vector,
                        const std::string& next, const std::string& mask) {
  if (accumulator.blocks.empty()) {
    add_to_total(writer, accumulator, vector, next, mask);
  } else {
    combine_into(writer, accumulator, accumulator.blocks[vector], next, mask);
  }
  if (accumulator.nans.empty()) return;
  update(writer, accumulator, accumulator.nans[vector], mask, [&](const std::string& before) {
    return print_with_nan(writer, accumulator.data_type, before, next, accumulator.lanes);
  });
}

void print_block_end(IrWriter& writer, const Accumulator& accumulator) {
  if (accumulator.blocks.empty()) return;
  const std::string type = of_lanes(ir_type(accumulator.data_type).value, accumulator.lanes);
  const std::vector<std::string> blocks = load_all(writer, accumulator, accumulator.blocks);
  for (size_t vector = 0; vector < blocks.size(); ++vector) {
    add_to_total(writer, accumulator, vector, blocks[vector], "");
    writer.line("store " + type + " zeroinitializer, ptr " + accumulator.blocks[vector]);
  }
}

std::vector<std::string> print_totals(IrWriter& writer, const Accumulator& accumulator) {
  std::vector<std::string> totals = load_totals(writer, accumulator);
  const std::vector<std::string> nans = load_all(writer, accumulator, accumulator.nans);
  for (size_t vector = 0; vector < nans.size(); ++vector) {
    totals[vector] = print_with_nan(writer, accumulator.data_type, totals[vector], nans[vector],
                                    accumulator.lanes);
  }
  return totals;
}

std::string print_total(IrWriter& writer, const Accumulator& accumulator) {
  std::string total =
      print_all(writer, accumulator, accumulator.operation, load_totals(writer, accumulator));
  if (accumulator.nans.empty()) return total;
  const std::string nan = print_all(writer, accumulator, TESSERA_EXPRESSION_REDUCE_SUM,
                                    load_all(writer, accumulator, accumulator.nans));
  return print_with_nan(writer, accumulator.data_type, total, nan, 1);
}

}  // namespace tessera::jit
