#include "program.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "dense.h"
#include "element_type.h"
#include "hwy/cache_control.h"
#include "streaming.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::RunContext;

namespace {

// Elements that all steps work on before the next ones: few enough for the nearest cache.
constexpr int64_t kBlock = 1024;
// Elements that one thread works on at least: waking another one takes as long as some thousand.
constexpr int64_t kGrain = 16 * 1024;
constexpr int64_t kMostElementBytes = 8;
// The same where the result is streamed: stores that pass by the caches go on while later elements
// are computed, as far as they are few.
constexpr int64_t kStreamBlock = 256;
// Elements of a block where nothing is kept between steps.
constexpr int64_t kLargeBlock = 16 * 1024;
// A row that is worth a call of its own; shorter ones are gathered, operands stretched.
constexpr int64_t kLeastRow = 48;
// Slots of scratch memory do not begin at one place of their pages: a load just behind a store to
// the same place of another page waits for it.
constexpr int64_t kSlotBytes = kBlock * kMostElementBytes + 5 * kLineBytes;
constexpr size_t kSlots = kMostRegisters + kMostOperands + 1;

struct Scratch {
  // Not initialised: most of it is never touched.
  alignas(kLineBytes) std::byte slots[kSlots][kSlotBytes];

  std::byte* of_register(int index) { return slots[index]; }
  std::byte* of_operand(int index) { return slots[kMostRegisters + static_cast<size_t>(index)]; }
  std::byte* of_result() { return slots[kMostRegisters + kMostOperands]; }
};

// Rows of elements, `row_stride` and `stride` elements apart, one behind the other.
template <class T>
void gather_rows(const T* from, int64_t row_stride, int64_t stride, T* to, int64_t rows,
                 int64_t width) {
  // One row for all: each copy doubles what is there.
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
  find_moving_loop(element_bytes, [&]<class T>() {
    gather_rows(static_cast<const T*>(from), row_stride, stride, static_cast<T*>(to), rows, width);
  });
}

// An operand within the loop: where its elements lie for each of the loop's axes.
struct Operand {
  int port = -1;
  const std::byte* constant = nullptr;
  int64_t element_bytes = 4;
  std::vector<int64_t> outer;  // strides of the axes around rows
  int64_t row = 0;             // stride from row to row
  int64_t element = 1;         // stride from element to element
};

// What is read of an operand in one block.
struct Read {
  const std::byte* elements = nullptr;
  bool is_one = false;  // one element for all
};

// The loop: `outer` axes around `rows` rows of `width` elements, cut into blocks.
struct Blocks {
  std::vector<int64_t> outer;
  int64_t outer_count = 1;
  int64_t rows = 1;
  int64_t width = 1;
  int64_t rows_each = 1;  // rows of a block, where rows are short
  int64_t piece = 1;      // elements of a block, where rows are long
  int64_t pieces = 1;     // blocks of a row, then
  int64_t in_outer = 1;   // blocks for each index of the outer axes
  int64_t count() const { return outer_count * in_outer; }
};

Blocks cut(const std::vector<int64_t>& sizes, int64_t block) {
  Blocks blocks;
  blocks.width = sizes.back();
  if (sizes.size() > 1) blocks.rows = sizes[sizes.size() - 2];
  if (sizes.size() > 2) blocks.outer.assign(sizes.begin(), sizes.end() - 2);
  for (const int64_t size : blocks.outer) blocks.outer_count *= size;
  blocks.piece = block;
  blocks.pieces = (blocks.width + block - 1) / block;
  if (blocks.pieces == 1) {
    blocks.rows_each = std::min(blocks.rows, block / blocks.width);
    // So many rows are whole lines of a cache.
    if (blocks.rows_each > kLineBytes) blocks.rows_each -= blocks.rows_each % kLineBytes;
  }
  blocks.in_outer = (blocks.rows + blocks.rows_each - 1) / blocks.rows_each * blocks.pieces;
  return blocks;
}

class Program : public plugin::Kernel {
 public:
  Program(ProgramText text, const std::string& layout)
      : text_(std::move(text)),
        storage_(dense_storage(layout, text_.result)),
        result_bytes_(plugin::element_bytes(text_.result.data_type)),
        stream_copy_(find_stream_copy()) {
    if (storage_.elements == 0) return;
    const std::vector<int64_t> sizes = storage_sizes(layout, text_.result.dims);
    std::vector<std::vector<int64_t>> strides;
    for (ProgramOperand& operand : text_.operands) {
      const bool is_padded = pad(operand, layout);
      strides.push_back(strides_in(
          layout, text_.result.dims,
          {operand.is_row_major ? TESSERA_LAYOUT_DEFAULT : layout, operand.dims}, is_padded));
    }
    const LoopAxes axes = joined(sizes, strides);
    for (size_t index = 0; index < text_.operands.size(); ++index) {
      place_operand(text_.operands[index], axes.strides[index]);
    }
    const bool has_form = text_.steps.size() == 1 && has_row_form();
    const bool needs_scratch = !has_form || text_.steps[0].loops.streaming[row_form_] == nullptr;
    const int64_t width = axes.sizes.back();
    is_by_rows_ = has_form && width >= kLeastRow;
    const bool is_streaming = storage_.elements * result_bytes_ >= kStreamBytes;
    const int64_t block = is_streaming && width > kBlock ? kStreamBlock : kBlock;
    blocks_ = cut(axes.sizes, is_by_rows_ && !needs_scratch ? kLargeBlock : block);
    is_plain_ = has_form && axes.sizes.size() == 1;
    must_clear_ = !storage_.padding.is_empty() && !keeps_zero();
  }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    if (storage_.elements == 0) return;
    Run run;
    run.result = outputs[0].as<std::byte>();
    run.is_streaming = storage_.elements * result_bytes_ >= kStreamBytes;
    for (size_t index = 0; index < operands_.size(); ++index) {
      const Operand& operand = operands_[index];
      run.operands[index] = operand.port < 0
                                ? operand.constant
                                : inputs[static_cast<size_t>(operand.port)].as<std::byte>();
      if (run.operands[index] == run.result) run.is_streaming = false;
    }
    const bool is_plain =
        is_plain_ && (!run.is_streaming || text_.steps[0].loops.streaming[row_form_] != nullptr);
    if (is_plain) {
      run_plain(context, run);
    } else {
      const int64_t each = std::max<int64_t>(1, storage_.elements / blocks_.count());
      context.parallel_for(blocks_.count(), std::max<int64_t>(1, kGrain / each),
                           [&](int64_t begin, int64_t end) { run_blocks(run, begin, end); });
    }
    if (must_clear_) clear_padding(context, storage_.padding, run.result, result_bytes_);
  }

