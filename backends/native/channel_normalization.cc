// Normalisations of channels: BatchNormalization by given statistics in every layout, with a Relu
// behind it; InstanceNormalization and GroupNormalization by their own statistics; LRN.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "families.h"
#include "normalization_kernels.h"
#include "picture.h"
#include "staging.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Candidate;
using plugin::Failure;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;
using plugin::Value;

namespace {

// Numbers that one thread works on at least.
constexpr int64_t kGrain = 16 * 1024;

// Neighbours whose parameters are written out one after the other at least.
constexpr int64_t kLeastPeriod = 64;

[[noreturn]] void refuse(const std::string& reason) { throw Failure(TESSERA_UNSUPPORTED, reason); }

void check_usable(const Value& value) {
  if (value.type().data_type != TESSERA_FLOAT32 || !value.type().is_known()) {
    refuse("takes float32 tensors of known shape only");
  }
}

void allow_in_place(Candidate& candidate) {
  candidate.outputs[0].requests = TESSERA_REQUEST_WRITE | TESSERA_REQUEST_IN_PLACE;
  candidate.outputs[0].in_place_input = 0;
}

// A port for each value of the node that is present, also where two of them are one value.
struct Ports {
  explicit Ports(const Node& node) : candidate(plugin::candidate_for(node)) {
    candidate.outputs.resize(1);
    for (size_t index = 0; index < node.input_count(); ++index) {
      for (size_t port = 0; port < candidate.inputs.size(); ++port) {
        if (candidate.inputs[port].value == node.input(index).id()) places.push_back(port);
      }
    }
  }

  Candidate candidate;
  std::vector<size_t> places;  // of each input of the node
};

// --- BatchNormalization --------------------------------------------------------------------------

// Since version 14 said by an attribute, before by outputs, in version 6 by is_test.
bool is_training(const Node& node) {
  const plugin::Attributes attributes = node.attributes();
  if (attributes.has("training_mode")) return attributes.get_int("training_mode") != 0;
  if (attributes.has("is_test")) return attributes.get_int("is_test") == 0;
  return false;
}

class BatchKernel : public plugin::Kernel {
 public:
  BatchKernel(const Picture& picture, double epsilon, bool has_relu, std::vector<size_t> places)
      : picture_(picture),
        epsilon_(epsilon),
        has_relu_(has_relu),
        places_(std::move(places)),
        repeats_(repeats_of(picture)),
        loops_(find_normalization_loops()) {}

  static int64_t workspace_for(const Picture& picture) {
    return 3 * floats_of(picture) * static_cast<int64_t>(sizeof(float));
  }
  int64_t workspace_bytes() const override { return workspace_for(picture_); }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    float* means = static_cast<float*>(context.workspace());
    prepare(inputs, means);
    const int64_t floats = floats_of(picture_);
    const float* factors = means + floats;
    const float* shifts = factors + floats;
    const float* from = inputs[0].as<const float>();
    float* to = outputs[0].as<float>();
    const int64_t period = picture_.lanes * repeats_;
    const int64_t block = picture_.pixels * picture_.lanes;
    // Pieces of a block, each of whole periods, which can be staged.
    const int64_t piece = std::max<int64_t>(1, StagedWriter::kFloats / period) * period;
    const StagedWriter writer(picture_.images * picture_.blocks * block, to == from);
    const int64_t pieces = (block + piece - 1) / piece;
    const int64_t grain = kGrain / std::min(piece, block) + 1;
    const int64_t count = picture_.images * picture_.blocks * pieces;
    context.parallel_for(count, grain, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) {
        const int64_t which = index / pieces % picture_.blocks;
        const int64_t first = index % pieces * piece;
        const int64_t start = index / pieces * block + first;
        const int64_t length = std::min(piece, block - first);
        writer.write(to + start, 0, 1, length, [&](int64_t, int64_t, float* place) {
          if (picture_.lanes == 1) {
            loops_.affine(from + start, place, length,
                          {means[which], factors[which], shifts[which], has_relu_});
          } else {
            loops_.periodic(from + start, place, length,
                            {means + which * period, factors + which * period,
                             shifts + which * period, period, has_relu_});
          }
        });
      }
      writer.finish();
    });
  }

 private:
  static int64_t repeats_of(const Picture& picture) {
    if (picture.lanes == 1) return 1;
    return std::min((kLeastPeriod + picture.lanes - 1) / picture.lanes, picture.pixels);
  }
  static int64_t floats_of(const Picture& picture) {
    return picture.blocks * picture.lanes * repeats_of(picture);
  }

  // The parameters of each lane, for as many pixels as a period has. Padding keeps its zeros.
  void prepare(std::span<const Buffer> inputs, float* means) const {
    const auto given = [&](size_t index) { return inputs[places_[index]].as<const float>(); };
    const int64_t floats = floats_of(picture_);
    float* factors = means + floats;
    float* shifts = factors + floats;
    const int64_t period = picture_.lanes * repeats_;
    for (int64_t lane = 0; lane < picture_.blocks * picture_.lanes; ++lane) {
      Affine one = {0, 0, 0, false};
      if (lane < picture_.channels) {
        const double deviation = std::sqrt(double{given(4)[lane]} + epsilon_);
        one = {given(3)[lane], static_cast<float>(given(1)[lane] / deviation), given(2)[lane],
               false};
      }
      int64_t place = lane / picture_.lanes * period + lane % picture_.lanes;
      for (int64_t repeat = 0; repeat < repeats_; ++repeat, place += picture_.lanes) {
        means[place] = one.mean;
        factors[place] = one.factor;
        shifts[place] = one.shift;
      }
    }
  }

  Picture picture_;
  double epsilon_;
  bool has_relu_;
  std::vector<size_t> places_;
  int64_t repeats_;
  NormalizationLoops loops_;
};

