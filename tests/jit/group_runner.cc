#include "group_runner.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <stdexcept>

#include "base/threads/threads_test.h"
#include "codegen/expression/evaluate.h"

namespace tessera::jit {

using plugin::FusedAccess;
using plugin::FusedGroup;

namespace {

constexpr char kGuard = '\x5a';
constexpr size_t kGuardBytes = 128;

int64_t block_of(const std::string& layout) {
  return layout == "nchw8c" ? 8 : layout == "nchw16c" ? 16 : 0;
}

// The elements of the storage of a tensor in a layout.
int64_t storage_elements(const std::vector<int64_t>& dims, const std::string& layout) {
  int64_t count = 1;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    const int64_t block = axis == 1 ? block_of(layout) : 0;
    count *= block == 0 ? dims[axis] : (dims[axis] + block - 1) / block * block;
  }
  return count;
}

// Where a row-major element is stored in a layout.
int64_t storage_index(const std::vector<int64_t>& dims, const std::string& layout,
                      int64_t element) {
  if (layout.empty() || layout == "row_major") return element;
  std::vector<int64_t> index(dims.size());
  for (size_t axis = dims.size(); axis-- > 0; element /= dims[axis]) {
    index[axis] = element % dims[axis];
  }
  const int64_t block = block_of(layout);
  int64_t at = index[0];
  if (block != 0) at = at * ((dims[1] + block - 1) / block) + index[1] / block;
  for (size_t axis = 2; axis < dims.size(); ++axis) at = at * dims[axis] + index[axis];
  return block == 0 ? at * dims[1] + index[1] : at * block + index[1] % block;
}

bool is_whole_port(const std::vector<FusedAccess>& accesses, int32_t port) {
  return std::ranges::all_of(
      accesses, [&](const FusedAccess& access) { return access.port != port || access.is_whole; });
}

int64_t element_bytes_of(const std::vector<FusedAccess>& accesses, int32_t port) {
  for (const FusedAccess& access : accesses) {
    if (access.port == port) return plugin::element_bytes(access.data_type);
  }
  return 1;
}

// Memory between guard bytes, aligned as the contract says, or `offset` bytes behind that.
class GuardedBuffer {
 public:
  GuardedBuffer(size_t bytes, size_t offset)
      : bytes_(bytes), storage_(bytes + 2 * kGuardBytes + 64 + offset, kGuard) {
    const auto address = reinterpret_cast<uintptr_t>(storage_.data()) + kGuardBytes;
    begin_ = (address + 63) / 64 * 64 - reinterpret_cast<uintptr_t>(storage_.data()) + offset;
  }
  char* data() { return storage_.data() + begin_; }
  size_t bytes() const { return bytes_; }
  bool is_intact() const {
    const auto is_guard = [](char byte) { return byte == kGuard; };
    const auto at = storage_.begin() + static_cast<std::ptrdiff_t>(begin_);
    return std::all_of(storage_.begin(), at, is_guard) &&
           std::all_of(at + static_cast<std::ptrdiff_t>(bytes_), storage_.end(), is_guard);
  }

 private:
  size_t bytes_;
  std::vector<char> storage_;
  size_t begin_ = 0;
};

// Splits work into ranges of `grain`, of which two threads take turns.
void parallel_for(tessera_run_context* context, int64_t count, int64_t grain,
                  void (*body)(void*, int64_t, int64_t), void* argument) {
  run_at_once(context->threads, [&](int64_t thread) {
    for (int64_t begin = thread * grain; begin < count; begin += grain * context->threads) {
      body(argument, begin, std::min(begin + grain, count));
    }
  });
}

plugin::Buffer buffer_of(GuardedBuffer& memory, const std::vector<int64_t>& dims, int32_t request) {
  plugin::Buffer buffer = {};
  buffer.data = memory.data();
  buffer.bytes = static_cast<int64_t>(memory.bytes());
  buffer.rank = static_cast<int32_t>(dims.size());
  buffer.dims = dims.data();
  buffer.request = request;
  return buffer;
}

// Calls visit(element) for each element of the row-major tensor that an access reaches.
void for_elements(const FusedGroup& group, const FusedAccess& access,
                  const std::function<void(int64_t)>& visit) {
  for (int64_t point = 0; point < group.points(); ++point) {
    int64_t rest = point;
    int64_t element = access.offset;
    for (size_t axis = group.dims.size(); axis-- > 0; rest /= group.dims[axis]) {
      element += rest % group.dims[axis] * access.strides[axis];
    }
    visit(element);
  }
}

bool is_nan(int32_t data_type, const char* element) {
  if (data_type == TESSERA_FLOAT32) {
    float value = 0;
    std::memcpy(&value, element, sizeof(value));
    return std::isnan(value);
  }
  if (data_type == TESSERA_FLOAT64) {
    double value = 0;
    std::memcpy(&value, element, sizeof(value));
    return std::isnan(value);
  }
  uint16_t bits = 0;
  std::memcpy(&bits, element, sizeof(bits));
  return (bits & 0x7fff) > (data_type == TESSERA_FLOAT16 ? 0x7c00 : 0x7f80);
}

bool is_any_float(int32_t data_type) { return data_type >= TESSERA_FLOAT16; }

}  // namespace

