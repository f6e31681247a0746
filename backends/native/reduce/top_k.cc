// TopK: the largest or smallest elements along an axis, in order.
//
// Elements become numbers that grow from the best to the worst, together with their positions, so
// that equal elements keep their order. A line is read once: what is better than the worst of the
// best so far is kept, and as soon as there is no room left, all but the best are dropped.
#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "base/any_address.h"
#include "base/element_type.h"
#include "base/families.h"
#include "base/grain.h"
#include "base/shared_parts.h"
#include "copy/copy_offer.h"
#include "reduce/line_shape.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;

namespace {

// Elements that are compared with the limit at once.
constexpr int64_t kTopBlock = 64;
// Elements that are kept beside the best ones, at least.
constexpr int64_t kTopRoom = 64;
// Neighbouring lines that are copied at once, if their elements are not contiguous.
constexpr int64_t kTopLines = 16;

// The bits of a float16 or bfloat16, of which exponents have `kExponentBits`.
template <int kExponentBits>
struct HalfBits {
  uint16_t bits = 0;
};
using Float16Bits = HalfBits<5>;
using BFloat16Bits = HalfBits<8>;

template <class T>
struct SignedBits {
  static constexpr bool kIsFloating = std::is_floating_point_v<T>;
};
template <int kExponentBits>
struct SignedBits<HalfBits<kExponentBits>> {
  static constexpr bool kIsFloating = true;
};

template <class T>
using UnsignedOf =
    std::conditional_t<sizeof(T) == 1, uint8_t,
                       std::conditional_t<sizeof(T) == 2, uint16_t,
                                          std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;

// The bits of infinity.
template <class T>
struct Infinity {
  static constexpr auto kBits = std::bit_cast<UnsignedOf<T>>(std::numeric_limits<T>::infinity());
};
template <int kExponentBits>
struct Infinity<HalfBits<kExponentBits>> {
  static constexpr auto kBits =
      static_cast<uint16_t>(((1U << kExponentBits) - 1) << (15 - kExponentBits));
};

// A number that grows with the element. Both zeros are equal, and NaN is larger than all numbers.
template <class T>
UnsignedOf<T> growing(T element) {
  using U = UnsignedOf<T>;
  constexpr auto kSign = static_cast<U>(U{1} << (8 * sizeof(U) - 1));
  auto bits = std::bit_cast<U>(element);
  if constexpr (SignedBits<T>::kIsFloating) {
    const auto magnitude = static_cast<U>(bits & static_cast<U>(~kSign));
    if (magnitude > Infinity<T>::kBits) return std::numeric_limits<U>::max();
    if (magnitude == 0) bits = 0;
    return (bits & kSign) != 0 ? static_cast<U>(~bits) : static_cast<U>(bits | kSign);
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<U>(bits ^ kSign);
  } else {
    return bits;
  }
}

// An element and its position; less than another one if it comes before it.
template <class U, class Position>
struct Ranked {
  U rank = 0;
  Position position = 0;

  friend bool operator<(const Ranked& left, const Ranked& right) {
    if (left.rank != right.rank) return left.rank < right.rank;
    return left.position < right.position;
  }
};

// Up to 32 bits of an element and a position in one number, which is compared faster.
struct PackedRank {
  uint64_t both = 0;

