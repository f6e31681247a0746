// RotaryEmbedding of ONNX's own domain and of ONNX Runtime's, which differ in the order of their
// inputs and in what gives the positions.
#include <algorithm>
#include <optional>
#include <span>
#include <string>

#include "attention/cached_attention_kernels.h"
#include "base/families.h"
#include "base/grain.h"
#include "base/indices.h"
#include "base/microsoft_ops.h"
#include "base/refusal.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Candidate;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;

namespace {

// What does not depend on sizes. Ports are indices of inputs.
struct RotaryForm {
  int64_t heads = 0;  // 0: as many as the cosines say
  bool is_interleaved = false;
  size_t cosines = 1;
  size_t sines = 2;
  std::optional<size_t> positions;
};

// A run: vectors of heads at positions, which are rotated by rows of cosines and sines.
class RotaryRun {
 public:
  RotaryRun(const RotaryForm& form, std::span<const Buffer> inputs, const Buffer& output)
      : from_(inputs[0].as<const float>()),
        to_(output.as<float>()),
        cosines_(inputs[form.cosines]),
        sines_(inputs[form.sines].as<const float>()),
        loops_(find_cached_attention_loops()) {
    const std::span<const int64_t> dims = inputs[0].sizes();
    half_ = cosines_.sizes().back();
    is_interleaved_ = form.is_interleaved;
    if (form.positions) positions_ = &inputs[*form.positions];
    batch_ = dims[0];
    count_ = dims[dims.size() - 2];
    if (dims.size() == 4) {
      heads_ = dims[1];
      size_ = dims[3];
      position_stride_ = size_;
      head_stride_ = count_ * size_;
    } else {
      heads_ = form.heads > 0 ? form.heads : dims[2] / (2 * half_);
      size_ = dims[2] / heads_;
      position_stride_ = dims[2];
      head_stride_ = size_;
    }
  }

  void run(RunContext& context) const {
    const int64_t grain = kGrain / (heads_ * size_ + 1) + 1;
    context.parallel_for(batch_ * count_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t place = begin; place < end; ++place) {
        rotate_position(place / count_, place % count_);
      }
    });
  }

 private:
  // The row of the cosines and sines.
  int64_t row_of(int64_t b, int64_t s) const {
    if (positions_ == nullptr) return b * count_ + s;
    const int64_t rows = cosines_.sizes()[0];
    const Indices indices(*positions_);
    if (positions_->rank != 1) return indices.at(b * count_ + s, rows);
    // The first position.
    const int64_t first = indices[0];
    if (first < 0 || first > rows - count_) {
      throw plugin::Failure(TESSERA_INVALID_ARGUMENT, "expected a first position in [0, " +
                                                          std::to_string(rows - count_) +
                                                          "], found " + std::to_string(first));
    }
    return first + s;
  }

  void rotate_position(int64_t b, int64_t s) const {
    const int64_t row = row_of(b, s);
    const VectorRotation rotation = {.cosines = cosines_.as<const float>() + row * half_,
                                     .sines = sines_ + row * half_,
                                     .half = half_,
                                     .is_interleaved = is_interleaved_};
    const int64_t first = b * heads_ * count_ * size_ + s * position_stride_;
    for (int64_t h = 0; h < heads_; ++h) {
      const int64_t place = first + h * head_stride_;
      loops_.rotate(from_ + place, size_, rotation, to_ + place);
    }
  }

  const float* from_;
  float* to_;
  const Buffer& cosines_;
  const float* sines_;
  CachedAttentionLoops loops_;
  const Buffer* positions_ = nullptr;
  int64_t half_ = 0;
  bool is_interleaved_ = false;
  int64_t batch_ = 0;
  int64_t count_ = 0;  // positions
  int64_t heads_ = 0;
  int64_t size_ = 0;
  int64_t position_stride_ = 0;
  int64_t head_stride_ = 0;
};

void offer_rotary(ProposeContext& context, const Node& node) {
  const bool is_of_microsoft = !node.domain().empty();
  const size_t cosines = is_of_microsoft ? 2 : 1;
  const size_t positions = is_of_microsoft ? 1 : 3;
  for (const size_t index : {size_t{0}, cosines, cosines + 1}) check_usable(node.input(index));
  const plugin::Value ids = node.input(positions);
  if (ids.is_present() && !ids.type().is_known()) refuse("takes positions of known shape only");
  if (node.output(0).type().elements() == 0) refuse("the result has no elements");
  const plugin::Attributes attributes = node.attributes();
  RotaryForm form = {.heads = attributes.get_int("num_heads"),
                     .is_interleaved = attributes.get_int("interleaved") != 0};
  // The cosines tell it too; ONNX Runtime reads neither of the others.
  for (const char* name : {"rotary_embedding_dim", "is_packed_batching", "scale"}) {
    attributes.find(name);
  }
  Candidate candidate;
  candidate.nodes = {node.id()};
  candidate.algorithm = "pairs";
  const auto port_of = [&](size_t index) {
    return static_cast<size_t>(plugin::input_port(candidate, node.input(index)));
  };
  port_of(0);
  form.cosines = port_of(cosines);
  form.sines = port_of(cosines + 1);
  if (ids.is_present()) form.positions = port_of(positions);
  plugin::output_port(candidate, node.output(0));
  candidate.built_for.emplace();
  candidate.optimistic_seconds =
      context.optimistic_seconds(0, 2 * static_cast<double>(node.output(0).type().dense_bytes()));
  candidate.build = [form](const plugin::BuildOptions&) {
    return plugin::make_kernel(
        [form](RunContext& run, std::span<const Buffer> inputs, std::span<const Buffer> outputs) {
          RotaryRun(form, inputs, outputs[0]).run(run);
        });
  };
  context.add(std::move(candidate));
}

}  // namespace

void propose_rotary_embeddings(ProposeContext& context) {
  const auto offer = [&](const Node& node) { offer_rotary(context, node); };
  context.for_each({"RotaryEmbedding"}, offer);
  for_each_of_microsoft(context, {"RotaryEmbedding"}, offer);
}

}  // namespace tessera::native
