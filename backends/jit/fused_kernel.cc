#include "fused_kernel.h"

#include <algorithm>
#include <array>
#include <utility>

#include "byte_format.h"
#include "kept_value.h"
#include "kernel_loops.h"
#include "print_llvm.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tessera::jit {

using plugin::Buffer;
using plugin::Failure;
using plugin::FusedAccess;
using plugin::FusedGroup;
using plugin::RunContext;

namespace {

// The minimum time of work for which another thread is used.
constexpr double kSecondsPerTask = 20e-6;
// Estimates for one point, on one core.
constexpr double kSecondsPerInstruction = 0.03e-9;
constexpr double kSecondsPerAccess = 0.1e-9;
// Pieces of a long axis are multiples of this, so that two threads never write to one cache line.
constexpr int64_t kPiecePoints = 256;

// The addresses of each access, then of the rows of a kept value.
using Bases = std::array<std::byte*, kMaxAccesses + 1>;

// Rows up to this size stay in the first-level cache between the passes over them.
constexpr int64_t kBlockBytes = 8 << 10;
constexpr int64_t kKeptBytes = 16 << 10;

void finish_streaming() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

int64_t rounded_up(int64_t count, int64_t unit) { return (count + unit - 1) / unit * unit; }

// One loop nest with its code.
class NestRunner {
 public:
  NestRunner(const FusedGroup& group, KernelLoops loops, std::shared_ptr<const ReadyKernel> kernel)
      : loops_(std::move(loops)),
        kernel_(std::move(kernel)),
        accesses_(group.operands.size() + group.results.size()),
        operands_(group.operands.size()) {
    for (const OuterAxis& axis : loops_.outer) rows_ *= axis.size;
    rows_ *= loops_.sizes[kRow];
    row_points_ = loops_.sizes[kReducedOuter] * loops_.sizes[kReducedInner] * loops_.sizes[kLane];
    plan_blocks(group);
    seconds_per_point_ = kSecondsPerInstruction * static_cast<double>(group.instructions.size()) +
                         kSecondsPerAccess * static_cast<double>(accesses_);
  }

  const ReadyKernel& kernel() const { return *kernel_; }
  const KernelShape& shape() const { return loops_.shape; }

  // `first` has the beginning of each access's buffer.
  void run(RunContext& context, const Bases& first, bool may_stream) const {
    // Kept values are stored in rows of a result, so the lines of these rows are in the caches.
    const bool streams = may_stream && kernel_->code.stream() != nullptr && kept_result_ < 0;
    const int64_t lanes = loops_.sizes[kLane];
    const int64_t threads = std::max(context.threads(), 1);
    const double task_points = kSecondsPerTask / seconds_per_point_;
    int64_t piece = lanes;
    if (!loops_.shape.is_lane_reduced && rows_ < 4 * threads) {
      const int64_t wanted = rows_ * lanes / (4 * threads) + 1;
      const double per_lane = static_cast<double>(row_points_) / static_cast<double>(lanes);
      const auto fewest = static_cast<int64_t>(task_points / per_lane) + 1;
      piece = std::min(lanes, rounded_up(std::max(wanted, fewest), kPiecePoints));
    }
    const int64_t pieces = (lanes + piece - 1) / piece;
    const double item_points =
        static_cast<double>(row_points_) * static_cast<double>(piece) / static_cast<double>(lanes);
    const auto grain = static_cast<int64_t>(task_points / std::max(item_points, 1.0)) + 1;
    context.parallel_for(rows_ * pieces, grain, [&](int64_t begin, int64_t end) {
      if (pieces == 1) {
        run_rows(first, begin, end, 0, lanes, streams);
      } else {
        for (int64_t item = begin; item < end; ++item) {
          const int64_t lane = item % pieces * piece;
          run_rows(first, item / pieces, item / pieces + 1, lane, std::min(piece, lanes - lane),
                   streams);
        }
      }
      if (streams) finish_streaming();
    });
  }