 private:
  struct Run {
    std::byte* result = nullptr;
    const std::byte* operands[kMostOperands] = {};
    bool is_streaming = false;
  };

  // Where each operand's elements stand for the block at hand.
  struct Block {
    int64_t result = 0;  // index of the first element
    int64_t rows = 1;
    int64_t width = 1;
    const std::byte* places[kMostOperands] = {};  // of each operand's first element
    Read reads[kMostOperands] = {};
    // What the slots of operands hold, so that rows that repeat are gathered once.
    const std::byte* gathered[kMostOperands] = {};
    int64_t gathered_rows[kMostOperands] = {};

    int64_t count() const { return rows * width; }
  };

  // Adds zeros behind the channels of a constant, up to whole blocks.
  static bool pad(ProgramOperand& operand, const std::string& layout) {
    const int64_t block = block_of(layout);
    if (block == 0 || operand.port >= 0 || operand.dims[1] == 1 || operand.dims[1] % block == 0) {
      return false;
    }
    int64_t inner = operand.element_bytes;
    for (size_t axis = 2; axis < operand.dims.size(); ++axis) inner *= operand.dims[axis];
    const auto from = static_cast<size_t>(operand.dims[1] * inner);
    const auto to = static_cast<size_t>((operand.dims[1] + block - 1) / block * block * inner);
    std::vector<std::byte> padded(static_cast<size_t>(operand.dims[0]) * to);
    for (size_t picture = 0; picture < static_cast<size_t>(operand.dims[0]); ++picture) {
      std::memcpy(padded.data() + picture * to, operand.elements.data() + picture * from, from);
    }
    operand.elements = std::move(padded);
    return true;
  }

  void place_operand(const ProgramOperand& given, const std::vector<int64_t>& strides) {
    Operand operand;
    operand.port = given.port;
    operand.constant = given.elements.data();
    operand.element_bytes = given.element_bytes;
    operand.element = strides.back();
    if (strides.size() > 1) operand.row = strides[strides.size() - 2];
    if (strides.size() > 2) operand.outer.assign(strides.begin(), strides.end() - 2);
    operands_.push_back(std::move(operand));
  }

