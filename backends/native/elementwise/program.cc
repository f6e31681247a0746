#include "elementwise/program.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "base/divide_up.h"
#include "base/element_type.h"
#include "base/grain.h"
#include "base/streaming.h"
#include "hwy/cache_control.h"
#include "layout/padding.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::RunContext;

namespace {

// Elements of a block, which all steps process before the next block: small enough for the
// first-level cache.
constexpr int64_t kBlock = 1024;
// The block size if the result is streamed: with small blocks, streaming stores overlap with the
// computation of later elements.
constexpr int64_t kStreamBlock = 256;
// The block size if no intermediate results are kept.
constexpr int64_t kLargeBlock = 16 * 1024;
// Rows of this length are processed by a call each; shorter ones are gathered into a block, with
// operands broadcast.
constexpr int64_t kMinRowElements = 48;
// Slots of scratch memory have different offsets in their pages: a load that follows a store to the
// same offset of another page would wait for it (4K aliasing).
constexpr int64_t kSlotBytes = kBlock * kMaxElementBytes + 5 * kLineBytes;
constexpr size_t kSlots = kMaxRegisters + kMaxOperands + 1;

struct Scratch {
  // Not initialised: most programs use only a few slots.
  alignas(kLineBytes) std::byte slots[kSlots][kSlotBytes];

  std::byte* of_register(int index) { return slots[index]; }
  std::byte* of_operand(int index) { return slots[kMaxRegisters + static_cast<size_t>(index)]; }
  std::byte* of_result() { return slots[kMaxRegisters + kMaxOperands]; }
};

// Gathers rows of elements, `row_stride` and `stride` elements apart, into contiguous memory.
template <class T>
void gather_rows(const T* from, int64_t row_stride, int64_t stride, T* to, int64_t rows,
                 int64_t width) {
  // Repeats one row: each copy doubles the rows that exist.
  if (row_stride == 0 && rows > 1) {
    gather_rows(from, 0, stride, to, 1, width);
    for (int64_t done = 1; done < rows; done *= 2) {
      const int64_t more = std::min(done, rows - done);
      std::memcpy(to + done * width, to, static_cast<size_t>(more * width) * sizeof(T));
    }
    return;
  }
  for (int64_t row = 0; row < rows; ++row, from += row_stride, to += width) {
    if (stride == 0) {
      std::fill_n(to, width, *from);
    } else if (stride == 1) {
      std::copy_n(from, width, to);
    } else {
      for (int64_t index = 0; index < width; ++index) to[index] = from[index * stride];
    }
  }
}

void gather_rows_of(int64_t element_bytes, const void* from, int64_t row_stride, int64_t stride,
                    void* to, int64_t rows, int64_t width) {
  find_loop_for_size(element_bytes, [&]<class T>() {
    gather_rows(static_cast<const T*>(from), row_stride, stride, static_cast<T*>(to), rows, width);
  });
}

// Where the elements of an operand are.
struct Operand {
  int port = -1;
  const std::byte* constant = nullptr;
  int64_t element_bytes = 4;
};

// The elements of an operand that a block reads.
struct Read {
  const std::byte* elements = nullptr;
  bool is_one = false;  // one element for all
};

// The loop: outer axes around `rows` rows of `width` elements, cut into blocks.
struct Blocks {
  int64_t outer_count = 1;
  int64_t rows = 1;
  int64_t width = 1;
  int64_t rows_each = 1;  // rows of a block, if rows are short
  int64_t piece = 1;      // elements of a block, if rows are long
  int64_t pieces = 1;     // blocks of a row, if rows are long
  int64_t in_outer = 1;   // blocks for each index of the outer axes
  int64_t count() const { return outer_count * in_outer; }
};

Blocks cut(const LoopAxes& axes, int64_t block) {
  Blocks blocks;
  blocks.width = axes.width();
  blocks.rows = axes.rows();
  for (size_t axis = 2; axis < axes.count; ++axis) blocks.outer_count *= axes.sizes[axis];
  blocks.piece = block;
  blocks.pieces = divide_up(blocks.width, block);
  if (blocks.pieces == 1) {
    blocks.rows_each = std::min(blocks.rows, block / blocks.width);
    // A multiple of this many rows is whole cache lines.
    if (blocks.rows_each > kLineBytes) blocks.rows_each -= blocks.rows_each % kLineBytes;
  }
  blocks.in_outer = divide_up(blocks.rows, blocks.rows_each) * blocks.pieces;
  return blocks;
}

// The loop of a program for a result of some size.
struct Problem {
  DenseStorage storage;  // if it has no elements, nothing else is set
  LoopAxes axes;
  Blocks blocks;
  std::array<int64_t, kMaxOperands> checked = {};  // checked_elements() of each operand
  size_t row_form = 0;
  bool is_single_row = false;  // one step, and all operands are one row
  bool is_by_rows = false;     // one step, and rows that are long enough for a call each

