#include "print_llvm.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "expression_levels.h"
#include "kept_value.h"
#include "lane_forms.h"
#include "print_memory.h"
#include "print_operation.h"
#include "print_reduction.h"

namespace tessera::jit {

using plugin::Failure;
using plugin::FusedAccess;
using plugin::FusedGroup;
using plugin::Instruction;

namespace {

constexpr size_t kMaxInstructions = 32'768;
constexpr const char* kParameters = "ptr %bases, ptr %strides, ptr %sizes";

int lanes_of(const FusedGroup& group, const Target& target) {
  int bytes = 1;
  for (const Instruction& instruction : group.instructions) {
    bytes = std::max(bytes, ir_type(instruction.data_type).bytes);
  }
  return target.vector_bytes / bytes;
}

// The points that one iteration of the loop along Lane computes.
struct Lanes {
  std::vector<std::string> indices;  // of each vector
  std::vector<LaneMask> masks;       // of each vector
};

// The names of a value in LLVM IR, while the body that computes it is printed.
struct Printed {
  std::string scalar;
  std::string splat;
  std::vector<std::string> vectors;
};

class KernelPrinter {
 public:
  KernelPrinter(const FusedGroup& group, const KernelShape& shape, const Target& target)
      : group_(group),
        shape_(shape),
        target_(target),
        levels_(expression_levels(group, shape)),
        kept_(kept_value(group, shape, levels_)),
        lanes_(lanes_of(group, target)),
        printed_(group.instructions.size()) {}

  std::string print() {
    print_function(kKernelName);
    is_streaming_ = shape_.is_streaming;
    if (is_streaming_) print_function(kStreamName);
    const std::string width = std::to_string(8 * target_.vector_bytes);
    const std::string target = R"(target triple = "x86_64-unknown-linux-gnu")";
    const std::string widths =
        R"("prefer-vector-width"=")" + width + R"(" "min-legal-vector-width"=")" + width + R"(")";
    return writer_.module_text(target + "\n\n",
                               "\nattributes #0 = { nounwind " + widths + " }\n!0 = !{i32 1}\n");
  }

 private:
  // --- Names -------------------------------------------------------------------------------------

  const FusedAccess& access(size_t index) const {
    const size_t operands = group_.operands.size();
    return index < operands ? group_.operands[index] : group_.results[index - operands];
  }
  size_t access_count() const { return group_.operands.size() + group_.results.size(); }
  const Instruction& instruction(size_t id) const { return group_.instructions[id]; }
  const IrType& type_of(size_t id) const { return ir_type(instruction(id).data_type); }

  // The value of an instruction in one vector of the iteration.
  const std::string& vector_of(size_t id, size_t vector) const {
    return levels_.is_vector[id] ? printed_[id].vectors[vector] : printed_[id].splat;
  }

  void set_scalar(size_t id, const std::string& value) {
    printed_[id].scalar = value;
    if (levels_.needs_splat[id]) {
      printed_[id].splat = writer_.splat(type_of(id).value, value, lanes_);
    }
  }

  std::string load_pointer(size_t index) {
    const std::string address =
        writer_.value("getelementptr ptr, ptr %bases, i64 " + std::to_string(index));
    return writer_.value("load ptr, ptr " + address + ", align 8");
  }

  std::string load_number(const std::string& array, size_t index) {
    const std::string address =
        writer_.value("getelementptr i64, ptr " + array + ", i64 " + std::to_string(index));
    return writer_.value("load i64, ptr " + address + ", align 8");
  }

  const std::string& stride(size_t index, Loop loop) { return strides_[index * kLoopCount + loop]; }

  // --- Functions and loops -----------------------------------------------------------------------

  void print_function(std::string_view name) {
    writer_.begin_function(name, kParameters);
    load_arguments();
    compute(-1);
    levels_.is_lane_kept() ? print_kept_lanes() : print_row_blocks();
    writer_.end_function();
  }

