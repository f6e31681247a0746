#include "elementwise/program_builder.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace tessera::native {

using plugin::Failure;
using plugin::Type;
using plugin::Value;

namespace {

// The largest block of channels that the shared layouts have.
constexpr int64_t kMaxBlock = 16;

// Whether loop_axes() finds few enough axes for a row-major result: it merges neighbours if each
// operand broadcasts along both or neither. Results in other layouts have five dimensions at most.
bool has_few_axes(const Program& text) {
  size_t count = 0;
  std::optional<size_t> last;
  for (size_t axis = 0; axis < text.result.dims.size(); ++axis) {
    if (text.result.dims[axis] == 1) continue;
    const auto differs = [&](const ProgramOperand& operand) {
      return (operand.dims[axis] == 1) != (operand.dims[*last] == 1);
    };
    if (!last || std::any_of(text.operands.begin(), text.operands.end(), differs)) ++count;
    last = axis;
  }
  return count <= kMaxLoopAxes;
}

}  // namespace

ProgramBuilder::Id ProgramBuilder::add_operand(ProgramOperand operand, int32_t type) {
  entries_.push_back({type, static_cast<int>(operands_.size()), -1});
  operands_.push_back(std::move(operand));
  return static_cast<Id>(entries_.size()) - 1;
}

ProgramBuilder::Id ProgramBuilder::read(const Value& value,
                                        std::optional<std::vector<int64_t>> given) {
  const Type type = value.type();
  ProgramOperand operand;
  operand.element_bytes = plugin::element_bytes(type.data_type);
  operand.dims = given ? *std::move(given) : type.dims;
  const size_t rank = result_.dims.size();
  if (operand.dims.size() > rank) {
    throw Failure(TESSERA_UNSUPPORTED, "an operand has more dimensions than the result");
  }
  operand.dims.insert(operand.dims.begin(), rank - operand.dims.size(), 1);
  const auto found = given_.find(value.id());
  if (found != given_.end()) {
    const int number = entries_[static_cast<size_t>(found->second)].operand;
    // Another node may align the value with other axes.
    const bool is_aligned =
        number < 0 || operands_[static_cast<size_t>(number)].dims == operand.dims;
    if (is_aligned) return found->second;
  }
  operand.is_row_major = operand.dims != type.dims;
  const bool is_small = type.dense_bytes() <= TESSERA_SMALL_CONSTANT_BYTES;
  if (value.is_constant() && is_small && value.constant() != nullptr &&
      operand.dims != result_.dims) {
    const auto* bytes = static_cast<const std::byte*>(value.constant());
    operand.elements.assign(bytes, bytes + type.dense_bytes());
    operand.is_row_major = true;
  } else {
    // One element is stored in the same way in all layouts.
    if (type.elements() == 1 && operand.dims != result_.dims) operand.is_row_major = true;
    add_input(value);
    const auto port = std::find(ports_.begin(), ports_.end(), value.id());
    operand.port = static_cast<int>(port - ports_.begin());
  }
  const Id id = add_operand(std::move(operand), type.data_type);
  given_[value.id()] = id;
  return id;
}

void ProgramBuilder::add_input(const Value& value) {
  if (!value.is_present() || given_.contains(value.id())) return;
  if (std::find(ports_.begin(), ports_.end(), value.id()) == ports_.end()) {
    ports_.push_back(value.id());
  }
}

ProgramBuilder::Id ProgramBuilder::number(int32_t type, double value) {
  ProgramOperand operand;
  operand.element_bytes = plugin::element_bytes(type);
  operand.dims.assign(result_.dims.size(), 1);
  operand.is_row_major = true;
  operand.elements.resize(static_cast<size_t>(operand.element_bytes));
  const auto put = [&](auto number) {
    std::memcpy(operand.elements.data(), &number, sizeof(number));
  };
  if (value == 0) {
    // Its bytes are those of zero in all types.
  } else if (type == TESSERA_FLOAT32) {
    put(static_cast<float>(value));
  } else if (type == TESSERA_FLOAT64) {
    put(value);
  } else {
    throw Failure(TESSERA_UNSUPPORTED, "there is no arithmetic for this element type");
  }
  return add_operand(std::move(operand), type);
}

// The text by which the host recognises a node of a group; see docs/backends.md.
void ProgramBuilder::begin_node(const plugin::Node& node) {
  location_ = "node '" + std::string(node.name()) + "' (" + std::string(node.op()) + ")";
}