  int64_t element_stride(size_t operand) const { return axes.strides[operand][0]; }
  int64_t row_stride(size_t operand) const { return axes.strides[operand][1]; }
};

class ProgramKernel : public plugin::Kernel {
 public:
  ProgramKernel(Program text, const std::string& layout)
      : text_(std::move(text)),
        order_(storage_order(layout)),
        result_bytes_(plugin::element_bytes(text_.result.data_type)),
        stream_copy_(find_stream_copy()) {
    // Then no result of the family has elements.
    if (text_.result.elements() == 0) return;
    for (ProgramOperand& operand : text_.operands) {
      const bool is_padded = pad(operand);
      shapes_.push_back({operand.dims, operand.is_row_major, is_padded});
      operands_.push_back({operand.port, operand.elements.data(), operand.element_bytes});
    }
    keeps_zero_ = order_.block == 1 || keeps_zero();
    planned_ = problem_of(text_.result.dims);
  }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const std::span<const int64_t> dims = outputs[0].sizes();
    const std::vector<int64_t>& planned = text_.result.dims;
    if (std::equal(dims.begin(), dims.end(), planned.begin(), planned.end())) {
      run_problem(context, planned_, inputs, outputs);
    } else {
      run_problem(context, problem_of(dims), inputs, outputs);
    }
  }

 private:
  struct Run {
    const Problem& problem;
    std::byte* result = nullptr;
    const std::byte* operands[kMaxOperands] = {};
    bool is_streaming = false;
  };

  // The block that is processed, with the elements of each operand.
  struct Block {
    int64_t result = 0;  // index of the first element
    int64_t rows = 1;
    int64_t width = 1;
    const std::byte* operands[kMaxOperands] = {};  // of each operand's first element
    Read reads[kMaxOperands] = {};
    // The rows that the slots of operands hold, so that rows that repeat are gathered once.
    const std::byte* gathered[kMaxOperands] = {};
    int64_t gathered_rows[kMaxOperands] = {};

    int64_t count() const { return rows * width; }
  };

  // Pads the channels of a constant operand with zeros up to whole blocks.
  bool pad(ProgramOperand& operand) const {
    const int64_t block = order_.block;
    if (block == 1 || operand.port >= 0 || operand.dims[1] == 1 || operand.dims[1] % block == 0) {
      return false;
    }
    int64_t inner = operand.element_bytes;
    for (size_t axis = 2; axis < operand.dims.size(); ++axis) inner *= operand.dims[axis];
    const auto from = static_cast<size_t>(operand.dims[1] * inner);
    const auto to = static_cast<size_t>(divide_up(operand.dims[1], block) * block * inner);
    std::vector<std::byte> padded(static_cast<size_t>(operand.dims[0]) * to);
    for (size_t image = 0; image < static_cast<size_t>(operand.dims[0]); ++image) {
      std::memcpy(padded.data() + image * to, operand.elements.data() + image * from, from);
    }
    operand.elements = std::move(padded);
    return true;
  }

  // `dims` are those of the result: they and shapes_ decide those of the operands.
  Problem problem_of(std::span<const int64_t> dims) const {
    Problem problem;
    problem.storage = dense_storage(order_.block, dims);
    if (problem.storage.elements == 0) return problem;
    bool is_checked = false;
    for (size_t number = 0; number < shapes_.size(); ++number) {
      problem.checked[number] = checked_elements(order_, dims, shapes_[number]);
      is_checked = is_checked || problem.checked[number] != 0;
    }
    // What is one row for the planned sizes is one row for all of the family.
    if (planned_.axes.count == 1 && !is_checked) {
      problem.axes = planned_.axes;
      problem.axes.sizes[0] = problem.storage.elements;
    } else {
      problem.axes = loop_axes(order_, dims, shapes_);
    }
    const bool has_form = has_row_form(problem);
    const bool needs_scratch =
        !has_form || text_.steps[0].loops.streaming[problem.row_form] == nullptr;
    const int64_t width = problem.axes.width();
    problem.is_single_row = has_form && problem.axes.count == 1;
    problem.is_by_rows = has_form && width >= kMinRowElements;
    const int64_t block = is_streaming(problem) && width > kBlock ? kStreamBlock : kBlock;
    problem.blocks = cut(problem.axes, problem.is_by_rows && !needs_scratch ? kLargeBlock : block);
    return problem;
  }