  // Whether the one step has a loop for its operands as they are, a row at once.
  bool has_row_form() {
    const ProgramStep& step = text_.steps[0];
    size_t form = 0;
    for (int index = 0; index < step.from_count; ++index) {
      const int64_t stride = operands_[static_cast<size_t>(step.from[index].index)].element;
      if (stride == 1) continue;
      if (stride != 0 || step.from_count == 1 || (step.from_count == 3 && index == 0)) return false;
      form |= size_t{1} << (step.from_count == 3 ? index - 1 : index);
    }
    row_form_ = form;
    return step.loops.forms[form] != nullptr;
  }

  void run_plain(RunContext& context, const Run& run) const {
    const ProgramStep& step = text_.steps[0];
    const Loop loop =
        run.is_streaming ? step.loops.streaming[row_form_] : step.loops.forms[row_form_];
    context.parallel_for(blocks_.pieces, kGrain / blocks_.piece, [&](int64_t begin, int64_t end) {
      const int64_t first = begin * blocks_.piece;
      LoopCall call;
      for (int index = 0; index < step.from_count; ++index) {
        const auto operand = static_cast<size_t>(step.from[index].index);
        const Operand& placed = operands_[operand];
        call.from[index] = run.operands[operand] + first * placed.element * placed.element_bytes;
      }
      call.to = run.result + first * result_bytes_;
      call.count = std::min(end * blocks_.piece, blocks_.width) - first;
      call.parameters = step.parameters;
      loop(call);
      if (run.is_streaming) hwy::FlushStream();
    });
  }

  void run_blocks(const Run& run, int64_t begin, int64_t end) const {
    Scratch scratch;
    Block block;
    for (int64_t index = begin; index < end; ++index) {
      place_block(run, index, block);
      if (is_by_rows_) {
        run_rows(run, block, scratch);
        continue;
      }
      for (size_t number = 0; number < operands_.size(); ++number) {
        read_operand(number, block, scratch);
      }
      for (const ProgramStep& step : text_.steps) run_step(run, step, block, scratch);
    }
    if (run.is_streaming) hwy::FlushStream();
  }

  // The one step, row by row, on operands as they are.
  void run_rows(const Run& run, const Block& block, Scratch& scratch) const {
    const ProgramStep& step = text_.steps[0];
    const Loop streaming = run.is_streaming ? step.loops.streaming[row_form_] : nullptr;
    const Loop loop = streaming != nullptr ? streaming : step.loops.forms[row_form_];
    const bool is_copied = run.is_streaming && streaming == nullptr;
    LoopCall call;
    call.count = block.width;
    call.parameters = step.parameters;
    for (int64_t row = 0; row < block.rows; ++row) {
      for (int index = 0; index < step.from_count; ++index) {
        const auto number = static_cast<size_t>(step.from[index].index);
        const Operand& operand = operands_[number];
        call.from[index] = block.places[number] + row * operand.row * operand.element_bytes;
      }
      std::byte* result = run.result + (block.result + row * block.width) * result_bytes_;
      call.to = is_copied ? scratch.of_result() : result;
      loop(call);
      if (is_copied) stream_copy_(call.to, result, block.width * result_bytes_);
    }
  }

  void place_block(const Run& run, int64_t index, Block& block) const {
    const int64_t outer = index / blocks_.in_outer;
    const int64_t inner = index - outer * blocks_.in_outer;
    int64_t row = inner * blocks_.rows_each;
    int64_t column = 0;
    block.rows = std::min(blocks_.rows_each, blocks_.rows - row);
    block.width = blocks_.width;
    if (blocks_.pieces > 1) {
      row = inner / blocks_.pieces;
      column = inner % blocks_.pieces * blocks_.piece;
      block.rows = 1;
      block.width = std::min(blocks_.piece, blocks_.width - column);
    }
    block.result = (outer * blocks_.rows + row) * blocks_.width + column;
    for (size_t number = 0; number < operands_.size(); ++number) {
      const Operand& operand = operands_[number];
      int64_t place = row * operand.row + column * operand.element;
      int64_t rest = outer;
      for (size_t axis = blocks_.outer.size(); axis-- > 0; rest /= blocks_.outer[axis]) {
        place += rest % blocks_.outer[axis] * operand.outer[axis];
      }
      block.places[number] = run.operands[number] + place * operand.element_bytes;
    }
  }

