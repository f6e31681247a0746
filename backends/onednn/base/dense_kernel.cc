#include "base/dense_kernel.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "base/formats.h"
#include "base/implementation.h"
#include "base/primitive_runner.h"

namespace tessera::onednn {

using dnnl::memory;
using plugin::Buffer;
using plugin::RunContext;

namespace {

constexpr int64_t kClearGrain = 4096;  // blocks

// The primitive over `count` contiguous elements.
dnnl::primitive_desc_base describe_work(const dnnl::engine& engine, dnnl::primitive_attr attributes,
                                        const std::vector<PostOperation>& operations,
                                        int64_t count) {
  const memory::desc line = describe(Format::RowMajor, {count});
  dnnl::post_ops behind;
  for (size_t index = 1; index < operations.size(); ++index) {
    const PostOperation& operation = operations[index];
    if (operation.operand < 0) {
      behind.append_eltwise(operation.function.algorithm, operation.function.alpha,
                            operation.function.beta);
    } else {
      behind.append_binary(operation.arithmetic, line);
    }
  }
  attributes.set_post_ops(behind);
  const PostOperation& first = operations.front();
  if (first.operand >= 0) {
    return dnnl::binary::primitive_desc(engine, first.arithmetic, line, line, line, attributes,
                                        true);
  }
  return dnnl::eltwise_forward::primitive_desc(
      engine, dnnl::prop_kind::forward_inference, first.function.algorithm, line, line,
      first.function.alpha, first.function.beta, attributes, true);
}

// Equal for works with equal primitives.
std::string key_of(const std::vector<PostOperation>& operations, int64_t count) {
  std::string key = "dense " + std::to_string(count);
  const auto bits = [](float number) { return std::to_string(std::bit_cast<uint32_t>(number)); };
  for (const PostOperation& operation : operations) {
    key += operation.operand < 0
               ? ";" + std::to_string(static_cast<int>(operation.function.algorithm)) + " " +
                     bits(operation.function.alpha) + " " + bits(operation.function.beta)
               : ";with " + std::to_string(static_cast<int>(operation.arithmetic));
  }
  return key;
}

PrimitiveFacts facts_of(const dnnl::primitive_desc_base& description) {
  if (!description) return {};
  return {.is_there = true,
          .is_reference = is_reference(description),
          .implementation = description.impl_info_str(),
          .workspace_bytes = static_cast<int64_t>(description.scratchpad_desc().get_size())};
}

// Whether all operations keep zeros, if every operand is zero there too.
bool keeps_zero(const std::vector<PostOperation>& operations) {
  return std::all_of(operations.begin(), operations.end(), [](const PostOperation& operation) {
    if (operation.operand < 0) return operation.function.keeps_zero();
    return operation.arithmetic != dnnl::algorithm::binary_div;
  });
}

// The padding of a blocked tensor: the last lanes of every last block of channels.
struct Padding {
  int64_t images = 0;
  int64_t image_elements = 0;
  int64_t last_block = 0;  // offset in an image of its last block of channels
  int64_t pixels = 0;
  int64_t block = 1;
  int64_t used_lanes = 1;  // lanes of the last block that hold channels

  bool is_empty() const { return used_lanes == block; }
};

Padding padding_of(Format format, const std::vector<int64_t>& dims) {
  Padding padding;
  if (format != Format::Nchw8c && format != Format::Nchw16c) return padding;
  padding.block = format == Format::Nchw8c ? 8 : 16;
  padding.images = dims[0];
  padding.pixels = 1;
  for (size_t axis = 2; axis < dims.size(); ++axis) padding.pixels *= dims[axis];
  const int64_t blocks = (dims[1] + padding.block - 1) / padding.block;
  padding.used_lanes = dims[1] - (blocks - 1) * padding.block;
  padding.image_elements = blocks * padding.pixels * padding.block;
  padding.last_block = (blocks - 1) * padding.pixels * padding.block;
  return padding;
}

void clear(RunContext& context, const Padding& padding, float* elements) {
  context.parallel_for(
      padding.images * padding.pixels, kClearGrain, [&](int64_t begin, int64_t end) {
        for (int64_t index = begin; index < end; ++index) {
          float* block = elements + index / padding.pixels * padding.image_elements +
                         padding.last_block + index % padding.pixels * padding.block;
          std::fill(block + padding.used_lanes, block + padding.block, 0.0F);
        }
      });
}

class DenseKernel : public plugin::Kernel {
 public:
  DenseKernel(const dnnl::primitive_desc_base& description,
              const std::vector<PostOperation>& operations, const std::vector<size_t>& ports,
              int64_t count, const Padding& padding)
      : ports_(ports_of(operations, ports)),
        runner_(description, arguments_of(operations, describe(Format::RowMajor, {count}))),
        padding_(padding) {}

  int64_t workspace_bytes() const override {
    return static_cast<int64_t>(runner_.workspace_bytes());
  }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    runner_.execute(
        [&](size_t position) {
          return position < ports_.size() ? inputs[ports_[position]].data : outputs[0].data;
        },
        context.workspace());
    if (!padding_.is_empty()) clear(context, padding_, outputs[0].as<float>());
  }