  friend bool operator<(PackedRank left, PackedRank right) { return left.both < right.both; }
};

template <class T, bool kIsPacked>
struct Entries;
template <class T>
struct Entries<T, true> {
  using Entry = PackedRank;
  static Entry make(UnsignedOf<T> rank, int64_t position) {
    return {uint64_t{rank} << 32 | static_cast<uint32_t>(position)};
  }
  static int64_t position(Entry entry) { return static_cast<uint32_t>(entry.both); }
};
template <class T>
struct Entries<T, false> {
  using Entry = Ranked<UnsignedOf<T>, int64_t>;
  static Entry make(UnsignedOf<T> rank, int64_t position) { return {rank, position}; }
  static int64_t position(const Entry& entry) { return entry.position; }
};

// `is_largest` elements come first if they are large.
template <class T>
UnsignedOf<T> rank_of(T element, bool is_largest) {
  const UnsignedOf<T> rank = growing(element);
  return is_largest ? static_cast<UnsignedOf<T>>(~rank) : rank;
}

// Whether one of `count` elements may come before `limit`; never false if one does.
template <class T>
bool may_improve(const T* elements, int64_t count, T limit, bool is_largest) {
  int found = 0;
  if constexpr (std::is_arithmetic_v<T>) {
    // NaN compares as false, and may come before.
    if (is_largest) {
      for (int64_t index = 0; index < count; ++index) {
        found |= static_cast<int>(!(elements[index] <= limit));
      }
    } else {
      for (int64_t index = 0; index < count; ++index) {
        found |= static_cast<int>(!(elements[index] >= limit));
      }
    }
  } else {
    const auto rank = rank_of(limit, is_largest);
    for (int64_t index = 0; index < count; ++index) {
      found |= static_cast<int>(rank_of(elements[index], is_largest) < rank);
    }
  }
  return found != 0;
}

int64_t entries_for(int64_t length, int64_t kept) {
  return std::min(length, kept + std::max(kept, kTopRoom)) + kTopBlock;
}

// Sorts the best `kept` of `length` contiguous elements to the front of `entries`, which has room
// for entries_for(). 0 < kept <= length.
template <class T, class E>
void select_best(const T* elements, int64_t length, int64_t kept, bool is_largest,
                 typename E::Entry* entries) {
  const int64_t room = entries_for(length, kept) - kTopBlock;
  typename E::Entry* const last = entries + kept - 1;
  int64_t count = 0;
  bool has_limit = false;
  for (int64_t begin = 0; begin < length; begin += kTopBlock) {
    const int64_t end = std::min(length, begin + kTopBlock);
    if (!has_limit) {
      for (int64_t index = begin; index < end; ++index) {
        entries[count++] = E::make(rank_of(elements[index], is_largest), index);
      }
    } else {
      const T limit = elements[E::position(*last)];
      if (!may_improve(elements + begin, end - begin, limit, is_largest)) continue;
      const typename E::Entry worst = *last;
      for (int64_t index = begin; index < end; ++index) {
        // Without a branch, which would often be predicted wrongly.
        entries[count] = E::make(rank_of(elements[index], is_largest), index);
        count += entries[count] < worst ? 1 : 0;
      }
    }
    if (count < room || end == length) continue;
    std::nth_element(entries, last, entries + count);
    count = kept;
    has_limit = true;
  }
  if (count > kept) std::nth_element(entries, last, entries + count);
  std::sort(entries, entries + kept);
}

// --- A run ---------------------------------------------------------------------------------------

struct TopRule {
  LineShape lines;
  int64_t kept = 0;
  bool is_largest = true;
};

bool is_packed(int64_t element_bytes, int64_t length) {
  return element_bytes <= 4 && length <= std::numeric_limits<uint32_t>::max();
}

// The memory of one slot: entries, and a copy of neighbouring lines.
int64_t slot_bytes(const TopRule& rule, int64_t element_bytes) {
  const int64_t entry_bytes = is_packed(element_bytes, rule.lines.length) ? 8 : 16;
  const int64_t copied = rule.lines.stride == 1 ? 0
                                                : std::min(kTopLines, rule.lines.stride) *
                                                      rule.lines.length * element_bytes;
  constexpr int64_t kLine = 64;
  return (entries_for(rule.lines.length, rule.kept) * entry_bytes + copied + kLine - 1) / kLine *
         kLine;
}

template <class T, bool kIsPacked>
class TopRun {
 public:
  using E = Entries<T, kIsPacked>;
  using Entry = typename E::Entry;

  // Outputs that nobody reads are null.
  TopRun(const TopRule& rule, const void* from, void* values, int64_t* positions)
      : rule_(rule),
        from_(static_cast<const T*>(from)),
        values_(static_cast<T*>(values)),
        positions_(positions) {}

  // Computes lines [first, first + count) of those that are neighbours.
  void run(int64_t outer, int64_t first, int64_t count, std::byte* memory) const {
    auto* entries = reinterpret_cast<Entry*>(memory);
    const int64_t length = rule_.lines.length;
    const int64_t stride = rule_.lines.stride;
    const T* elements = from_ + outer * length * stride + first;
    if (stride == 1) return run_line(outer, 0, elements, entries);
    auto* const copy = reinterpret_cast<T*>(entries + entries_for(length, rule_.kept));
    for (int64_t index = 0; index < length; ++index) {
      for (int64_t line = 0; line < count; ++line) {
        copy[line * length + index] = elements[index * stride + line];
      }
    }
    for (int64_t line = 0; line < count; ++line) {
      run_line(outer, first + line, copy + line * length, entries);
    }
  }

 private:
  void run_line(int64_t outer, int64_t inner, const T* elements, Entry* entries) const {
    select_best<T, E>(elements, rule_.lines.length, rule_.kept, rule_.is_largest, entries);
    int64_t target = outer * rule_.kept * rule_.lines.stride + inner;
    for (int64_t rank = 0; rank < rule_.kept; ++rank, target += rule_.lines.stride) {
      const int64_t position = E::position(entries[rank]);
      if (values_ != nullptr) values_[target] = elements[position];
      if (positions_ != nullptr) positions_[target] = position;
    }
  }