  // Whether there is only one step, with a loop for its operands as they are, a row at once; if so,
  // sets Problem::row_form.
  bool has_row_form(Problem& problem) const {
    if (text_.steps.size() != 1) return false;
    const ProgramStep& step = text_.steps[0];
    size_t form = 0;
    for (int index = 0; index < step.from_count; ++index) {
      const auto number = static_cast<size_t>(step.from[index].index);
      if (problem.checked[number] != 0) return false;
      const int64_t stride = problem.element_stride(number);
      if (stride == 1) continue;
      if (stride != 0 || step.from_count == 1 || (step.from_count == 3 && index == 0)) return false;
      form |= size_t{1} << (step.from_count == 3 ? index - 1 : index);
    }
    problem.row_form = form;
    return step.loops.forms[form] != nullptr;
  }

  bool is_streaming(const Problem& problem) const {
    return problem.storage.elements * result_bytes_ >= kStreamedResultBytes;
  }

  void run_problem(RunContext& context, const Problem& problem, std::span<const Buffer> inputs,
                   std::span<const Buffer> outputs) const {
    if (problem.storage.elements == 0) return;
    Run run{.problem = problem};
    run.result = outputs[0].as<std::byte>();
    run.is_streaming = is_streaming(problem);
    for (size_t index = 0; index < operands_.size(); ++index) {
      const Operand& operand = operands_[index];
      run.operands[index] = operand.port < 0
                                ? operand.constant
                                : inputs[static_cast<size_t>(operand.port)].as<std::byte>();
      if (run.operands[index] == run.result) run.is_streaming = false;
    }
    const bool is_single_row =
        problem.is_single_row &&
        (!run.is_streaming || text_.steps[0].loops.streaming[problem.row_form] != nullptr);
    if (is_single_row) {
      run_single_row(context, run);
    } else {
      const int64_t count = problem.blocks.count();
      const int64_t each = std::max<int64_t>(1, problem.storage.elements / count);
      context.parallel_for(count, std::max<int64_t>(1, kGrain / each),
                           [&](int64_t begin, int64_t end) { run_blocks(run, begin, end); });
    }
    if (!keeps_zero_) clear_padding(context, problem.storage.padding, run.result, result_bytes_);
  }

  // A failure names the node whose function it is, which is not always the last one of the group.
  static void apply(const ProgramStep& step, Loop loop, const LoopCall& call) {
    try {
      loop(call);
    } catch (const plugin::Failure& failure) {
      throw plugin::Failure(failure.kind(), step.location + ": " + failure.what());
    }
  }

  void run_single_row(RunContext& context, const Run& run) const {
    const ProgramStep& step = text_.steps[0];
    const Blocks& blocks = run.problem.blocks;
    const size_t form = run.problem.row_form;
    const Loop loop = run.is_streaming ? step.loops.streaming[form] : step.loops.forms[form];
    context.parallel_for(blocks.pieces, kGrain / blocks.piece, [&](int64_t begin, int64_t end) {
      const int64_t first = begin * blocks.piece;
      LoopCall call;
      for (int index = 0; index < step.from_count; ++index) {
        const auto number = static_cast<size_t>(step.from[index].index);
        call.from[index] = run.operands[number] + first * run.problem.element_stride(number) *
                                                      operands_[number].element_bytes;
      }
      call.to = run.result + first * result_bytes_;
      call.count = std::min(end * blocks.piece, blocks.width) - first;
      call.parameters = step.parameters;
      apply(step, loop, call);
      if (run.is_streaming) hwy::FlushStream();
    });
  }

  void run_blocks(const Run& run, int64_t begin, int64_t end) const {
    Scratch scratch;
    Block block;
    for (int64_t index = begin; index < end; ++index) {
      place_block(run, index, block);
      if (run.problem.is_by_rows) {
        run_rows(run, block, scratch);
        continue;
      }
      for (size_t number = 0; number < operands_.size(); ++number) {
        read_operand(run, number, block, scratch);
      }
      for (const ProgramStep& step : text_.steps) run_step(run, step, block, scratch);
    }
    if (run.is_streaming) hwy::FlushStream();
  }