int32_t GroupBuilder::append(int32_t operation, int32_t data_type,
                             std::initializer_list<int32_t> arguments, uint64_t bits,
                             int32_t index) {
  plugin::Instruction instruction = {};
  instruction.operation = operation;
  instruction.data_type = data_type;
  std::ranges::fill(instruction.arguments, -1);
  std::ranges::copy(arguments, instruction.arguments);
  instruction.index = index;
  instruction.bits = bits;
  group.instructions.push_back(instruction);
  return static_cast<int32_t>(group.instructions.size() - 1);
}

std::vector<int64_t> GroupBuilder::row_major() const {
  std::vector<int64_t> strides(group.dims.size(), 1);
  for (size_t axis = group.dims.size(); axis-- > 1;) {
    strides[axis - 1] = strides[axis] * group.dims[axis];
  }
  return strides;
}

int32_t GroupBuilder::operand(int32_t data_type, std::vector<int64_t> strides, int64_t offset) {
  const bool is_whole = strides.empty() && offset == 0;
  const auto port = static_cast<int32_t>(group.inputs.size());
  group.inputs.push_back(port);
  group.operands.push_back({.port = port,
                            .data_type = data_type,
                            .is_whole = is_whole,
                            .instruction = -1,
                            .offset = offset,
                            .strides = strides.empty() ? row_major() : std::move(strides)});
  return append(TESSERA_EXPRESSION_OPERAND, data_type, {}, 0,
                static_cast<int32_t>(group.operands.size() - 1));
}

int32_t GroupBuilder::constant(int32_t data_type, uint64_t bits) {
  return append(TESSERA_EXPRESSION_CONSTANT, data_type, {}, bits);
}

int32_t GroupBuilder::number(int32_t data_type, double value) {
  if (data_type == TESSERA_FLOAT32) {
    return constant(data_type, std::bit_cast<uint32_t>(static_cast<float>(value)));
  }
  if (data_type == TESSERA_FLOAT64) return constant(data_type, std::bit_cast<uint64_t>(value));
  const int64_t bits = 8 * plugin::element_bytes(data_type);
  const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  return constant(data_type, static_cast<uint64_t>(static_cast<int64_t>(value)) & mask);
}

void GroupBuilder::result(int32_t instruction, std::vector<int64_t> strides, int64_t offset) {
  const bool is_whole = strides.empty() && offset == 0;
  const auto port = static_cast<int32_t>(group.outputs.size());
  group.outputs.push_back(1000 + port);
  group.results.push_back({.port = port,
                           .data_type = type(instruction),
                           .is_whole = is_whole,
                           .instruction = instruction,
                           .offset = offset,
                           .strides = strides.empty() ? row_major() : std::move(strides)});
}

int64_t port_bytes(const FusedGroup& group, const std::vector<FusedAccess>& accesses,
                   int32_t port) {
  int64_t bytes = 0;
  for (const FusedAccess& access : accesses) {
    if (access.port != port) continue;
    int64_t last = access.offset;
    for (size_t axis = 0; axis < group.dims.size(); ++axis) {
      last += (group.dims[axis] - 1) * access.strides[axis];
    }
    bytes = std::max(bytes, (last + 1) * plugin::element_bytes(access.data_type));
  }
  return bytes;
}

