#include "copy/copy_offer.h"

#include <algorithm>
#include <utility>

#include "base/grain.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;
using plugin::Value;

namespace {

// Pieces of work for each thread, so that a thread that starts late leaves work to others.
constexpr int64_t kPiecesPerThread = 8;

class CopyKernel : public plugin::Kernel {
 public:
  CopyKernel(std::vector<PortCopy> port_copies, int64_t element_bytes, int64_t output_bytes,
             bool is_same, int32_t threads)
      : port_copies_(std::move(port_copies)),
        element_bytes_(element_bytes),
        output_bytes_(output_bytes),
        is_same_(is_same) {
    for (const PortCopy& port_copy : port_copies_) {
      copies_.push_back(copy_of(port_copy, port_copy.strides.data()));
      ends_.push_back((ends_.empty() ? 0 : ends_.back()) + copies_.back().units());
      starts_.push_back(port_copy.from_offset(port_copy.strides.data()) * element_bytes_);
    }
    is_even_ = std::all_of(copies_.begin(), copies_.end(), [&](const StridedCopy& copy) {
      return copy.units() == copies_.front().units();
    });
    const int64_t units = ends_.empty() ? 0 : ends_.back();
    grain_ = units / (std::max(threads, 1) * kPiecesPerThread);
    for (const StridedCopy& copy : copies_) grain_ = std::max(grain_, copy.units_of(kGrainBytes));
  }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    if (is_same_ && inputs[0].data == outputs[0].data) return;
    const bool is_strided = std::any_of(
        inputs.begin(), inputs.end(), [](const Buffer& input) { return input.strides != nullptr; });
    if (is_strided) return run_strided(context, inputs, outputs);
    if (ends_.empty() || ends_.back() == 0) return;
    context.parallel_for(ends_.back(), grain_, [&](int64_t begin, int64_t end) {
      if (is_even_ && port_copies_.size() > 1) return run_interleaved(begin, end, inputs, outputs);
      size_t index = 0;
      while (ends_[index] <= begin) ++index;
      for (; begin < end; ++index) {
        const int64_t first = index == 0 ? 0 : ends_[index - 1];
        const int64_t last = std::min(end, ends_[index]);
        if (last <= begin) continue;
        const PortCopy& port_copy = port_copies_[index];
        copies_[index].run(begin - first, last - first,
                           inputs[port_copy.input].as<const char>() + starts_[index],
                           target_of(port_copy, outputs));
        begin = last;
      }
    });
  }

 private:
  StridedCopy copy_of(const PortCopy& port_copy, const int64_t* strides) const {
    return {port_copy.loop_nest(strides), element_bytes_, kernels_, output_bytes_};
  }

  // Copies that write parts of one tensor run in turns, so that neighbouring parts are written
  // while their cache lines are still cached.
  void run_interleaved(int64_t begin, int64_t end, std::span<const Buffer> inputs,
                       std::span<const Buffer> outputs) const {
    const auto count = static_cast<int64_t>(port_copies_.size());
    for (int64_t position = begin; position < end; ++position) {
      const auto index = static_cast<size_t>(position % count);
      const PortCopy& port_copy = port_copies_[index];
      copies_[index].run(position / count, position / count + 1,
                         inputs[port_copy.input].as<const char>() + starts_[index],
                         target_of(port_copy, outputs));
    }
  }

  char* target_of(const PortCopy& port_copy, std::span<const Buffer> outputs) const {
    return outputs[port_copy.output].as<char>() + port_copy.to_offset * element_bytes_;
  }

  // Strided inputs need other copies than those planned for dense inputs. Planning takes far less
  // time than copying.
  void run_strided(RunContext& context, std::span<const Buffer> inputs,
                   std::span<const Buffer> outputs) const {
    for (const PortCopy& port_copy : port_copies_) {
      const Buffer& input = inputs[port_copy.input];
      const int64_t* strides = input.strides != nullptr ? input.strides : port_copy.strides.data();
      const StridedCopy copy = copy_of(port_copy, strides);
      const char* from = input.as<const char>() + port_copy.from_offset(strides) * element_bytes_;
      context.parallel_for(copy.units(), copy.units_of(kGrainBytes),
                           [&](int64_t begin, int64_t end) {
                             copy.run(begin, end, from, target_of(port_copy, outputs));
                           });
    }
  }