  void print_kept_lanes() {
    loop(kRow, [&] {
      compute(levels_.position_of(kRow));
      for_lanes(forms_of_all(), [&] {
        compute(levels_.position_of(kLane));
        for (int pass = 1; pass <= levels_.passes; ++pass) print_reductions(pass);
        print_results();
      });
    });
  }

  // Each pass goes through some rows before the next pass begins, so that the end of a reduction,
  // which is many operations one after another, does not keep the next row waiting.
  void print_row_blocks() {
    const std::string block = load_number("%sizes", kLoopCount);
    saved_.clear();
    writer_.count_loop(writer_.counter("0"), sizes_[kRow], block, [&](const std::string& first) {
      const std::string next = writer_.value("add nuw nsw i64 " + first + ", " + block);
      const std::string end =
          writer_.call("i64", "llvm.umin.i64", {{"i64", next}, {"i64", sizes_[kRow]}});
      for (int pass = 1; pass <= levels_.passes + 1; ++pass) {
        loop_over_block(first, end, [&] {
          compute(levels_.position_of(kRow));
          load_saved();
          if (pass > levels_.passes) return print_results();
          print_reductions(pass);
          save_scalars(pass);
        });
      }
    });
  }

  template <class Body>
  void loop_over_block(const std::string& first, const std::string& end, const Body& body) {
    const std::vector<std::string> outside = pointers_;
    writer_.count_loop(writer_.counter(first), end, "1", [&](const std::string& row) {
      for (size_t each = 0; each < access_count(); ++each) {
        if (shape_.steps[each][kRow] == Step::Zero) continue;
        pointers_[each] = writer_.advanced(pointers_[each], row, stride(each, kRow));
      }
      row_of_block_ = writer_.value("sub nuw nsw i64 " + row + ", " + first);
      if (kept_) {
        const size_t strides = access_count() * kLoopCount;
        const std::string begin = writer_.advanced(
            pointers_.back(), first, load_number("%strides", strides + kKeptBlockStride));
        pointers_.back() = writer_.advanced(begin, row_of_block_,
                                            load_number("%strides", strides + kKeptRowStride));
      }
      body();
      pointers_ = outside;
    });
  }

  std::string saved_place(size_t id) {
    return writer_.value("getelementptr " + std::string(type_of(id).value) + ", ptr " +
                         saved_.at(id) + ", i64 " + row_of_block_);
  }

  // Keeps values that became known after the reductions of one depth for later passes over a row.
  void save_scalars(int depth) {
    for (size_t id = 0; id < group_.instructions.size(); ++id) {
      if (levels_.is_reduced[id] || levels_.depth[id] != depth ||
          !is_used_later(group_, levels_, id))
        continue;
      const std::string type(type_of(id).value);
      saved_[id] = writer_.variable("[" + std::to_string(kMaxBlockRows) + " x " + type + "]");
      writer_.line("store " + type + " " + printed_[id].scalar + ", ptr " + saved_place(id));
    }
  }

  void load_saved() {
    for (const auto& [id, array] : saved_) {
      const std::string type(type_of(id).value);
      set_scalar(id, writer_.value("load " + type + ", ptr " + saved_place(id)));
    }
  }

  void load_arguments() {
    pointers_.clear();
    strides_.assign(access_count() * kLoopCount, "");
    for (size_t index = 0; index < access_count(); ++index) {
      pointers_.push_back(load_pointer(index));
      for (size_t each = 0; each < kLoopCount; ++each) {
        if (shape_.steps[index][each] != Step::Other) continue;
        const size_t at = index * kLoopCount + each;
        strides_[at] = load_number("%strides", at);
      }
    }
    if (kept_) pointers_.push_back(load_pointer(access_count()));
    for (size_t each = 0; each < kLoopCount; ++each) sizes_[each] = load_number("%sizes", each);
  }