  const TopRule& rule_;
  const T* from_;
  T* values_;
  int64_t* positions_;
};

template <class T, bool kIsPacked>
void run_lines(RunContext& run, const TopRule& rule, const void* from, void* values,
               int64_t* positions) {
  const LineShape& lines = rule.lines;
  const int64_t together = std::min(kTopLines, lines.stride);
  const int64_t groups = (lines.stride + together - 1) / together;
  const int64_t parts = lines.outer * groups;
  const int64_t bytes = slot_bytes(rule, sizeof(T));
  const int64_t work = lines.outer * lines.stride * lines.length;
  const int64_t slots = std::clamp<int64_t>(
      std::min({work / kGrain, parts, run.workspace_bytes() / bytes}), 1, run.threads());
  const TopRun<T, kIsPacked> made(rule, from, values, positions);
  auto* const memory = static_cast<std::byte*>(run.workspace());
  SharedParts shared(parts, slots);
  run.parallel_for(slots, 1, [&](int64_t begin, int64_t end) {
    for (int64_t slot = begin; slot < end; ++slot) {
      shared.for_each(slot, [&](int64_t part) {
        const int64_t first = part % groups * together;
        made.run(part / groups, first, std::min(together, lines.stride - first),
                 memory + slot * bytes);
      });
    }
  });
}

using RunLines = void (*)(RunContext& run, const TopRule& rule, const void* from, void* values,
                          int64_t* positions);

template <class T>
void run_type(RunContext& run, const TopRule& rule, const void* from, void* values,
              int64_t* positions) {
  if constexpr (sizeof(T) <= 4) {
    if (is_packed(sizeof(T), rule.lines.length)) {
      return run_lines<T, true>(run, rule, from, values, positions);
    }
  }
  run_lines<T, false>(run, rule, from, values, positions);
}

RunLines find_run(int32_t data_type) {
  if (data_type == TESSERA_FLOAT16) return run_type<Float16Bits>;
  if (data_type == TESSERA_BFLOAT16) return run_type<BFloat16Bits>;
  return find_number_loop(data_type, []<class T>() -> RunLines { return run_type<T>; });
}

// --- Offering ------------------------------------------------------------------------------------

// What a kernel knows of its node beside the sizes.
struct TopPorts {
  size_t input = 0;
  size_t axis = 0;
  int64_t element_bytes = 0;
  bool is_largest = true;
  bool has_values = true;
  bool has_positions = true;

  TopRule rule(std::span<const int64_t> input_dims, std::span<const int64_t> output_dims) const {
    return {line_shape_of(input_dims, axis), output_dims[axis], is_largest};
  }
};

class TopKernel : public plugin::Kernel {
 public:
  TopKernel(const TopPorts& ports, RunLines run_lines_of, int64_t workspace_bytes)
      : ports_(ports), run_lines_(run_lines_of), workspace_bytes_(workspace_bytes) {}

  int64_t workspace_bytes() const override { return workspace_bytes_; }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const TopRule rule = ports_.rule(inputs[ports_.input].sizes(), outputs[0].sizes());
    if (rule.kept * rule.lines.outer * rule.lines.stride == 0) return;
    run_lines_(context, rule, inputs[ports_.input].data,
               ports_.has_values ? outputs[0].data : nullptr,
               ports_.has_positions ? outputs.back().as<int64_t>() : nullptr);
  }

 private:
  TopPorts ports_;
  RunLines run_lines_;
  int64_t workspace_bytes_;
};

void offer_top_k(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_uncopyable(node.input(0))) {
    return context.refuse(node.id(), *reason);
  }
  const plugin::Type type = node.input(0).type();
  plugin::Candidate candidate = plugin::candidate_for(node);
  TopPorts ports;
  ports.has_values = node.output(0).is_present();
  ports.has_positions = node.output(1).is_present();
  const plugin::Type kept = node.output(ports.has_values ? 0 : 1).type();
  if (!kept.is_known()) return context.refuse(node.id(), "takes tensors of known shape only");
  ports.input = port_of(candidate, node.input(0));
  ports.axis = plugin::normalized_axis(node.attributes().get_int("axis", -1), type.dims.size());
  ports.element_bytes = plugin::element_bytes(type.data_type);
  ports.is_largest = node.attributes().get_int("largest", 1) != 0;
  const int64_t threads = context.options().threads;
  const int64_t workspace_bytes =
      threads * slot_bytes(ports.rule(type.dims, kept.dims), ports.element_bytes);
  candidate.workspace_bytes = workspace_bytes;
  candidate.workspace_for = [=](std::span<const Buffer> inputs, std::span<const Buffer> outputs) {
    return threads * slot_bytes(ports.rule(inputs[ports.input].sizes(), outputs[0].sizes()),
                                ports.element_bytes);
  };
  candidate.built_for.emplace();
  candidate.optimistic_seconds =
      context.optimistic_seconds(0, static_cast<double>(type.dense_bytes()));
  candidate.build = [=, run_lines_of = find_run(type.data_type)](const plugin::BuildOptions&) {
    return std::make_unique<TopKernel>(ports, run_lines_of, workspace_bytes);
  };
  accept_any_address(context.graph(), candidate);
  context.add(std::move(candidate));
}

}  // namespace

void propose_top_k(ProposeContext& context) {
  context.for_each({"TopK"}, [&](const Node& node) { offer_top_k(context, node); });
}

}  // namespace tessera::native