void check_batch_normalization(const Node& node) {
  if (is_training(node)) refuse("normalises by given statistics only");
  for (size_t index = 1; index < node.output_count(); ++index) {
    if (node.output(index).is_present()) refuse("computes no batch statistics (training mode)");
  }
  if (node.attributes().get_int("spatial", 1) == 0) {
    refuse("has one mean and variance for each channel only");
  }
  for (size_t index = 0; index < 5; ++index) check_usable(node.input(index));
  if (node.input(0).type().rank < 2) refuse("needs batch and channels");
}

void add_batch_normalization(ProposeContext& context, const Node& node, const Picture& picture,
                             const std::string& layout, const Node* relu) {
  Ports ports(node);
  Candidate& candidate = ports.candidate;
  candidate.inputs[0].layout = candidate.outputs[0].layout = layout;
  if (relu != nullptr) {
    candidate.nodes.push_back(relu->id());
    std::sort(candidate.nodes.begin(), candidate.nodes.end());
    candidate.outputs[0].value = relu->output(0).id();
  }
  candidate.algorithm = picture.lanes == 1 ? "channels" : "pixels";
  allow_in_place(candidate);
  candidate.workspace_bytes = BatchKernel::workspace_for(picture);
  const auto elements = static_cast<double>(node.input(0).type().elements());
  candidate.optimistic_seconds =
      context.optimistic_seconds(2 * elements, 2 * elements * sizeof(float));
  candidate.build = [picture, epsilon = double{node.attributes().get_float("epsilon", 1e-5F)},
                     has_relu = relu != nullptr,
                     places = ports.places](const plugin::BuildOptions&) {
    return std::make_unique<BatchKernel>(picture, epsilon, has_relu, places);
  };
  context.add(std::move(candidate));
}

void offer_batch_normalization(ProposeContext& context, const Node& node, const Node* relu) {
  check_batch_normalization(node);
  const std::vector<int64_t> dims = node.input(0).type().dims;
  if (node.input(0).type().elements() == 0) refuse("there are no elements to normalise");
  for (const PictureLayout layout : kPictureLayouts) {
    if (!lies_as_picture(layout, dims)) continue;
    add_batch_normalization(context, node, picture_of(layout, dims), layout_name(layout), relu);
  }
  Picture picture = row_major_picture(dims);
  // Channels of one pixel lie side by side.
  if (picture.pixels == 1) {
    picture = {.images = 1, .pixels = dims[0], .lanes = dims[1], .channels = dims[1]};
  }
  add_batch_normalization(context, node, picture, TESSERA_LAYOUT_DEFAULT, relu);
}

// --- InstanceNormalization and GroupNormalization ------------------------------------------------

struct Groups {
  int64_t rows = 1;      // images times groups
  int64_t groups = 1;    // of an image
  int64_t channels = 1;  // of a group
  int64_t length = 1;    // of a channel
  bool is_per_channel = true;
  double epsilon = 0;
};

class GroupKernel : public plugin::Kernel {
 public:
  GroupKernel(const Groups& groups, std::vector<size_t> places)
      : groups_(groups), places_(std::move(places)), loops_(find_normalization_loops()) {}

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const float* from = inputs[0].as<const float>();
    const float* scale = inputs[places_[1]].as<const float>();
    const float* shift = inputs[places_[2]].as<const float>();
    float* to = outputs[0].as<float>();
    const int64_t row_length = groups_.channels * groups_.length;
    const StagedWriter writer(groups_.rows * row_length, to == from);
    context.parallel_for(groups_.rows, kGrain / row_length + 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t group = row % groups_.groups;
        const Moments moments = loops_.moments(from + row * row_length, row_length);
        const double inverse = 1 / std::sqrt(moments.variance + groups_.epsilon);
        for (int64_t channel = 0; channel < groups_.channels; ++channel) {
          const int64_t place = groups_.is_per_channel ? group * groups_.channels + channel : group;
          const int64_t start = row * row_length + channel * groups_.length;
          const Affine affine = affine_of(moments, scale[place] * inverse, shift[place]);
          writer.write(to + start, 0, groups_.length, 1,
                       [&](int64_t first, int64_t last, float* target) {
                         loops_.affine(from + start + first, target, last - first, affine);
                       });
        }
      }
      writer.finish();
    });
  }

 private:
  Groups groups_;
  std::vector<size_t> places_;
  NormalizationLoops loops_;
};