Tensors run_kernel(plugin::Kernel& kernel, const FusedGroup& group, const Tensors& inputs,
                   const RunSettings& settings) {
  std::vector<GuardedBuffer> memory;
  memory.reserve(inputs.size() + group.outputs.size());
  std::vector<plugin::Buffer> given;
  std::vector<plugin::Buffer> taken;
  Tensors before;
  const auto layout_of = [&](const std::vector<FusedAccess>& accesses, size_t port) {
    return is_whole_port(accesses, static_cast<int32_t>(port)) ? settings.layout : "";
  };
  for (size_t port = 0; port < inputs.size(); ++port) {
    const std::string layout = layout_of(group.operands, port);
    const auto size =
        static_cast<size_t>(element_bytes_of(group.operands, static_cast<int32_t>(port)));
    const size_t bytes = layout.empty()
                             ? inputs[port].size()
                             : size * static_cast<size_t>(storage_elements(group.dims, layout));
    GuardedBuffer& buffer = memory.emplace_back(bytes, settings.address_offset);
    std::memset(buffer.data(), 0, bytes);
    for (size_t element = 0; element < inputs[port].size() / size; ++element) {
      const auto at = layout.empty() ? element
                                     : static_cast<size_t>(storage_index(
                                           group.dims, layout, static_cast<int64_t>(element)));
      std::memcpy(buffer.data() + at * size, inputs[port].data() + element * size, size);
    }
    before.emplace_back(buffer.data(), bytes);
    given.push_back(buffer_of(buffer, group.dims, 0));
  }
  for (size_t port = 0; port < group.outputs.size(); ++port) {
    if (port == 0 && settings.is_in_place) {
      taken.push_back(given[0]);
      taken[0].request = TESSERA_REQUEST_IN_PLACE;
      continue;
    }
    const std::string layout = layout_of(group.results, port);
    const auto number = static_cast<int32_t>(port);
    const auto bytes =
        static_cast<size_t>(layout.empty() ? port_bytes(group, group.results, number)
                                           : element_bytes_of(group.results, number) *
                                                 storage_elements(group.dims, layout));
    GuardedBuffer& buffer = memory.emplace_back(bytes, settings.address_offset);
    std::memset(buffer.data(), kGuard, bytes);
    taken.push_back(buffer_of(buffer, group.dims, TESSERA_REQUEST_WRITE));
  }
  tessera_run_context context = {
      .struct_size = sizeof(context), .threads = settings.threads, .parallel_for = parallel_for};
  plugin::RunContext run(&context);
  kernel.run(run, given, taken);
  for (const GuardedBuffer& buffer : memory) {
    if (!buffer.is_intact()) throw std::runtime_error("wrote beside a buffer");
  }
  for (size_t port = settings.is_in_place ? 1 : 0; port < inputs.size(); ++port) {
    if (std::memcmp(given[port].data, before[port].data(), before[port].size()) != 0) {
      throw std::runtime_error("changed an input");
    }
  }
  Tensors outputs;
  for (size_t port = 0; port < taken.size(); ++port) {
    const auto number = static_cast<int32_t>(port);
    const std::string layout = layout_of(group.results, port);
    const auto size = static_cast<size_t>(element_bytes_of(group.results, number));
    std::string& output =
        outputs.emplace_back(static_cast<size_t>(port_bytes(group, group.results, number)), '\0');
    auto* bytes = static_cast<char*>(taken[port].data);
    std::vector<bool> is_written(static_cast<size_t>(taken[port].bytes) / size, false);
    for (const FusedAccess& access : group.results) {
      if (access.port != number) continue;
      for_elements(group, access, [&](int64_t element) {
        const auto at = static_cast<size_t>(storage_index(group.dims, layout, element));
        std::memcpy(output.data() + static_cast<size_t>(element) * size, bytes + at * size, size);
        is_written[at] = true;
      });
    }
    const bool has_padding = block_of(layout) != 0;
    for (size_t element = 0; element < is_written.size(); ++element) {
      const char expected = has_padding ? '\0' : kGuard;
      for (size_t byte = 0; byte < size && !is_written[element]; ++byte) {
        if (bytes[element * size + byte] != expected) {
          throw std::runtime_error(has_padding ? "left something in the padding"
                                               : "wrote where no result is");
        }
      }
    }
  }
  return outputs;
}

Tensors evaluate(const FusedGroup& group, const Tensors& inputs) {
  Tensors outputs;
  std::vector<const void*> given;
  std::vector<void*> taken;
  for (const std::string& input : inputs) given.push_back(input.data());
  for (size_t port = 0; port < group.outputs.size(); ++port) {
    outputs.emplace_back(
        static_cast<size_t>(port_bytes(group, group.results, static_cast<int32_t>(port))), '\0');
  }
  for (std::string& output : outputs) taken.push_back(output.data());
  codegen::evaluate_group(group, given, taken);
  return outputs;
}

std::string explain_difference(const FusedGroup& group, const Tensors& expected,
                               const Tensors& found) {
  for (size_t port = 0; port < expected.size(); ++port) {
    if (expected[port] == found[port]) continue;
    const auto number = static_cast<int32_t>(port);
    int32_t data_type = TESSERA_FLOAT32;
    for (const FusedAccess& access : group.results) {
      if (access.port == number) data_type = access.data_type;
    }
    const auto size = static_cast<size_t>(plugin::element_bytes(data_type));
    for (size_t at = 0; at < expected[port].size(); at += size) {
      const char* left = expected[port].data() + at;
      const char* right = found[port].data() + at;
      if (std::memcmp(left, right, size) == 0) continue;
      if (is_any_float(data_type) && is_nan(data_type, left) && is_nan(data_type, right)) continue;
      uint64_t bits[2] = {};
      std::memcpy(&bits[0], left, size);
      std::memcpy(&bits[1], right, size);
      return "output " + std::to_string(port) + ", element " + std::to_string(at / size) +
             " of type " + std::to_string(data_type) + ": expected bits " +
             std::to_string(bits[0]) + ", found " + std::to_string(bits[1]);
    }
  }
  return "";
}

}  // namespace tessera::jit
