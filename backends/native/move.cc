#include "move.h"

#include <algorithm>
#include <utility>

namespace tessera::native {

using plugin::Buffer;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;
using plugin::Value;

namespace {

// Bytes that one thread copies at least.
constexpr int64_t kGrainBytes = 64 * 1024;
// Pieces for each thread, so that one that starts late leaves work to others.
constexpr int64_t kPiecesPerThread = 8;

class MoveKernel : public plugin::Kernel {
 public:
  MoveKernel(std::vector<Move> moves, int64_t element_bytes, int64_t output_bytes, bool is_same,
             int32_t threads)
      : moves_(std::move(moves)),
        element_bytes_(element_bytes),
        output_bytes_(output_bytes),
        is_same_(is_same) {
    for (const Move& move : moves_) {
      copies_.push_back(copy_of(move, move.strides.data()));
      ends_.push_back((ends_.empty() ? 0 : ends_.back()) + copies_.back().units());
      starts_.push_back(move.from_offset(move.strides.data()) * element_bytes_);
    }
    is_even_ = std::all_of(copies_.begin(), copies_.end(), [&](const StridedCopy& copy) {
      return copy.units() == copies_.front().units();
    });
    const int64_t units = ends_.empty() ? 0 : ends_.back();
    grain_ = std::max(kGrainBytes / StridedCopy::kUnitBytes,
                      units / (std::max(threads, 1) * kPiecesPerThread));
  }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    if (is_same_ && inputs[0].data == outputs[0].data) return;
    const bool is_strided = std::any_of(
        inputs.begin(), inputs.end(), [](const Buffer& input) { return input.strides != nullptr; });
    if (is_strided) return run_strided(context, inputs, outputs);
    if (ends_.empty() || ends_.back() == 0) return;
    context.parallel_for(ends_.back(), grain_, [&](int64_t begin, int64_t end) {
      if (is_even_ && moves_.size() > 1) return run_in_turns(begin, end, inputs, outputs);
      size_t index = 0;
      while (ends_[index] <= begin) ++index;
      for (; begin < end; ++index) {
        const int64_t first = index == 0 ? 0 : ends_[index - 1];
        const int64_t last = std::min(end, ends_[index]);
        if (last <= begin) continue;
        const Move& move = moves_[index];
        copies_[index].run(begin - first, last - first,
                           inputs[move.input].as<const char>() + starts_[index],
                           target_of(move, outputs));
        begin = last;
      }
    });
  }

 private:
  StridedCopy copy_of(const Move& move, const int64_t* strides) const {
    return {move.nest(strides), element_bytes_, kernels_, output_bytes_};
  }

  // Parts of one tensor lie side by side in it, and are copied so while their lines are at hand.
  void run_in_turns(int64_t begin, int64_t end, std::span<const Buffer> inputs,
                    std::span<const Buffer> outputs) const {
    const auto count = static_cast<int64_t>(moves_.size());
    for (int64_t place = begin; place < end; ++place) {
      const auto index = static_cast<size_t>(place % count);
      const Move& move = moves_[index];
      copies_[index].run(place / count, place / count + 1,
                         inputs[move.input].as<const char>() + starts_[index],
                         target_of(move, outputs));
    }
  }

  char* target_of(const Move& move, std::span<const Buffer> outputs) const {
    return outputs[move.output].as<char>() + move.to_offset * element_bytes_;
  }

  // What was planned for dense inputs is planned anew, which takes far less than copying.
  void run_strided(RunContext& context, std::span<const Buffer> inputs,
                   std::span<const Buffer> outputs) const {
    for (const Move& move : moves_) {
      const Buffer& input = inputs[move.input];
      const int64_t* strides = input.strides != nullptr ? input.strides : move.strides.data();
      const StridedCopy copy = copy_of(move, strides);
      const char* from = input.as<const char>() + move.from_offset(strides) * element_bytes_;
      context.parallel_for(copy.units(), kGrainBytes / StridedCopy::kUnitBytes,
                           [&](int64_t begin, int64_t end) {
                             copy.run(begin, end, from, target_of(move, outputs));
                           });
    }
  }

  std::vector<Move> moves_;
  std::vector<StridedCopy> copies_;
  std::vector<int64_t> ends_;    // units of the copies so far
  std::vector<int64_t> starts_;  // bytes into the dense input
  int64_t element_bytes_;
  int64_t output_bytes_;  // of the largest output
  bool is_same_;
  bool is_even_ = false;  // all moves have as many units
  CopyKernels kernels_;
  int64_t grain_ = 1;
};

}  // namespace

Nest Move::nest(const int64_t* input_strides) const {
  Nest nest;
  for (const Axis& axis : axes) {
    nest.add(axis.count, axis.input_axis < 0 ? 0 : input_strides[axis.input_axis] * axis.step,
             axis.to);
  }
  return nest;
}

int64_t Move::from_offset(const int64_t* input_strides) const {
  int64_t offset = 0;
  for (size_t axis = 0; axis < starts.size(); ++axis) offset += starts[axis] * input_strides[axis];
  return offset;
}

void offer_moves(ProposeContext& context, const Node& node, const MoveOffer& offer) {
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
  if (!offer.moves.empty()) {
    const Move& first = offer.moves.front();
    const StridedCopy copy(first.nest(first.strides.data()), element_bytes, CopyKernels(), largest);
    candidate.algorithm = copy.form_name();
  }
  candidate.optimistic_seconds = context.optimistic_seconds(0, bytes);
  candidate.build = [moves = offer.moves, element_bytes, largest,
                     is_same = offer.is_same](const plugin::BuildOptions& options) {
    return std::make_unique<MoveKernel>(moves, element_bytes, largest, is_same, options.threads);
  };
  context.add(std::move(candidate));
}

std::optional<std::string> explain_immovable(const Value& value) {
  if (!value.is_present()) return "takes nodes with all inputs and outputs present only";
  const plugin::Type type = value.type();
  if (!type.is_known()) return "takes tensors of known shape only";
  if (plugin::element_bytes(type.data_type) == 0) return "does not take strings";
  return std::nullopt;
}

std::optional<std::string> explain_immovable(const Node& node) {
  if (auto reason = explain_immovable(node.input(0))) return reason;
  for (size_t index = 0; index < node.output_count(); ++index) {
    if (auto reason = explain_immovable(node.output(index))) return reason;
  }
  return std::nullopt;
}

std::optional<std::vector<int64_t>> known_integers(const Value& value) {
  if (!value.is_constant()) return std::nullopt;
  if (value.type().elements() == 0) return std::vector<int64_t>();
  if (value.constant() == nullptr) return std::nullopt;
  const int32_t type = value.type().data_type;
  if (type == TESSERA_INT64) {
    const auto elements = value.constant_as<int64_t>();
    return std::vector<int64_t>(elements.begin(), elements.end());
  }
  if (type == TESSERA_INT32) {
    const auto elements = value.constant_as<int32_t>();
    return std::vector<int64_t>(elements.begin(), elements.end());
  }
  return std::nullopt;
}

size_t port_of(const plugin::Candidate& candidate, const Value& value) {
  size_t port = 0;
  while (candidate.inputs[port].value != value.id()) ++port;
  return port;
}

size_t normalized_axis(int64_t axis, size_t rank) {
  const auto count = static_cast<int64_t>(rank);
  if (axis < -count || axis >= count) {
    throw plugin::Failure(TESSERA_UNSUPPORTED, "takes axes of " + std::to_string(count) +
                                                   " dimensions only, found " +
                                                   std::to_string(axis));
  }
  return static_cast<size_t>(axis < 0 ? axis + count : axis);
}

}  // namespace tessera::native
