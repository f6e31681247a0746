#include "fused_peak.h"

#include <algorithm>
#include <array>
#include <map>

#include "ir_writer.h"
#include "print_llvm.h"
#include "print_operation.h"

namespace tessera::bench {
namespace {

using jit::IrType;
using jit::IrWriter;
using plugin::FusedGroup;
using plugin::Instruction;

// Vectors that take turns in each type. Operations on floats take about four cycles, a division
// more than ten, and up to four can begin in a cycle.
size_t chain_count(int32_t type) { return jit::ir_type(type).is_float ? 16 : 6; }
// Iterations are long enough that the loop costs nothing.
constexpr int kFewestOperations = 96;

bool is_free(const Instruction& instruction) {
  return instruction.operation == TESSERA_EXPRESSION_OPERAND ||
         instruction.operation == TESSERA_EXPRESSION_CONSTANT ||
         instruction.operation == TESSERA_EXPRESSION_BIT_CAST;
}

// For each instruction: whether it is computed at each point.
std::vector<bool> is_at_points(const FusedGroup& group) {
  std::vector<bool> varies = plugin::varies_along_reduced_axes(group);
  for (size_t id = 0; id < varies.size(); ++id) {
    const Instruction& instruction = group.instructions[id];
    if (group.reduced_axes == 0) {
      varies[id] = true;
    } else if (plugin::is_reduction(instruction)) {
      varies[id] = varies[static_cast<size_t>(instruction.arguments[0])];
    }
    if (is_free(instruction)) varies[id] = false;
  }
  return varies;
}

// Whether `select` chooses between the two arguments of its own comparison.
bool is_extreme(const FusedGroup& group, const Instruction& select) {
  if (select.operation != TESSERA_EXPRESSION_SELECT) return false;
  const Instruction& condition = group.instructions[static_cast<size_t>(select.arguments[0])];
  if (condition.operation != TESSERA_EXPRESSION_LESS) return false;
  return (condition.arguments[0] == select.arguments[1] &&
          condition.arguments[1] == select.arguments[2]) ||
         (condition.arguments[1] == select.arguments[1] &&
          condition.arguments[0] == select.arguments[2]);
}

// The operations at each point, in order; comparisons of extremes are left out.
struct PointOperation {
  Instruction instruction;
  int32_t argument_type = TESSERA_FLOAT32;
  bool is_extreme = false;
};

std::vector<PointOperation> point_operations(const FusedGroup& group) {
  std::vector<bool> taken = is_at_points(group);
  for (size_t id = 0; id < taken.size(); ++id) {
    if (!taken[id] || !is_extreme(group, group.instructions[id])) continue;
    taken[static_cast<size_t>(group.instructions[id].arguments[0])] = false;
  }
  std::vector<PointOperation> operations;
  for (size_t id = 0; id < taken.size(); ++id) {
    if (!taken[id]) continue;
    PointOperation operation = {.instruction = group.instructions[id]};
    operation.is_extreme = is_extreme(group, operation.instruction);
    int32_t& kind = operation.instruction.operation;
    operation.is_extreme = operation.is_extreme || kind == TESSERA_EXPRESSION_REDUCE_MAX ||
                           kind == TESSERA_EXPRESSION_REDUCE_MIN;
    if (kind == TESSERA_EXPRESSION_REDUCE_SUM) kind = TESSERA_EXPRESSION_ADD;
    if (kind == TESSERA_EXPRESSION_REDUCE_PRODUCT) kind = TESSERA_EXPRESSION_MULTIPLY;
    const bool is_select = kind == TESSERA_EXPRESSION_SELECT;
    const auto argument = static_cast<size_t>(operation.instruction.arguments[is_select ? 1 : 0]);
    operation.argument_type = group.instructions[argument].data_type;
    operations.push_back(operation);
  }
  return operations;
}

std::string kind_of(const PointOperation& operation) {
  if (operation.is_extreme) return "min or max";
  switch (operation.instruction.operation) {
    case TESSERA_EXPRESSION_FUSED_MULTIPLY_ADD:
      return "fma";
    case TESSERA_EXPRESSION_ADD:
    case TESSERA_EXPRESSION_SUBTRACT:
      return "add";
    case TESSERA_EXPRESSION_MULTIPLY:
      return "mul";
    case TESSERA_EXPRESSION_DIVIDE:
      return "div";
    case TESSERA_EXPRESSION_SQUARE_ROOT:
      return "sqrt";
    case TESSERA_EXPRESSION_CONVERT:
      return "convert";
    case TESSERA_EXPRESSION_EQUAL:
    case TESSERA_EXPRESSION_LESS:
    case TESSERA_EXPRESSION_LESS_OR_EQUAL:
      return "compare";
    case TESSERA_EXPRESSION_SELECT:
      return "select";
    default:
      return "bits";
  }
}

int lanes_of(const FusedGroup& group, const jit::Target& target) {
  int bytes = 1;
  for (const Instruction& instruction : group.instructions) {
    bytes = std::max(bytes, jit::ir_type(instruction.data_type).bytes);
  }
  return target.vector_bytes / bytes;
}

// Prints a loop of sizes[0] iterations, each with some repetitions of the operations.
class PeakPrinter {
 public:
  PeakPrinter(const jit::Target& target, int lanes) : target_(target), lanes_(lanes) {}

