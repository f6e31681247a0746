// The loops of integer_depthwise_kernels.h over some way to multiply, which the including file
// defines before it:
//   kRowGroup, kParts         rows of taps, and vectors of sums that their products are added to
//   Column                    the elements of a group of rows at one pixel, kParts vectors
//   Column load_column<T>(const uint8_t* const* pixel, int64_t reach, int64_t channel,
//                         int64_t count);      of `count` channels that exist
//   Sums multiply_add(Sums sums, const Column& column, int part, const int8_t* weights);
//   void sort(Sums (&sums)[kParts]);           into the order of channels
// Included inside a namespace, once for each way and instruction set, so it has no include guard.

// Outputs that are summed together, because neighbours read the same pixels.
constexpr int kOutputs = 4;
// Sums of some outputs are stored together. They stay in the first-level cache.
constexpr int64_t kMaxChannels = 512;
constexpr int64_t kMaxSums = kOutputs * kMaxChannels;

template <class T, int kCount>
HWY_INLINE void sum_outputs(const IntegerDepthwise& part, int64_t output, int64_t channel,
                            int64_t count, const int8_t* weights, int32_t* to, int64_t width) {
  const SumTag d;
  const int64_t lanes = sum_lanes();
  const int64_t vector_bytes = lanes * static_cast<int64_t>(sizeof(int32_t));
  Sums sums[kCount][kParts];
  for (auto& line : sums) {
    for (Sums& sum : line) sum = hn::Zero(d);
  }
  // Outputs share pixels only without gaps between the taps.
  const int64_t step = kCount == 1 ? part.dilation : 1;
  const int64_t pixels = (kCount - 1) * part.stride + part.row_taps;
  for (int64_t group = 0; group < part.row_groups; ++group) {
    const uint8_t* const* const first =
        part.pixels + group * kRowGroup * part.reach + output * part.stride;
    for (int64_t pixel = 0; pixel < pixels; ++pixel) {
      const Column column = load_column<T>(first + pixel * step, part.reach, channel, count);
      for (int each = 0; each < kCount; ++each) {
        const int64_t tap = pixel - each * part.stride;
        if (tap < 0 || tap >= part.row_taps) continue;
        const int8_t* const from = weights + tap * kParts * vector_bytes;
        for (int vector = 0; vector < kParts; ++vector) {
          sums[each][vector] =
              multiply_add(sums[each][vector], column, vector, from + vector * vector_bytes);
        }
      }
    }
    weights += part.row_taps * kParts * vector_bytes;
  }
  for (int each = 0; each < kCount; ++each) {
    sort(sums[each]);
    for (int vector = 0; vector < kParts; ++vector) {
      hn::Store(sums[each][vector], d, to + each * width + vector * lanes);
    }
  }
}

template <class T>
void run_depthwise(const IntegerDepthwise& part) {
  HWY_ALIGN int32_t sums[kMaxSums];
  const int64_t block_channels = kParts * sum_lanes();
  const int64_t block_bytes = (1 + part.row_groups * part.row_taps) * block_channels *
                              static_cast<int64_t>(sizeof(int32_t));
  for (int64_t channel = 0; channel < part.channels; channel += kMaxChannels) {
    const int64_t channels = std::min(kMaxChannels, part.channels - channel);
    const int64_t width = (channels + block_channels - 1) / block_channels * block_channels;
    const int8_t* const weights = part.weights + channel / block_channels * block_bytes;
    IntegerBlock block = {.columns = channels, .to_row_stride = part.to_stride};
    block.epilogue = epilogue_from(part.epilogue, channel);
    const int64_t together = kMaxSums / width / kOutputs * kOutputs;
    for (int64_t output = 0; output < part.outputs; output += together) {
      const int64_t outputs = std::min(together, part.outputs - output);
      for (int64_t from = 0; from < channels; from += block_channels) {
        const int8_t* const own = weights + from / block_channels * block_bytes +
                                  block_channels * static_cast<int64_t>(sizeof(int32_t));
        const int64_t count = std::min(block_channels, channels - from);
        int64_t each = 0;
        if (part.dilation == 1) {
          for (; each + kOutputs <= outputs; each += kOutputs) {
            sum_outputs<T, kOutputs>(part, output + each, channel + from, count, own,
                                     sums + each * width + from, width);
          }
        }
        for (; each < outputs; ++each) {
          sum_outputs<T, 1>(part, output + each, channel + from, count, own,
                            sums + each * width + from, width);
        }
      }
      block.to =
          static_cast<uint8_t*>(part.to) + (output * part.to_stride + channel) * part.to_bytes;
      store_sums(block, 0, outputs, sums, width);
    }
  }
}

void run_any_depthwise(const IntegerDepthwise& part) {
  part.is_left_signed ? run_depthwise<int8_t>(part) : run_depthwise<uint8_t>(part);
}

IntegerDepthwiseLoops loops_of_form() {
  return {.block = kParts * sum_lanes(), .row_group = kRowGroup, .run = run_any_depthwise};
}