  void read_operand(size_t number, Block& block, Scratch& scratch) const {
    const Operand& operand = operands_[number];
    const std::byte* from = block.places[number];
    const bool has_one_row = block.rows == 1;
    Read& read = block.reads[number];
    read = {from, operand.element == 0 && (has_one_row || operand.row == 0)};
    if (read.is_one) return;
    if (operand.element == 1 && (has_one_row || operand.row == block.width)) return;
    std::byte* slot = scratch.of_operand(static_cast<int>(number));
    const bool is_there = operand.row == 0 && block.gathered[number] == from &&
                          block.gathered_rows[number] >= block.rows;
    read.elements = slot;
    if (is_there) return;
    gather_rows_of(operand.element_bytes, from, operand.row, operand.element, slot, block.rows,
                   block.width);
    // Of pieces of a row, each has another width.
    block.gathered[number] = blocks_.pieces == 1 ? from : nullptr;
    block.gathered_rows[number] = block.rows;
  }

  void run_step(const Run& run, const ProgramStep& step, Block& block, Scratch& scratch) const {
    LoopCall call;
    size_t form = 0;
    for (int index = 0; index < step.from_count; ++index) {
      const Place& from = step.from[index];
      if (from.kind == Place::Kind::Register) {
        call.from[index] = scratch.of_register(from.index);
        continue;
      }
      Read& read = block.reads[from.index];
      // What has no form for one element gets it as many times as are wanted.
      const bool is_condition = step.from_count == 3 && index == 0;
      const size_t bit = size_t{1} << (step.from_count == 3 ? std::max(index - 1, 0) : index);
      const bool is_other_one = step.from_count == 2 && form != 0;
      if (read.is_one && (step.from_count == 1 || is_condition || is_other_one)) {
        repeat(from.index, block, scratch);
      }
      if (read.is_one) form |= bit;
      call.from[index] = read.elements;
    }
    call.count = block.count();
    call.parameters = step.parameters;
    if (step.to.kind == Place::Kind::Register) {
      call.to = scratch.of_register(step.to.index);
      return step.loops.forms[form](call);
    }
    call.to = run.result + block.result * result_bytes_;
    if (!run.is_streaming) return step.loops.forms[form](call);
    if (step.loops.streaming[form] != nullptr) return step.loops.streaming[form](call);
    std::byte* result = static_cast<std::byte*>(call.to);
    call.to = scratch.of_result();
    step.loops.forms[form](call);
    stream_copy_(call.to, result, call.count * result_bytes_);
  }

  void repeat(int number, Block& block, Scratch& scratch) const {
    Read& read = block.reads[number];
    std::byte* slot = scratch.of_operand(number);
    const int64_t bytes = operands_[static_cast<size_t>(number)].element_bytes;
    gather_rows_of(bytes, read.elements, 0, 0, slot, 1, block.count());
    block.gathered[number] = nullptr;
    read = {slot, false};
  }

  // Whether padding, where operands hold zero, becomes zero again: found by computing it.
  bool keeps_zero() const {
    alignas(kMostElementBytes) std::array<std::byte, kMostElementBytes> registers[kMostRegisters];
    alignas(kMostElementBytes) std::array<std::byte, kMostElementBytes> result = {};
    const std::array<std::byte, kMostElementBytes> zero = {};
    for (const ProgramStep& step : text_.steps) {
      LoopCall call;
      for (int index = 0; index < step.from_count; ++index) {
        const auto number = static_cast<size_t>(step.from[index].index);
        if (step.from[index].kind == Place::Kind::Register) {
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
      const bool is_register = step.to.kind == Place::Kind::Register;
      call.to = is_register ? registers[static_cast<size_t>(step.to.index)].data() : result.data();
      call.count = 1;
      call.parameters = step.parameters;
      step.loops.forms[0](call);
    }
    // Bit by bit: a negative zero is none.
    return result == zero;
  }

  ProgramText text_;
  DenseStorage storage_;
  int64_t result_bytes_ = 4;
  StreamCopy stream_copy_ = nullptr;
  Blocks blocks_;
  std::vector<Operand> operands_;
  bool is_plain_ = false;    // one step, one row
  bool is_by_rows_ = false;  // one step, and rows that are worth a call
  size_t row_form_ = 0;
  bool must_clear_ = false;
};

}  // namespace

std::unique_ptr<plugin::Kernel> build_program(ProgramText text, const std::string& layout) {
  return std::make_unique<Program>(std::move(text), layout);
}

}  // namespace tessera::native