  // A loop other than Lane. Inside, pointers_ are those of its iteration.
  template <class Body>
  void loop(Loop which, const Body& body) {
    const std::vector<std::string> outside = pointers_;
    writer_.count_loop(writer_.counter("0"), sizes_[which], "1", [&](const std::string& index) {
      for (size_t each = 0; each < access_count(); ++each) {
        if (shape_.steps[each][which] == Step::Zero) continue;
        pointers_[each] = writer_.advanced(pointers_[each], index, stride(each, which));
      }
      body();
    });
    pointers_ = outside;
  }

  // The forms of a loop along Lane in which all vectors are computed.
  std::vector<LaneForm> forms_of_all() const {
    return lane_forms(loop_body(group_, levels_.is_vector), shape_.has_reduced(), target_);
  }

  // The loops along Lane, first of several vectors, then of the rest.
  template <class Body>
  void for_lanes(const std::vector<LaneForm>& forms, const Body& body) {
    const std::string counter = writer_.counter("0");
    for (const LaneForm& form : forms) {
      const int step = form.vectors * lanes_;
      std::string limit = sizes_[kLane];
      if (!form.is_masked) {
        limit = writer_.value("sub nsw i64 " + limit + ", " + std::to_string(step - 1));
      }
      writer_.count_loop(counter, limit, std::to_string(step), [&](const std::string& index) {
        lane_state_ = {};
        for (int vector = 0; vector < form.vectors; ++vector) add_vector(index, vector, form);
        body();
      });
    }
  }

  void add_vector(const std::string& first, int vector, const LaneForm& form) {
    std::string index = first;
    if (vector > 0) {
      index = writer_.value("add nuw nsw i64 " + first + ", " + std::to_string(vector * lanes_));
    }
    lane_state_.masks.push_back(
        form.is_masked ? print_mask(writer_, target_, index, sizes_[kLane], lanes_, vector > 0)
                       : LaneMask());
    lane_state_.indices.push_back(std::move(index));
  }

  // --- One point of the kept loops ---------------------------------------------------------------

  // Prints the reductions of one depth, and the values that are known after them.
  void print_reductions(int depth) {
    const Lanes kept_lanes = lane_state_;
    print_pass(depth);
    lane_state_ = kept_lanes;
    compute_after(depth, static_cast<int>(levels_.kept_loops.size()) - 1);
  }

  void print_results() {
    const Lanes kept_lanes = lane_state_;
    std::vector<size_t> everywhere;
    std::vector<size_t> once;
    for (size_t index = 0; index < group_.results.size(); ++index) {
      const bool is_everywhere = is_written_everywhere(shape_, group_.operands.size() + index);
      (is_everywhere ? everywhere : once).push_back(index);
    }
    if (!everywhere.empty()) {
      reads_kept_ = kept_.has_value();
      std::vector<bool> needed(group_.instructions.size(), false);
      for (const size_t index : everywhere) {
        mark_needed(static_cast<size_t>(group_.results[index].instruction), needed);
      }
      for_reduced(needed, forms_of(needed), [&] { store_results(everywhere); });
      reads_kept_ = false;
      lane_state_ = kept_lanes;
    }
    store_results(once);
  }

  // Prints the instructions that vary along no reduced loop, before the first pass.
  void compute(int position) {
    for (size_t id = 0; id < group_.instructions.size(); ++id) {
      if (levels_.is_reduced[id] || levels_.depth[id] != 0 || levels_.position[id] != position) {
        continue;
      }
      print_instruction(id);
    }
  }

  void compute_after(int depth, int position) {
    for (size_t id = 0; id < group_.instructions.size(); ++id) {
      if (levels_.is_reduced[id] || levels_.depth[id] != depth) continue;
      if (levels_.position[id] != position || plugin::is_reduction(instruction(id))) continue;
      print_instruction(id);
    }
  }