  std::string print(const std::vector<PointOperation>& operations, int repetitions) {
    writer_.begin_function(jit::kKernelName, "ptr %bases, ptr %strides, ptr %sizes");
    const std::string base = writer_.value("load ptr, ptr %bases");
    for (const PointOperation& operation : operations) {
      add_chains(operation.argument_type, base);
      add_chains(operation.instruction.data_type, base);
      if (operation.is_extreme || is_on_bits(operation)) add_chains(TESSERA_INT32, base);
    }
    const std::string counter = writer_.variable("i64");
    writer_.line("store i64 0, ptr " + counter);
    const std::string limit = writer_.value("load i64, ptr %sizes");
    const std::string inside = writer_.new_label();
    const std::string after = writer_.new_label();
    writer_.line("br label %" + inside);
    writer_.start_block(inside);
    for (int repetition = 0; repetition < repetitions; ++repetition) {
      for (const PointOperation& operation : operations) print_operation(operation);
    }
    const std::string before = writer_.value("load i64, ptr " + counter);
    const std::string next = writer_.value("add i64 " + before + ", 1");
    writer_.line("store i64 " + next + ", ptr " + counter);
    const std::string goes_on = writer_.value("icmp slt i64 " + next + ", " + limit);
    writer_.line("br i1 " + goes_on + ", label %" + inside + ", label %" + after);
    writer_.start_block(after);
    store_chains(base);
    writer_.end_function();
    const std::string width = std::to_string(8 * target_.vector_bytes);
    return writer_.module_text("target triple = \"x86_64-unknown-linux-gnu\"\n\n",
                               "\nattributes #0 = { nounwind \"prefer-vector-width\"=\"" + width +
                                   "\" \"min-legal-vector-width\"=\"" + width + "\" }\n");
  }

 private:
  struct Chains {
    std::vector<std::string> variables;
    std::vector<std::string> constants;  // second arguments
    size_t next = 0;
    std::string pending;  // a result of another type, which the next operation reads
  };

  std::string type_text(int32_t type) const {
    return jit::of_lanes(jit::ir_type(type).value, lanes_);
  }

  void add_chains(int32_t type, const std::string& base) {
    const auto [found, is_new] = chains_.try_emplace(type);
    if (!is_new) return;
    const std::string text = type_text(type);
    for (size_t index = 0; index < chain_count(type); ++index) {
      const std::string loaded = writer_.value("load " + text + ", ptr " + base + ", align 1");
      found->second.variables.push_back(writer_.variable(text));
      writer_.line("store " + text + " " + loaded + ", ptr " + found->second.variables.back());
      if (index >= 2) continue;
      const std::string place = writer_.value("getelementptr i8, ptr " + base + ", i64 " +
                                              std::to_string(64 + index * 64));
      found->second.constants.push_back(
          writer_.value("load " + text + ", ptr " + place + ", align 1"));
    }
  }

  void store_chains(const std::string& base) {
    for (const auto& [type, chains] : chains_) {
      for (const std::string& variable : chains.variables) {
        const std::string last = writer_.value("load " + type_text(type) + ", ptr " + variable);
        writer_.line("store volatile " + type_text(type) + " " + last + ", ptr " + base +
                     ", align 1");
      }
    }
  }