  std::vector<PortCopy> port_copies_;
  std::vector<StridedCopy> copies_;
  std::vector<int64_t> ends_;    // by copy: units up to its end
  std::vector<int64_t> starts_;  // by copy: bytes into the dense input
  int64_t element_bytes_;
  int64_t output_bytes_;  // of the largest output
  bool is_same_;
  bool is_even_ = false;  // all copies have the same number of units
  CopyKernels kernels_;
  int64_t grain_ = 1;
};

}  // namespace

LoopNest PortCopy::loop_nest(const int64_t* input_strides) const {
  LoopNest nest;
  for (const Axis& axis : axes) {
    nest.add(axis.count, axis.input_axis < 0 ? 0 : input_strides[axis.input_axis] * axis.step,
             axis.to);
  }
  return nest;
}

int64_t PortCopy::from_offset(const int64_t* input_strides) const {
  int64_t offset = 0;
  for (size_t axis = 0; axis < starts.size(); ++axis) offset += starts[axis] * input_strides[axis];
  return offset;
}

void offer_copies(ProposeContext& context, const Node& node, const CopyOffer& offer) {
  plugin::Candidate candidate;
  candidate.nodes = {node.id()};
  const plugin::Type type = offer.inputs.front().type();
  double bytes = 0;
  for (const Value& input : offer.inputs) {
    candidate.inputs.push_back({.value = input.id(),
                                .layout = offer.input_layout,
                                .accepts_strides = offer.input_layout == TESSERA_LAYOUT_DEFAULT,
                                .alignment_bytes = plugin::element_bytes(type.data_type)});
  }
  int64_t largest = 0;
  for (const Value& output : offer.outputs) {
    plugin::OutputPort port;
    port.value = output.id();
    port.layout = offer.output_layout;
    if (offer.is_same) {
      port.requests = TESSERA_REQUEST_WRITE | TESSERA_REQUEST_IN_PLACE;
      port.in_place_input = 0;
    }
    candidate.outputs.push_back(port);
    largest = std::max(largest, output.type().dense_bytes());
    bytes += 2 * static_cast<double>(output.type().dense_bytes());
  }
  const int64_t element_bytes = plugin::element_bytes(type.data_type);
  if (!offer.port_copies.empty()) {
    const PortCopy& first = offer.port_copies.front();
    const StridedCopy copy(first.loop_nest(first.strides.data()), element_bytes, CopyKernels(),
                           largest);
    candidate.algorithm = copy.form_name();
  }
  candidate.optimistic_seconds = context.optimistic_seconds(0, bytes);
  candidate.build = [port_copies = offer.port_copies, element_bytes, largest,
                     is_same = offer.is_same](const plugin::BuildOptions& options) {
    return std::make_unique<CopyKernel>(port_copies, element_bytes, largest, is_same,
                                        options.threads);
  };
  context.add(std::move(candidate));
}

std::optional<std::string> explain_uncopyable(const Value& value) {
  if (!value.is_present()) return "takes nodes with all inputs and outputs present only";
  const plugin::Type type = value.type();
  if (!type.is_known()) return "takes tensors of known shape only";
  if (plugin::element_bytes(type.data_type) == 0) return "does not take strings";
  return std::nullopt;
}

std::optional<std::string> explain_uncopyable(const Node& node) {
  if (auto reason = explain_uncopyable(node.input(0))) return reason;
  for (size_t index = 0; index < node.output_count(); ++index) {
    if (auto reason = explain_uncopyable(node.output(index))) return reason;
  }
  return std::nullopt;
}

size_t port_of(const plugin::Candidate& candidate, const Value& value) {
  size_t port = 0;
  while (candidate.inputs[port].value != value.id()) ++port;
  return port;
}

}  // namespace tessera::native