  void mark_needed(size_t id, std::vector<bool>& needed) const {
    std::optional<size_t> known;
    if (reads_kept_) known = kept_->instruction;
    jit::mark_needed(group_, levels_, id, known, needed);
  }

  void compute_needed(const std::vector<bool>& needed, Loop loop) {
    const int position = levels_.position_of(loop);
    for (size_t id = 0; id < group_.instructions.size(); ++id) {
      if (needed[id] && levels_.position[id] == position) print_instruction(id);
    }
  }

  // The forms of a reduced loop along Lane.
  std::vector<LaneForm> forms_of(const std::vector<bool>& needed) const {
    return lane_forms(loop_body(group_, needed), false, target_);
  }

  // Prints `body` inside the reduced loops, after the instructions that it needs.
  template <class Body>
  void for_reduced(const std::vector<bool>& needed, const std::vector<LaneForm>& forms,
                   const Body& body, size_t depth = 0) {
    if (depth == levels_.reduced_loops.size()) return body();
    const Loop which = levels_.reduced_loops[depth];
    const auto inside = [&] {
      compute_needed(needed, which);
      for_reduced(needed, forms, body, depth + 1);
    };
    which == kLane ? for_lanes(forms, inside) : loop(which, inside);
  }

  // Computes the reductions of one depth.
  void print_pass(int depth) {
    std::vector<size_t> reductions;
    std::vector<bool> needed(group_.instructions.size(), false);
    for (size_t id = 0; id < group_.instructions.size(); ++id) {
      if (!plugin::is_reduction(instruction(id)) || levels_.depth[id] != depth) continue;
      mark_needed(argument_of(id), needed);
      reductions.push_back(id);
    }
    const std::vector<LaneForm> forms = forms_of(needed);
    const size_t vectors = levels_.is_lane_kept() ? lane_state_.indices.size()
                                                  : static_cast<size_t>(forms.front().vectors);
    std::vector<Accumulator> accumulators;
    for (const size_t id : reductions) {
      accumulators.push_back(new_accumulator(writer_, group_, id, vectors, lanes_));
    }
    const bool has_blocks = std::ranges::any_of(
        accumulators, [](const Accumulator& each) { return !each.blocks.empty(); });
    const std::string points = has_blocks ? writer_.counter("0") : "";
    for_reduced(needed, forms, [&] {
      if (depth == levels_.passes) {
        store_kept();
        prefetch_next_rows(needed);
      }
      for (const Accumulator& accumulator : accumulators) {
        const size_t argument = argument_of(accumulator.instruction);
        for (size_t vector = 0; vector < lane_state_.indices.size(); ++vector) {
          print_accumulation(writer_, accumulator, vector, vector_of(argument, vector),
                             levels_.is_lane_kept() ? "" : lane_state_.masks[vector].lanes);
        }
      }
      if (has_blocks) end_full_block(points, accumulators);
    });
    for (const Accumulator& accumulator : accumulators) {
      if (levels_.is_lane_kept()) {
        printed_[accumulator.instruction].vectors = print_totals(writer_, accumulator);
      } else {
        set_scalar(accumulator.instruction, print_total(writer_, accumulator));
      }
    }
  }

  // `points`: the variable that counts what was accumulated.
  void end_full_block(const std::string& points, const std::vector<Accumulator>& accumulators) {
    const std::string before = writer_.value("load i64, ptr " + points);
    const std::string count = writer_.value("add nuw nsw i64 " + before + ", 1");
    writer_.line("store i64 " + count + ", ptr " + points);
    const std::string in_block =
        writer_.value("and i64 " + count + ", " + std::to_string(kBlockVectors - 1));
    writer_.only_if(writer_.value("icmp eq i64 " + in_block + ", 0"), [&] {
      for (const Accumulator& accumulator : accumulators) print_block_end(writer_, accumulator);
    });
  }

  size_t argument_of(size_t id) const { return static_cast<size_t>(instruction(id).arguments[0]); }