 private:
  // The operands after the main one: the argument and the index of the operand of each operation.
  static std::vector<std::pair<int, size_t>> operands_of(
      const std::vector<PostOperation>& operations) {
    std::vector<std::pair<int, size_t>> operands;
    for (size_t index = 0; index < operations.size(); ++index) {
      if (operations[index].operand < 0) continue;
      const int argument =
          index == 0 ? DNNL_ARG_SRC_1
                     : DNNL_ARG_ATTR_MULTIPLE_POST_OP(static_cast<int>(index - 1)) | DNNL_ARG_SRC_1;
      operands.emplace_back(argument, static_cast<size_t>(operations[index].operand));
    }
    return operands;
  }

  // The port of each argument that is read.
  static std::vector<size_t> ports_of(const std::vector<PostOperation>& operations,
                                      const std::vector<size_t>& ports) {
    std::vector<size_t> read = {ports[0]};
    for (const auto& [argument, operand] : operands_of(operations)) read.push_back(ports[operand]);
    return read;
  }

  // The arguments that are read, then the result. All are lines of equal length.
  static std::vector<PrimitiveRunner::Argument> arguments_of(
      const std::vector<PostOperation>& operations, const memory::desc& line) {
    std::vector<PrimitiveRunner::Argument> arguments = {{DNNL_ARG_SRC_0, line}};
    for (const auto& [argument, operand] : operands_of(operations)) {
      arguments.push_back({argument, line});
    }
    arguments.push_back({DNNL_ARG_DST, line});
    return arguments;
  }

  std::vector<size_t> ports_;  // of the arguments that are read
  PrimitiveRunner runner_;
  Padding padding_;
};

std::unique_ptr<plugin::Kernel> build(const dnnl::engine& engine,
                                      const dnnl::primitive_attr& attributes, const DenseWork& work,
                                      const std::vector<size_t>& ports, const std::string& layout) {
  const std::optional<Format> format = format_named(layout);
  if (!format || !can_hold(*format, work.type.dims.size())) {
    throw plugin::Failure(TESSERA_UNSUPPORTED, "does not know the layout '" + layout + "'");
  }
  const auto bytes = static_cast<int64_t>(describe(*format, work.type.dims).get_size());
  const int64_t count = bytes / static_cast<int64_t>(sizeof(float));
  const dnnl::primitive_desc_base description =
      describe_work(engine, attributes, work.operations, count);
  if (!description) throw plugin::Failure(TESSERA_UNSUPPORTED, "has no such elementwise primitive");
  Padding padding;
  if (!keeps_zero(work.operations)) padding = padding_of(*format, work.type.dims);
  return std::make_unique<DenseKernel>(description, work.operations, ports, count, padding);
}

}  // namespace

bool offer_dense(Context& context, const DenseWork& work, bool accepts_reference) {
  const int64_t count = work.type.elements();
  const PrimitiveFacts& facts = context.facts(key_of(work.operations, count), [&] {
    return facts_of(describe_work(context.engine(), context.attributes(), work.operations, count));
  });
  if (!facts.is_there || (facts.is_reference && !accepts_reference)) return false;
  const bool has_sigmoid = std::ranges::any_of(work.operations, [](const PostOperation& operation) {
    return operation.function.algorithm == dnnl::algorithm::eltwise_logistic;
  });
  if (context.is_useless(facts.implementation, has_sigmoid)) return false;
  plugin::Candidate candidate;
  candidate.nodes = work.nodes;
  std::sort(candidate.nodes.begin(), candidate.nodes.end());
  candidate.algorithm = "dense:" + facts.implementation;
  std::vector<size_t> ports;
  for (const int32_t value : work.inputs) {
    const auto same = [value](const plugin::InputPort& port) { return port.value == value; };
    const auto found = std::find_if(candidate.inputs.begin(), candidate.inputs.end(), same);
    ports.push_back(static_cast<size_t>(found - candidate.inputs.begin()));
    if (found != candidate.inputs.end()) continue;
    plugin::InputPort port;
    port.value = value;
    port.layout = TESSERA_LAYOUT_ANY_DENSE;
    // oneDNN's loads need no alignment; otherwise the host would copy large arrays of NumPy.
    port.alignment_bytes = sizeof(float);
    candidate.inputs.push_back(std::move(port));
  }
  plugin::OutputPort output;
  output.value = work.output;
  output.layout = TESSERA_LAYOUT_ANY_DENSE;
  // Another read of the value that is overwritten would see the result.
  if (std::count(work.inputs.begin(), work.inputs.end(), work.inputs.front()) == 1) {
    output.requests = TESSERA_REQUEST_WRITE | TESSERA_REQUEST_IN_PLACE;
    output.in_place_input = 0;
  }
  candidate.outputs.push_back(std::move(output));
  const double bytes =
      static_cast<double>(count) * sizeof(float) * static_cast<double>(candidate.inputs.size() + 1);
  candidate.optimistic_seconds =
      context.optimistic_seconds(static_cast<double>(count), bytes, facts.implementation);
  // The estimate for unpadded elements; a padded layout needs no more.
  candidate.workspace_bytes = facts.workspace_bytes;
  candidate.build = [engine = context.engine(), attributes = context.attributes(), work,
                     ports](const plugin::BuildOptions& options) {
    return build(engine, attributes, work, ports, options.dense_layout);
  };
  context.add(std::move(candidate));
  return true;
}

}  // namespace tessera::onednn