ProgramBuilder::Id ProgramBuilder::apply(std::string_view what, const LoopSet& loops, int32_t type,
                                         const std::vector<Id>& from, Parameters parameters) {
  if (loops.is_empty()) {
    throw Failure(TESSERA_UNSUPPORTED,
                  "there is no loop for " + std::string(what) + " on these element types");
  }
  entries_.push_back({type, -1, static_cast<int>(steps_.size())});
  steps_.push_back({std::string(what), loops, from, parameters, location_});
  return static_cast<Id>(entries_.size()) - 1;
}

std::optional<ProgramBuilder::Id> ProgramBuilder::argument_of(std::string_view what, Id id) const {
  const int number = entries_[static_cast<size_t>(id)].step;
  if (number < 0) return std::nullopt;
  const Step& step = steps_[static_cast<size_t>(number)];
  if (step.what != what || step.from.size() != 1) return std::nullopt;
  return step.from[0];
}

std::vector<bool> ProgramBuilder::steps_for(Id last) const {
  std::vector<bool> is_needed(steps_.size(), false);
  std::vector<Id> open = {last};
  while (!open.empty()) {
    const int step = entries_[static_cast<size_t>(open.back())].step;
    open.pop_back();
    if (step < 0 || is_needed[static_cast<size_t>(step)]) continue;
    is_needed[static_cast<size_t>(step)] = true;
    const std::vector<Id>& from = steps_[static_cast<size_t>(step)].from;
    open.insert(open.end(), from.begin(), from.end());
  }
  return is_needed;
}

std::optional<Program> ProgramBuilder::finish(const Value& value) const {
  const Id last = given_.at(value.id());
  Program text;
  text.result = result_;
  text.operands = operands_;
  if (operands_.size() > kMaxOperands || !has_few_axes(text)) return std::nullopt;
  // The last step that reads each id.
  std::vector<size_t> last_use(entries_.size(), 0);
  const std::vector<bool> is_needed = steps_for(last);
  for (size_t step = 0; step < steps_.size(); ++step) {
    if (!is_needed[step]) continue;
    for (const Id id : steps_[step].from) last_use[static_cast<size_t>(id)] = step;
  }
  std::vector<int> registers(entries_.size(), -1);
  std::vector<bool> is_taken(kMaxRegisters, false);
  for (size_t number = 0; number < entries_.size(); ++number) {
    const Entry& entry = entries_[number];
    if (entry.step < 0 || !is_needed[static_cast<size_t>(entry.step)]) continue;
    const Step& step = steps_[static_cast<size_t>(entry.step)];
    ProgramStep made;
    made.loops = step.loops;
    made.parameters = step.parameters;
    made.location = step.location;
    made.from_count = static_cast<int>(step.from.size());
    made.to_bytes = plugin::element_bytes(entry.type);
    for (size_t index = 0; index < step.from.size(); ++index) {
      const auto id = static_cast<size_t>(step.from[index]);
      const bool is_operand = entries_[id].operand >= 0;
      made.from[index] = is_operand ? ValueRef{ValueRef::Kind::Operand, entries_[id].operand}
                                    : ValueRef{ValueRef::Kind::Register, registers[id]};
    }
    if (static_cast<Id>(number) == last) {
      made.to = {ValueRef::Kind::Result, 0};
      text.steps.push_back(made);
      return text;
    }
    // Allocated before the registers that this step reads last are free: elements of two sizes in
    // one register would overlap.
    const auto free = std::find(is_taken.begin(), is_taken.end(), false);
    if (free == is_taken.end()) return std::nullopt;
    *free = true;
    registers[number] = static_cast<int>(free - is_taken.begin());
    made.to = {ValueRef::Kind::Register, registers[number]};
    for (const Id id : step.from) {
      const int held = registers[static_cast<size_t>(id)];
      if (held >= 0 && last_use[static_cast<size_t>(id)] == static_cast<size_t>(entry.step)) {
        is_taken[static_cast<size_t>(held)] = false;
      }
    }
    text.steps.push_back(made);
  }
  return std::nullopt;
}

// The kernel also computes sizes at which channels are not whole blocks, but more slowly.
bool ProgramBuilder::can_be_dense(const Program& text) const {
  if (is_row_major_) return false;
  return std::all_of(text.operands.begin(), text.operands.end(), [](const ProgramOperand& operand) {
    if (!operand.is_row_major || operand.port < 0 || operand.dims.size() < 3) return true;
    return operand.dims[1] == 1 || operand.dims[1] % kMaxBlock == 0;
  });
}

}  // namespace tessera::native