  // --- Instructions ------------------------------------------------------------------------------

  void print_instruction(size_t id) {
    const Instruction& given = instruction(id);
    if (reads_kept_ && id == kept_->instruction) return load_kept();
    if (given.operation == TESSERA_EXPRESSION_CONSTANT) {
      return set_scalar(id, print_constant(writer_, given.data_type, given.bits));
    }
    if (given.operation == TESSERA_EXPRESSION_OPERAND) return load_operand(id);
    check_divisor(group_, given);
    if (plugin::is_reduction(given)) return copy_value(id);
    if (!levels_.is_vector[id]) {
      return set_scalar(id, print_operation(writer_, target_, given, arguments_of(id, 0, 1), 1));
    }
    printed_[id].vectors.clear();
    for (size_t vector = 0; vector < lane_state_.indices.size(); ++vector) {
      printed_[id].vectors.push_back(
          print_operation(writer_, target_, given, arguments_of(id, vector, lanes_), lanes_));
    }
  }

  // A reduction over a single point.
  void copy_value(size_t id) {
    const auto argument = static_cast<size_t>(instruction(id).arguments[0]);
    if (levels_.is_vector[id]) {
      printed_[id].vectors = printed_[argument].vectors;
    } else {
      set_scalar(id, printed_[argument].scalar);
    }
  }

  std::vector<Argument> arguments_of(size_t id, size_t vector, int lanes) const {
    std::vector<Argument> arguments;
    for (int index = 0; index < plugin::argument_count(instruction(id).operation); ++index) {
      const auto argument = static_cast<size_t>(instruction(id).arguments[index]);
      arguments.push_back({lanes == 1 ? printed_[argument].scalar : vector_of(argument, vector),
                           instruction(argument).data_type});
    }
    return arguments;
  }

  // --- Memory ------------------------------------------------------------------------------------

  VectorPlace place_of(size_t index, size_t vector) {
    const bool is_strided = shape_.steps[index][kLane] == Step::Other;
    return {.type = &ir_type(access(index).data_type),
            .pointer = pointers_[index],
            .index = lane_state_.indices[vector],
            .stride = is_strided ? stride(index, kLane) : "",
            .mask = lane_state_.masks[vector],
            .lanes = lanes_};
  }

  void load_operand(size_t id) {
    const auto index = static_cast<size_t>(instruction(id).index);
    if (instruction(id).data_type != access(index).data_type) {
      throw Failure(TESSERA_INTERNAL, "an operand has another type than its instruction");
    }
    if (!levels_.is_vector[id]) {
      return set_scalar(id, print_scalar_load(writer_, type_of(id), pointers_[index]));
    }
    printed_[id].vectors.clear();
    for (size_t vector = 0; vector < lane_state_.indices.size(); ++vector) {
      printed_[id].vectors.push_back(print_vector_load(writer_, place_of(index, vector)));
    }
  }

  VectorPlace kept_place(size_t vector) const {
    return {.type = &type_of(kept_->instruction),
            .pointer = pointers_.back(),
            .index = lane_state_.indices[vector],
            .stride = "",
            .mask = lane_state_.masks[vector],
            .lanes = lanes_};
  }

  void store_kept() {
    if (!kept_) return;
    for (size_t vector = 0; vector < lane_state_.indices.size(); ++vector) {
      print_vector_store(writer_, kept_place(vector), vector_of(kept_->instruction, vector), false);
    }
  }

  void load_kept() {
    std::vector<std::string>& vectors = printed_[kept_->instruction].vectors;
    vectors.clear();
    for (size_t vector = 0; vector < lane_state_.indices.size(); ++vector) {
      vectors.push_back(print_vector_load(writer_, kept_place(vector)));
    }
  }