 private:
  // Chooses the number of rows of a block, and the memory of their kept values.
  void plan_blocks(const FusedGroup& group) {
    int64_t row_bytes = 0;
    for (size_t operand = 0; operand < operands_; ++operand) {
      if (loops_.strides[operand * kLoopCount + kRow] == 0) continue;
      row_bytes += row_points_ * plugin::element_bytes(group.operands[operand].data_type);
    }
    const std::optional<KeptValue> kept =
        kept_value(group, loops_.shape, expression_levels(group, loops_.shape));
    if (kept) {
      const size_t access = operands_ + kept->result;
      const int64_t kept_bytes =
          loops_.sizes[kLane] * plugin::element_bytes(group.results[kept->result].data_type);
      const bool fits = kept_bytes <= kKeptBytes;
      if (!fits) kept_result_ = static_cast<int>(access);
      const int64_t stride = loops_.strides[access * kLoopCount + kRow];
      loops_.strides.push_back(fits ? 0 : stride);
      loops_.strides.push_back(fits ? kept_bytes : stride);
      row_bytes = std::max(row_bytes, kept_bytes);
    }
    block_rows_ =
        std::clamp<int64_t>(kBlockBytes / std::max<int64_t>(row_bytes, 1), 1, kMaxBlockRows);
  }

  // Lanes [lane, lane + lanes) of some rows, which are counted through all kept loops but Lane.
  void run_rows(const Bases& first, int64_t begin, int64_t end, int64_t lane, int64_t lanes,
                bool streams) const {
    std::array<int64_t, kLoopCount + 1> sizes;
    std::ranges::copy(loops_.sizes, sizes.begin());
    sizes[kLane] = lanes;
    alignas(kStreamAlignment) std::array<std::byte, kKeptBytes> kept;
    Bases bases;
    while (begin < end) {
      const int64_t row = begin % loops_.sizes[kRow];
      sizes[kRow] = std::min(loops_.sizes[kRow] - row, end - begin);
      for (size_t access = 0; access < accesses_; ++access) {
        const int64_t* strides = &loops_.strides[access * kLoopCount];
        bases[access] =
            first[access] + loops_.offsets[access] + row * strides[kRow] + lane * strides[kLane];
      }
      move_to(begin / loops_.sizes[kRow], bases);
      bases[accesses_] = kept_result_ < 0 ? kept.data() : bases[static_cast<size_t>(kept_result_)];
      const bool streams_now = streams && is_aligned(bases, sizes[kRow]);
      // Memory is read and written at once if each row is written before the next one is read.
      sizes[kLoopCount] = streams_now ? 1 : block_rows_;
      KernelFunction* function = streams_now ? kernel_->code.stream() : kernel_->code.kernel();
      function(bases.data(), loops_.strides.data(), sizes.data());
      begin += sizes[kRow];
    }
  }

  // Adds the position of a point of the outer axes.
  void move_to(int64_t point, Bases& bases) const {
    for (size_t at = loops_.outer.size(); at-- > 0;) {
      const OuterAxis& axis = loops_.outer[at];
      const int64_t index = point % axis.size;
      point /= axis.size;
      for (size_t access = 0; access < accesses_; ++access) {
        bases[access] += index * axis.strides[access];
      }
    }
  }

  bool is_aligned(const Bases& bases, int64_t rows) const {
    for (size_t access = operands_; access < accesses_; ++access) {
      const auto address = static_cast<int64_t>(reinterpret_cast<uintptr_t>(bases[access]));
      const int64_t stride = rows == 1 ? 0 : loops_.strides[access * kLoopCount + kRow];
      if (address % kStreamAlignment != 0 || stride % kStreamAlignment != 0) return false;
    }
    return true;
  }

  KernelLoops loops_;
  std::shared_ptr<const ReadyKernel> kernel_;
  size_t accesses_;
  size_t operands_;
  int64_t rows_ = 1;
  int64_t row_points_ = 1;
  double seconds_per_point_ = 0;
  int64_t block_rows_ = 1;
  int kept_result_ = -1;  // the access whose rows have the kept values of long rows
};

class FusedKernel : public plugin::Kernel {
 public:
  FusedKernel(std::shared_ptr<const FusedGroup> group, std::string layout,
              std::vector<NestRunner> nests, std::shared_ptr<KernelStore> store)
      : group_(std::move(group)),
        layout_(std::move(layout)),
        nests_(std::move(nests)),
        store_(std::move(store)) {}

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    Bases first;
    size_t access = 0;
    for (const FusedAccess& operand : group_->operands) {
      first[access++] = static_cast<std::byte*>(inputs[static_cast<size_t>(operand.port)].data);
    }
    // Memory that is overwritten in place is in the caches already.
    bool is_in_place = false;
    for (const FusedAccess& result : group_->results) {
      const Buffer& output = outputs[static_cast<size_t>(result.port)];
      first[access++] = static_cast<std::byte*>(output.data);
      is_in_place = is_in_place || output.request == TESSERA_REQUEST_IN_PLACE;
    }
    for (const NestRunner& nest : nests_) nest.run(context, first, !is_in_place);
    for (const FusedAccess& result : group_->results) {
      if (!result.is_whole) continue;
      plugin::clear_channel_padding(group_->dims, layout_, plugin::element_bytes(result.data_type),
                                    outputs[static_cast<size_t>(result.port)].data);
    }
  }