  // Runs the only step row by row, on operands as they are.
  void run_rows(const Run& run, const Block& block, Scratch& scratch) const {
    const ProgramStep& step = text_.steps[0];
    const size_t form = run.problem.row_form;
    const Loop streaming = run.is_streaming ? step.loops.streaming[form] : nullptr;
    const Loop loop = streaming != nullptr ? streaming : step.loops.forms[form];
    const bool is_copied = run.is_streaming && streaming == nullptr;
    LoopCall call;
    call.count = block.width;
    call.parameters = step.parameters;
    for (int64_t row = 0; row < block.rows; ++row) {
      for (int index = 0; index < step.from_count; ++index) {
        const auto number = static_cast<size_t>(step.from[index].index);
        call.from[index] = block.operands[number] +
                           row * run.problem.row_stride(number) * operands_[number].element_bytes;
      }
      std::byte* result = run.result + (block.result + row * block.width) * result_bytes_;
      call.to = is_copied ? scratch.of_result() : result;
      apply(step, loop, call);
      if (is_copied) stream_copy_(call.to, result, block.width * result_bytes_);
    }
  }

  void place_block(const Run& run, int64_t index, Block& block) const {
    const Blocks& blocks = run.problem.blocks;
    const LoopAxes& axes = run.problem.axes;
    const int64_t outer = index / blocks.in_outer;
    const int64_t inner = index - outer * blocks.in_outer;
    int64_t row = inner * blocks.rows_each;
    int64_t column = 0;
    block.rows = std::min(blocks.rows_each, blocks.rows - row);
    block.width = blocks.width;
    if (blocks.pieces > 1) {
      row = inner / blocks.pieces;
      column = inner % blocks.pieces * blocks.piece;
      block.rows = 1;
      block.width = std::min(blocks.piece, blocks.width - column);
    }
    block.result = (outer * blocks.rows + row) * blocks.width + column;
    for (size_t number = 0; number < operands_.size(); ++number) {
      const LoopAxes::Axes& strides = axes.strides[number];
      int64_t offset = row * strides[1] + column * strides[0];
      int64_t rest = outer;
      for (size_t axis = 2; axis < axes.count; rest /= axes.sizes[axis++]) {
        offset += rest % axes.sizes[axis] * strides[axis];
      }
      block.operands[number] = run.operands[number] + offset * operands_[number].element_bytes;
    }
  }

  void read_operand(const Run& run, size_t number, Block& block, Scratch& scratch) const {
    const std::byte* from = block.operands[number];
    const int64_t row_stride = run.problem.row_stride(number);
    const int64_t stride = run.problem.element_stride(number);
    const bool is_checked = run.problem.checked[number] != 0;
    const bool has_one_row = block.rows == 1;
    Read& read = block.reads[number];
    read = {from, stride == 0 && (has_one_row || row_stride == 0)};
    if (read.is_one) return;
    if (stride == 1 && (has_one_row || row_stride == block.width) && !is_checked) return;
    std::byte* slot = scratch.of_operand(static_cast<int>(number));
    const bool is_there = row_stride == 0 && block.gathered[number] == from &&
                          block.gathered_rows[number] >= block.rows;
    read.elements = slot;
    if (is_there) return;
    if (is_checked) {
      gather_checked(run, number, block, slot);
    } else {
      gather_rows_of(operands_[number].element_bytes, from, row_stride, stride, slot, block.rows,
                     block.width);
    }
    // Pieces of a row have different widths, so they are not reused.
    block.gathered[number] = run.problem.blocks.pieces == 1 ? from : nullptr;
    block.gathered_rows[number] = block.rows;
  }

  // Gathers zeros for positions past the end of the operand.
  void gather_checked(const Run& run, size_t number, const Block& block, std::byte* slot) const {
    const int64_t bytes = operands_[number].element_bytes;
    const int64_t stride = run.problem.element_stride(number);
    const std::byte* from = block.operands[number];
    int64_t left = run.problem.checked[number] - (from - run.operands[number]) / bytes;
    for (int64_t row = 0; row < block.rows; ++row) {
      const int64_t used = std::min(divide_up(std::max<int64_t>(left, 0), stride), block.width);
      gather_rows_of(bytes, from, 0, stride, slot, 1, used);
      std::memset(slot + used * bytes, 0, static_cast<size_t>((block.width - used) * bytes));
      slot += block.width * bytes;
      from += run.problem.row_stride(number) * bytes;
      left -= run.problem.row_stride(number);
    }
  }