  // Prefetches the operands one row ahead, so that the first pass over the next row finds them in
  // the cache. Tensors that fit into the caches gain nothing.
  void prefetch_next_rows(const std::vector<bool>& needed) {
    if (!is_streaming_ || levels_.is_lane_kept()) return;
    for (size_t id = 0; id < group_.instructions.size(); ++id) {
      if (!needed[id] || instruction(id).operation != TESSERA_EXPRESSION_OPERAND) continue;
      const auto index = static_cast<size_t>(instruction(id).index);
      const auto& steps = shape_.steps[index];
      if (steps[kRow] != Step::Other || steps[kLane] != Step::One) continue;
      const std::string distance = writer_.value("mul nsw i64 " + stride(index, kRow) + ", " +
                                                 load_number("%sizes", kLoopCount));
      for (size_t vector = 0; vector < lane_state_.indices.size(); ++vector) {
        print_prefetch(writer_, place_of(index, vector), distance);
      }
    }
  }

  // All loads of an iteration come before its stores, so results may overwrite operands.
  void store_results(const std::vector<size_t>& results) {
    for (const size_t index : results) {
      const size_t at = group_.operands.size() + index;
      const auto id = static_cast<size_t>(group_.results[index].instruction);
      if (shape_.steps[at][kLane] == Step::Zero) {
        print_scalar_store(writer_, type_of(id), pointers_[at], first_lane(id));
        continue;
      }
      for (size_t vector = 0; vector < lane_state_.indices.size(); ++vector) {
        print_vector_store(writer_, place_of(at, vector), vector_of(id, vector), is_streaming_);
      }
    }
  }

  std::string first_lane(size_t id) {
    if (!levels_.is_vector[id]) return printed_[id].scalar;
    return writer_.value("extractelement " + of_lanes(type_of(id).value, lanes_) + " " +
                         vector_of(id, 0) + ", i64 0");
  }

  const FusedGroup& group_;
  const KernelShape& shape_;
  const Target& target_;
  ExpressionLevels levels_;
  std::optional<KeptValue> kept_;
  int lanes_;
  bool is_streaming_ = false;
  bool reads_kept_ = false;  // in the pass that writes results
  IrWriter writer_;
  // Pointers of each access, then of the row of the kept value, in the present iteration.
  std::vector<std::string> pointers_;
  std::vector<std::string> strides_;
  std::array<std::string, kLoopCount> sizes_;
  Lanes lane_state_;
  std::vector<Printed> printed_;  // by instruction
  std::string row_of_block_;
  std::map<size_t, std::string> saved_;  // arrays of scalars of a block's rows, by instruction
};

}  // namespace

std::string kernel_source(const FusedGroup& group, const KernelShape& shape) {
  static_assert(sizeof(Instruction) == 32, "an instruction has no padding");
  std::string source(reinterpret_cast<const char*>(group.instructions.data()),
                     group.instructions.size() * sizeof(Instruction));
  source += "results";
  for (const FusedAccess& result : group.results) {
    source += ' ';
    source += std::to_string(result.instruction);
  }
  source += "\nloops";
  if (shape.has_reduced_outer) source += " outer";
  if (shape.has_reduced_inner) source += " inner";
  if (shape.is_lane_reduced) source += " lane";
  if (shape.is_streaming) source += " streaming";
  source += '\n';
  for (const auto& steps : shape.steps) {
    for (const Step step : steps) source += "01s"[static_cast<size_t>(step)];
    source += ' ';
  }
  return source;
}

void check_size(const FusedGroup& group) {
  if (group.instructions.size() > kMaxInstructions) {
    throw Failure(TESSERA_UNSUPPORTED,
                  "has too many instructions to compile as one kernel: expected at most " +
                      std::to_string(kMaxInstructions) + ", found " +
                      std::to_string(group.instructions.size()));
  }
}

std::string print_llvm(const FusedGroup& group, const KernelShape& shape, const Target& target) {
  check_size(group);
  return KernelPrinter(group, shape, target).print();
}

}  // namespace tessera::jit