void offer_groups(ProposeContext& context, const Node& node) {
  constexpr int32_t kFirstPerChannelVersion = 21;
  for (size_t index = 0; index < 3; ++index) check_usable(node.input(index));
  const plugin::Type type = node.input(0).type();
  if (type.elements() == 0) refuse("there are no elements to normalise");
  const Picture picture = row_major_picture(type.dims);
  Groups groups;
  const bool is_instance = node.op() == "InstanceNormalization";
  groups.groups = is_instance ? picture.channels : node.attributes().get_int("num_groups", 1);
  groups.is_per_channel = is_instance || node.version() >= kFirstPerChannelVersion;
  groups.rows = picture.images * groups.groups;
  groups.channels = picture.channels / groups.groups;
  groups.length = picture.pixels;
  groups.epsilon = node.attributes().get_float("epsilon", 1e-5F);
  Ports ports(node);
  ports.candidate.algorithm = "rows";
  allow_in_place(ports.candidate);
  const auto elements = static_cast<double>(type.elements());
  ports.candidate.optimistic_seconds =
      context.optimistic_seconds(4 * elements, 2 * elements * sizeof(float));
  ports.candidate.build = [groups, places = ports.places](const plugin::BuildOptions&) {
    return std::make_unique<GroupKernel>(groups, places);
  };
  context.add(std::move(ports.candidate));
}

// --- LRN -----------------------------------------------------------------------------------------

// Pixels that are worked on at a time, so that their neighbours are in the nearest cache.
constexpr int64_t kTile = 256;

void offer_local_response(ProposeContext& context, const Node& node) {
  check_usable(node.input(0));
  const plugin::Type type = node.input(0).type();
  if (type.elements() == 0) refuse("there are no elements to normalise");
  const plugin::Attributes attributes = node.attributes();
  const int64_t size = attributes.get_int("size", 1);
  const Picture picture = row_major_picture(type.dims);
  const LocalResponse response = {
      .before = std::min(picture.channels, (size - 1) / 2),
      .after = std::min(picture.channels, size - 1 - (size - 1) / 2),
      .factor = attributes.get_float("alpha", 1e-4F) / static_cast<float>(size),
      .bias = attributes.get_float("bias", 1),
      .exponent = attributes.get_float("beta", 0.75F)};
  Candidate candidate = plugin::candidate_for(node);
  candidate.algorithm = "channels";
  const auto elements = static_cast<double>(type.elements());
  candidate.optimistic_seconds = context.optimistic_seconds(
      elements * static_cast<double>(2 * (response.before + response.after) + 8),
      2 * elements * sizeof(float));
  candidate.build = [picture, response,
                     loops = find_normalization_loops()](const plugin::BuildOptions&) {
    return plugin::make_kernel([picture, response, loops](RunContext& run,
                                                          std::span<const Buffer> inputs,
                                                          std::span<const Buffer> outputs) {
      const int64_t tiles = (picture.pixels + kTile - 1) / kTile;
      const int64_t width = std::min(kTile, picture.pixels);
      const int64_t grain = kGrain / (4 * width * picture.channels) + 1;
      run.parallel_for(picture.images * tiles, grain, [&](int64_t begin, int64_t end) {
        for (int64_t index = begin; index < end; ++index) {
          const int64_t pixel = index % tiles * kTile;
          const int64_t start = index / tiles * picture.channels * picture.pixels + pixel;
          loops.local_response(inputs[0].as<const float>() + start, outputs[0].as<float>() + start,
                               0, picture.channels, picture.channels, picture.pixels,
                               std::min(kTile, picture.pixels - pixel), response);
        }
      });
    });
  };
  context.add(std::move(candidate));
}

}  // namespace

void propose_channel_normalizations(ProposeContext& context) {
  for (const auto& match : context.graph().match("b = BatchNormalization; Relu(b)")) {
    const Node relu = context.graph().node(match[1]);
    try {
      offer_batch_normalization(context, context.graph().node(match[0]), &relu);
    } catch (const Failure& failure) {
      context.refuse(match[0], failure.what());
    }
  }
  context.for_each({"BatchNormalization"},
                   [&](const Node& node) { offer_batch_normalization(context, node, nullptr); });
  context.for_each({"GroupNormalization", "InstanceNormalization"},
                   [&](const Node& node) { offer_groups(context, node); });
  context.for_each({"LRN"}, [&](const Node& node) { offer_local_response(context, node); });
}

}  // namespace tessera::native