  void run_step(const Run& run, const ProgramStep& step, Block& block, Scratch& scratch) const {
    LoopCall call;
    size_t form = 0;
    for (int index = 0; index < step.from_count; ++index) {
      const ValueRef& from = step.from[index];
      if (from.kind == ValueRef::Kind::Register) {
        call.from[index] = scratch.of_register(from.index);
        continue;
      }
      Read& read = block.reads[from.index];
      // If the loop has no form for this scalar operand, it is repeated.
      const bool is_condition = step.from_count == 3 && index == 0;
      const size_t bit = size_t{1} << (step.from_count == 3 ? std::max(index - 1, 0) : index);
      const bool is_other_one = step.from_count == 2 && form != 0;
      if (read.is_one && (step.from_count == 1 || is_condition || is_other_one)) {
        repeat_scalar(from.index, block, scratch);
      }
      if (read.is_one) form |= bit;
      call.from[index] = read.elements;
    }
    call.count = block.count();
    call.parameters = step.parameters;
    if (step.to.kind == ValueRef::Kind::Register) {
      call.to = scratch.of_register(step.to.index);
      return apply(step, step.loops.forms[form], call);
    }
    call.to = run.result + block.result * result_bytes_;
    if (!run.is_streaming) return apply(step, step.loops.forms[form], call);
    if (step.loops.streaming[form] != nullptr) {
      return apply(step, step.loops.streaming[form], call);
    }
    std::byte* result = static_cast<std::byte*>(call.to);
    call.to = scratch.of_result();
    apply(step, step.loops.forms[form], call);
    stream_copy_(call.to, result, call.count * result_bytes_);
  }

  void repeat_scalar(int number, Block& block, Scratch& scratch) const {
    Read& read = block.reads[number];
    std::byte* slot = scratch.of_operand(number);
    const int64_t bytes = operands_[static_cast<size_t>(number)].element_bytes;
    gather_rows_of(bytes, read.elements, 0, 0, slot, 1, block.count());
    block.gathered[number] = nullptr;
    read = {slot, false};
  }

  // Whether the program maps zero padding of operands to zero: found by computing one element.
  bool keeps_zero() const {
    alignas(kMaxElementBytes) std::array<std::byte, kMaxElementBytes> registers[kMaxRegisters];
    alignas(kMaxElementBytes) std::array<std::byte, kMaxElementBytes> result = {};
    const std::array<std::byte, kMaxElementBytes> zero = {};
    for (const ProgramStep& step : text_.steps) {
      LoopCall call;
      for (int index = 0; index < step.from_count; ++index) {
        const auto number = static_cast<size_t>(step.from[index].index);
        if (step.from[index].kind == ValueRef::Kind::Register) {
          call.from[index] = registers[number].data();
          continue;
        }
        const ProgramOperand& operand = text_.operands[number];
        const bool is_constant_one =
            operand.port < 0 &&
            static_cast<int64_t>(operand.elements.size()) == operand.element_bytes;
        const bool is_stored_so =
            !operand.is_row_major || (operand.port < 0 && operand.dims[1] != 1);
        const bool has_padding = is_stored_so && operand.dims[1] == text_.result.dims[1];
        if (!is_constant_one && !has_padding) return false;
        call.from[index] = is_constant_one ? operand.elements.data() : zero.data();
      }
      const bool is_register = step.to.kind == ValueRef::Kind::Register;
      call.to = is_register ? registers[static_cast<size_t>(step.to.index)].data() : result.data();
      call.count = 1;
      call.parameters = step.parameters;
      step.loops.forms[0](call);
    }
    // Compared bit by bit: negative zero is not zero.
    return result == zero;
  }

  Program text_;
  StorageOrder order_;
  int64_t result_bytes_ = 4;
  StreamCopy stream_copy_ = nullptr;
  std::vector<Operand> operands_;
  std::vector<BroadcastOperand> shapes_;  // of each operand
  bool keeps_zero_ = true;                // maps the padding of operands to that of the result
  Problem planned_;                       // for the sizes of text_
};

}  // namespace

std::unique_ptr<plugin::Kernel> make_program_kernel(Program text, const std::string& layout) {
  return std::make_unique<ProgramKernel>(std::move(text), layout);
}

}  // namespace tessera::native