  std::optional<std::string> save() const override {
    std::string bytes;
    append_text(bytes, layout_);
    append_number(bytes, static_cast<int64_t>(nests_.size()));
    for (const NestRunner& nest : nests_) {
      append_text(bytes, bytes_of_record(nest.kernel().record));
    }
    return bytes;
  }

  std::optional<std::string> text(int32_t form) const override {
    if (form == TESSERA_KERNEL_EXPRESSION) return group_->text;
    if (form == TESSERA_KERNEL_SOURCE_EXTENSION) return "ll";
    if (form != TESSERA_KERNEL_SOURCE && form != TESSERA_KERNEL_ASSEMBLY) return std::nullopt;
    const std::string source = print_llvm(*group_, nests_.front().shape(), store_->target());
    return form == TESSERA_KERNEL_SOURCE ? source : store_->assembly(source);
  }

 private:
  std::shared_ptr<const FusedGroup> group_;
  std::string layout_;
  std::vector<NestRunner> nests_;
  std::shared_ptr<KernelStore> store_;
};

// Makes the kernel; `make_ready` gives the code of each nest, in order.
template <class MakeReady>
std::unique_ptr<plugin::Kernel> make_fused_kernel(const std::shared_ptr<const FusedGroup>& group,
                                                  const std::string& layout,
                                                  const std::shared_ptr<KernelStore>& store,
                                                  const MakeReady& make_ready) {
  std::vector<NestRunner> nests;
  for (const plugin::LoopNest& nest : plugin::loop_nests(*group, layout)) {
    KernelLoops loops = kernel_loops(*group, nest, store->target().cached_bytes);
    std::shared_ptr<const ReadyKernel> ready = make_ready(loops.shape);
    nests.emplace_back(*group, std::move(loops), std::move(ready));
  }
  store->count_kernel();
  return std::make_unique<FusedKernel>(group, layout, std::move(nests), store);
}

}  // namespace

std::vector<KernelPart> kernel_parts(const FusedGroup& group, const std::string& layout,
                                     const Target& target) {
  std::vector<KernelPart> parts;
  for (const plugin::LoopNest& nest : plugin::loop_nests(group, layout)) {
    const KernelShape shape = kernel_loops(group, nest, target.cached_bytes).shape;
    parts.push_back({kernel_source(group, shape),
                     [&group, target, shape] { return print_llvm(group, shape, target); },
                     [&group, target, shape] { check_printable(group, shape, target); }});
  }
  return parts;
}

std::unique_ptr<plugin::Kernel> build_fused_kernel(const std::shared_ptr<const FusedGroup>& group,
                                                   const std::string& layout,
                                                   const std::shared_ptr<KernelStore>& store) {
  return make_fused_kernel(group, layout, store, [&](const KernelShape& shape) {
    return store->get(kernel_source(*group, shape),
                      [&] { return print_llvm(*group, shape, store->target()); });
  });
}

std::unique_ptr<plugin::Kernel> load_fused_kernel(const std::shared_ptr<const FusedGroup>& group,
                                                  std::string_view bytes,
                                                  const std::shared_ptr<KernelStore>& store) {
  ByteReader reader(bytes);
  const std::string layout(reader.text());
  int64_t rest = reader.number();
  auto kernel = make_fused_kernel(group, layout, store, [&](const KernelShape& shape) {
    if (rest-- <= 0) throw Failure(TESSERA_CORRUPT, "a saved kernel has too few parts");
    KernelRecord record = record_of_bytes(reader.text());
    if (record.source != kernel_source(*group, shape)) {
      throw Failure(TESSERA_CORRUPT, "a saved kernel is of another group");
    }
    return store->accept(std::move(record));
  });
  if (rest != 0) throw Failure(TESSERA_CORRUPT, "a saved kernel has too many parts");
  reader.expect_end();
  return kernel;
}

}  // namespace tessera::jit