  // Changes of the sign bit are operations on bits, which would cancel each other.
  static bool is_on_bits(const PointOperation& operation) {
    return operation.instruction.operation == TESSERA_EXPRESSION_NEGATE ||
           operation.instruction.operation == TESSERA_EXPRESSION_ABSOLUTE;
  }

  void print_operation(PointOperation operation) {
    if (is_on_bits(operation)) {
      operation.instruction.operation = TESSERA_EXPRESSION_XOR;
      operation.instruction.data_type = operation.argument_type = TESSERA_INT32;
    }
    Chains& chains = chains_.at(operation.argument_type);
    const std::string& variable = chains.variables[chains.next++ % chains.variables.size()];
    const std::string text = type_text(operation.argument_type);
    const std::string first = writer_.value("load " + text + ", ptr " + variable);
    std::string second = chains.constants[chains.next / chains.variables.size() % 2];
    if (!chains.pending.empty()) std::swap(second, chains.pending);
    chains.pending.clear();
    std::string result;
    if (operation.is_extreme) {
      Instruction less = operation.instruction;
      less.operation = TESSERA_EXPRESSION_LESS;
      less.data_type = TESSERA_BOOL;
      const std::string is_less = print(less, {first, second}, operation.argument_type);
      result = writer_.value("select " + jit::of_lanes("i1", lanes_) + " " + is_less + ", " + text +
                             " " + first + ", " + text + " " + second);
    } else if (operation.instruction.operation == TESSERA_EXPRESSION_SELECT) {
      Chains& conditions = chains_.try_emplace(TESSERA_BOOL).first->second;
      std::string condition = conditions.pending;
      conditions.pending.clear();
      if (condition.empty()) {
        condition = writer_.value("icmp slt <" + std::to_string(lanes_) +
                                  " x i32> zeroinitializer, zeroinitializer");
      }
      result = writer_.value("select " + jit::of_lanes("i1", lanes_) + " " + condition + ", " +
                             text + " " + first + ", " + text + " " + second);
    } else {
      result = print(operation.instruction, {first, second, chains.constants[0]},
                     operation.argument_type);
    }
    if (operation.instruction.data_type == operation.argument_type) {
      writer_.line("store " + text + " " + result + ", ptr " + variable);
    } else {
      chains_[operation.instruction.data_type].pending = result;
    }
  }

  std::string print(const Instruction& instruction, std::vector<std::string> values, int32_t type) {
    values.resize(static_cast<size_t>(plugin::argument_count(instruction.operation)));
    std::vector<jit::Argument> arguments;
    for (const std::string& value : values) arguments.push_back({value, type});
    return jit::print_operation(writer_, target_, instruction, arguments, lanes_);
  }

  const jit::Target& target_;
  int lanes_;
  IrWriter writer_;
  std::map<int32_t, Chains> chains_;
};

}  // namespace

std::vector<OperationCount> operations_of(const FusedGroup& group) {
  std::vector<OperationCount> counts;
  for (const PointOperation& operation : point_operations(group)) {
    const std::string kind = kind_of(operation);
    const auto found = std::ranges::find(counts, kind, &OperationCount::kind);
    if (found == counts.end()) {
      counts.push_back({kind, 1});
    } else {
      ++found->count;
    }
  }
  return counts;
}

OperationPeak::OperationPeak(const FusedGroup& group,
                             const std::shared_ptr<jit::KernelStore>& store) {
  const std::vector<PointOperation> operations = point_operations(group);
  const int vector_lanes = lanes_of(group, store->target());
  const int repetitions = kFewestOperations / static_cast<int>(operations.size() + 1) + 1;
  const std::string text =
      PeakPrinter(store->target(), vector_lanes).print(operations, repetitions);
  kernel_ = store->get(text, [&] { return text; });
  lanes_ = vector_lanes * repetitions;
}

void OperationPeak::run(int64_t points) const {
  // The first vector and two constants whose product is 1, so that numbers stay normal.
  std::array<float, 48> numbers = {};
  std::fill_n(numbers.begin(), 32, 0.75F);
  std::fill(numbers.begin() + 32, numbers.end(), 1.3333334F);
  std::byte* bases[] = {reinterpret_cast<std::byte*>(numbers.data())};
  const int64_t strides[] = {0};
  const int64_t sizes[] = {points / lanes_};
  kernel_->code.kernel()(bases, strides, sizes);
}

}  // namespace tessera::bench
