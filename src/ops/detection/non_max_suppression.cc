// NonMaxSuppression: of each class, the boxes with the highest scores, without those that overlap a
// better one. Their number is known only at run time.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <memory_resource>
#include <numeric>
#include <vector>

#include "base/errors/check.h"
#include "base/threads/parallel_slots.h"
#include "ops/op.h"
#include "ops/shape_rules.h"

namespace tessera::ops {
namespace {

constexpr int64_t kBoxNumbers = 4;
constexpr int64_t kIndexNumbers = 3;  // batch, class, box

enum SuppressionInput : size_t { kBoxes, kScores, kMaxOutput, kIouThreshold, kScoreThreshold };
constexpr size_t kSuppressionInputs = 5;
using SuppressionData = std::array<const void*, kSuppressionInputs>;  // null: omitted

struct Suppression {
  const float* boxes = nullptr;   // [batches, count, 4]
  const float* scores = nullptr;  // [batches, classes, count]
  int64_t batches = 0;
  int64_t classes = 0;
  int64_t count = 0;
  int64_t most_selected = 0;  // of one class
  float iou_threshold = 0;
  std::optional<float> score_threshold;
  bool has_centers = false;  // boxes are [x_center, y_center, width, height]

  int64_t pairs() const { return batches * classes; }
};

Suppression suppression_of(const Node& node, std::span<const int64_t> score_dims,
                           const SuppressionData& data) {
  Suppression result;
  result.boxes = static_cast<const float*>(data[kBoxes]);
  result.scores = static_cast<const float*>(data[kScores]);
  result.batches = score_dims[0];
  result.classes = score_dims[1];
  result.count = score_dims[2];
  if (data[kMaxOutput] != nullptr) {
    const int64_t given = *static_cast<const int64_t*>(data[kMaxOutput]);
    result.most_selected = std::clamp<int64_t>(given, 0, result.count);
  }
  if (data[kIouThreshold] != nullptr) {
    result.iou_threshold = *static_cast<const float*>(data[kIouThreshold]);
  }
  if (data[kScoreThreshold] != nullptr) {
    result.score_threshold = *static_cast<const float*>(data[kScoreThreshold]);
  }
  result.has_centers = node.attributes.get_int("center_point_box") != 0;
  return result;
}

// --- Candidates ----------------------------------------------------------------------------------

// The score and the number of a box in one number, so that they are sorted fast: the better a box
// is, the smaller is the number. Of equal scores, the first box is better.
using RankedBox = uint64_t;

constexpr int64_t kMostBoxes = int64_t{1} << 32;

RankedBox ranked_box(float score, int64_t box) {
  // Adding 0 gives both zeros the same bits.
  const auto bits = std::bit_cast<uint32_t>(score + 0.0F);
  // Grows with the score: of negative numbers, larger bits mean smaller numbers.
  const uint32_t rank = (bits >> 31) != 0 ? ~bits : bits | 0x80000000U;
  return uint64_t{~rank} << 32 | static_cast<uint32_t>(box);
}

int64_t box_of(RankedBox ranked) { return static_cast<uint32_t>(ranked); }

// Boxes from the best to the worst. They are sorted in pieces, because few of them are read if the
// number of selected boxes is limited.
class BoxRanking {
 public:
  explicit BoxRanking(std::span<RankedBox> boxes) : boxes_(boxes) {}

  bool is_at_end() const { return read_ == boxes_.size(); }

  int64_t next() {
    if (read_ == sorted_) sort_more();
    return box_of(boxes_[read_++]);
  }

 private:
  static constexpr size_t kFirstPiece = 128;

  void sort_more() {
    const size_t end = std::min(boxes_.size(), std::max(kFirstPiece, 3 * sorted_));
    const auto rest = boxes_.subspan(sorted_);
    const auto piece = rest.first(end - sorted_);
    if (piece.size() < rest.size()) {
      std::nth_element(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(piece.size()),
                       rest.end());
    }
    std::sort(piece.begin(), piece.end());
    sorted_ = end;
  }

  std::span<RankedBox> boxes_;
  size_t read_ = 0;
  size_t sorted_ = 0;
};

// --- Boxes ---------------------------------------------------------------------------------------

struct Rectangle {
  float x_min = 0;
  float y_min = 0;
  float x_max = 0;
  float y_max = 0;

  float area() const { return (x_max - x_min) * (y_max - y_min); }
};

Rectangle rectangle_of(const float* box, bool has_centers) {
  if (has_centers) {
    const float half_width = box[2] / 2;
    const float half_height = box[3] / 2;
    return {box[0] - half_width, box[1] - half_height, box[0] + half_width, box[1] + half_height};
  }
  // [y1, x1, y2, x2] of any two opposite corners.
  return {std::min(box[1], box[3]), std::min(box[0], box[2]), std::max(box[1], box[3]),
          std::max(box[0], box[2])};
}

// The selected boxes of one class, coordinate by coordinate for vector instructions.
class SelectedBoxes {
 public:
  SelectedBoxes(size_t capacity, std::pmr::memory_resource* memory)
      : x_min_(capacity, 0.0F, memory),
        y_min_(capacity, 0.0F, memory),
        x_max_(capacity, 0.0F, memory),
        y_max_(capacity, 0.0F, memory),
        area_(capacity, 0.0F, memory) {}

  size_t size() const { return size_; }
  void clear() { size_ = 0; }

  void add(const Rectangle& box) {
    x_min_[size_] = box.x_min;
    y_min_[size_] = box.y_min;
    x_max_[size_] = box.x_max;
    y_max_[size_] = box.y_max;
    area_[size_] = box.area();
    ++size_;
  }

  // Whether the intersection of `box` with one of them, divided by their union, exceeds
  // `threshold`. Computed in float32, the type of the boxes, as in other runtimes: so ratios that
  // round to the threshold are equal to it. A box without an area overlaps nothing.
  bool overlaps(const Rectangle& box, float threshold) const {
    constexpr size_t kBlock = 32;
    const float area = box.area();
    if (!(area > 0)) return false;
    for (size_t begin = 0; begin < size_; begin += kBlock) {
      const size_t end = std::min(size_, begin + kBlock);
      int found = 0;
      for (size_t index = begin; index < end; ++index) {
        found |= is_suppressed_by(index, box, area, threshold);
      }
      if (found != 0) return true;
    }
    return false;
  }

 private:
  // Without branches, so that a loop over it becomes vector instructions.
  int is_suppressed_by(size_t index, const Rectangle& box, float area, float threshold) const {
    const float left = x_min_[index] > box.x_min ? x_min_[index] : box.x_min;
    const float right = x_max_[index] < box.x_max ? x_max_[index] : box.x_max;
    const float top = y_min_[index] > box.y_min ? y_min_[index] : box.y_min;
    const float bottom = y_max_[index] < box.y_max ? y_max_[index] : box.y_max;
    const float intersection = (right - left) * (bottom - top);
    const float together = area_[index] + area - intersection;
    const float ratio = intersection / together;
    return static_cast<int>(right > left) & static_cast<int>(bottom > top) &
           static_cast<int>(intersection > 0) & static_cast<int>(area_[index] > 0) &
           static_cast<int>(together > 0) & static_cast<int>(ratio > threshold);
  }

  std::pmr::vector<float> x_min_;
  std::pmr::vector<float> y_min_;
  std::pmr::vector<float> x_max_;
  std::pmr::vector<float> y_max_;
  std::pmr::vector<float> area_;
  size_t size_ = 0;
};

// --- Selection -----------------------------------------------------------------------------------

// Selects the boxes of one class after the other, in memory of its own.
class BoxSelection {
 public:
  BoxSelection(const Suppression& suppression, std::pmr::memory_resource* memory)
      : suppression_(suppression),
        candidates_(static_cast<size_t>(suppression.count), RankedBox{0}, memory),
        selected_(static_cast<size_t>(suppression.most_selected), memory) {}

  // Calls visit(box) for each box that is selected for class `pair` % classes of batch `pair` /
  // classes, from the best to the worst. Returns their number.
  template <class Visit>
  int64_t select(int64_t pair, const Visit& visit) {
    BoxRanking ranking(collect(suppression_.scores + pair * suppression_.count));
    selected_.clear();
    const float* boxes =
        suppression_.boxes + pair / suppression_.classes * suppression_.count * kBoxNumbers;
    const auto limit = static_cast<size_t>(suppression_.most_selected);
    while (selected_.size() < limit && !ranking.is_at_end()) {
      const int64_t best = ranking.next();
      const Rectangle box = rectangle_of(boxes + best * kBoxNumbers, suppression_.has_centers);
      if (selected_.overlaps(box, suppression_.iou_threshold)) continue;
      selected_.add(box);
      visit(best);
    }
    return static_cast<int64_t>(selected_.size());
  }

 private:
  // Without a threshold, all boxes are candidates.
  std::span<RankedBox> collect(const float* scores) {
    return suppression_.score_threshold ? collect_above(scores, *suppression_.score_threshold)
                                        : collect_all(scores);
  }

  // NaN counts as the lowest score.
  std::span<RankedBox> collect_all(const float* scores) {
    constexpr float kLowest = -std::numeric_limits<float>::infinity();
    for (int64_t box = 0; box < suppression_.count; ++box) {
      const float score = std::isnan(scores[box]) ? kLowest : scores[box];
      candidates_[static_cast<size_t>(box)] = ranked_box(score, box);
    }
    return candidates_;
  }

  std::span<RankedBox> collect_above(const float* scores, float threshold) {
    // Most blocks have no candidate; vector instructions find that out.
    constexpr int64_t kBlock = 32;
    size_t count = 0;
    for (int64_t begin = 0; begin < suppression_.count; begin += kBlock) {
      const int64_t end = std::min(suppression_.count, begin + kBlock);
      int found = 0;
      for (int64_t box = begin; box < end; ++box) {
        found |= static_cast<int>(scores[box] > threshold);
      }
      if (found == 0) continue;
      for (int64_t box = begin; box < end; ++box) {
        // Without a branch, which would often be predicted wrongly.
        candidates_[count] = ranked_box(scores[box], box);
        count += scores[box] > threshold ? 1 : 0;
      }
    }
    return std::span(candidates_).first(count);
  }

  const Suppression& suppression_;
  std::pmr::vector<RankedBox> candidates_;
  SelectedBoxes selected_;
};

// --- The rule ------------------------------------------------------------------------------------

void check_one_number(const InferContext& context, size_t index) {
  const Shape* shape = context.has_input(index) ? context.shape(index) : nullptr;
  if (shape == nullptr) return;
  const bool is_single =
      std::ranges::all_of(*shape, [](const Dim& dim) { return !dim.is_known() || dim == Dim(1); });
  if (!is_single) {
    context.fail_input(index, "expected one number, found shape " + text(*shape));
  }
}

void check_boxes_and_scores(const InferContext& context) {
  const Shape* boxes = context.shape(kBoxes);
  const Shape* scores = context.shape(kScores);
  const auto differ = [](const Dim& left, const Dim& right) {
    return left.is_known() && right.is_known() && left != right;
  };
  if (boxes != nullptr && (boxes->size() != 3 || differ((*boxes)[2], kBoxNumbers))) {
    context.fail_input(kBoxes, "expected shape batches x boxes x 4, found " + text(*boxes));
  }
  if (scores == nullptr) return;
  if (scores->size() != 3) {
    context.fail_input(kScores, "expected shape batches x classes x boxes, found " + text(*scores));
  }
  if ((*scores)[2].is_known() && (*scores)[2].value() > kMostBoxes) {
    context.fail_unsupported("expected at most 2^32 boxes, found " + (*scores)[2].text());
  }
  if (boxes == nullptr) return;
  if (differ((*boxes)[0], (*scores)[0]) || differ((*boxes)[1], (*scores)[2])) {
    context.fail_input(kScores, "expected scores of " + (*boxes)[0].text() + " batches and " +
                                    (*boxes)[1].text() + " boxes as input 'boxes' has, found " +
                                    text(*scores));
  }
}

void check_thresholds(const InferContext& context) {
  const int64_t format = context.node().attributes.get_int("center_point_box");
  if (format != 0 && format != 1) {
    context.fail("expected 'center_point_box' 0 or 1, found " + std::to_string(format));
  }
  for (const size_t index : {kMaxOutput, kIouThreshold, kScoreThreshold}) {
    check_one_number(context, index);
  }
  const Tensor* limit =
      context.has_input(kIouThreshold) ? context.constant(kIouThreshold) : nullptr;
  if (limit == nullptr) return;
  const float threshold = limit->as<float>()[0];
  if (!(threshold >= 0 && threshold <= 1)) {
    context.fail_input(kIouThreshold,
                       "expected a threshold in [0, 1], found " + std::to_string(threshold));
  }
}

// The number of selected boxes; nullopt if an element that decides it is unknown.
std::optional<int64_t> selected_count(const InferContext& context) {
  if (!context.has_input(kMaxOutput)) return 0;
  const Tensor* most = context.constant(kMaxOutput);
  if (most != nullptr && most->as<int64_t>()[0] <= 0) return 0;
  SuppressionData data = {};
  bool are_known = true;
  for (size_t index = 0; index < kSuppressionInputs; ++index) {
    if (!context.has_input(index)) continue;
    const Tensor* constant = context.constant(index);
    are_known = are_known && constant != nullptr;
    if (constant != nullptr) data[index] = constant->data();
  }
  if (!are_known) return std::nullopt;
  const Suppression suppression =
      suppression_of(context.node(), context.constant(kScores)->dims(), data);
  BoxSelection selection(suppression, std::pmr::get_default_resource());
  int64_t count = 0;
  for (int64_t pair = 0; pair < suppression.pairs(); ++pair) {
    count += selection.select(pair, [](int64_t) {});
  }
  return count;
}

void infer_non_max_suppression(InferContext& context) {
  check_boxes_and_scores(context);
  check_thresholds(context);
  const std::optional<int64_t> count = selected_count(context);
  context.set_output(0, DataType::Int64,
                     Shape{count ? Dim(*count) : unknown_dim(context, 0, 0), kIndexNumbers});
}

// --- The kernel ----------------------------------------------------------------------------------

void run_non_max_suppression(const KernelCall& call) {
  const auto indices = call.outputs[0].as<int64_t>();
  if (indices.empty()) return;
  SuppressionData data = {};
  for (size_t index = 0; index < call.inputs.size(); ++index) data[index] = call.inputs[index].data;
  const Suppression suppression = suppression_of(call.node, call.inputs[kScores].dims, data);
  const int64_t pairs = suppression.pairs();
  const int64_t limit = suppression.most_selected;
  // First the boxes of each class at a place of its own, because their numbers are not known yet.
  std::pmr::vector<int64_t> boxes(static_cast<size_t>(pairs * limit), &call.scratch);
  std::pmr::vector<int64_t> counts(static_cast<size_t>(pairs), &call.scratch);
  std::pmr::vector<BoxSelection> selections(&call.scratch);
  const int64_t slots = slot_count(call.pool, pairs, 1);
  selections.reserve(static_cast<size_t>(slots));
  for (int64_t slot = 0; slot < slots; ++slot) selections.emplace_back(suppression, &call.scratch);
  parallel_for_in_slots(call.pool, pairs, 1, [&](int64_t slot, int64_t begin, int64_t end) {
    for (int64_t pair = begin; pair < end; ++pair) {
      int64_t* target = boxes.data() + pair * limit;
      counts[static_cast<size_t>(pair)] =
          selections[static_cast<size_t>(slot)].select(pair, [&](int64_t box) { *target++ = box; });
    }
  });
  const int64_t total = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  TESSERA_CHECK(total * kIndexNumbers == static_cast<int64_t>(indices.size()),
                "the rule counted the same boxes");
  int64_t* target = indices.data();
  for (int64_t pair = 0; pair < pairs; ++pair) {
    const int64_t* box = boxes.data() + pair * limit;
    for (const int64_t* end = box + counts[static_cast<size_t>(pair)]; box != end; ++box) {
      *target++ = pair / suppression.classes;
      *target++ = pair % suppression.classes;
      *target++ = *box;
    }
  }
}

}  // namespace

std::vector<Op> non_max_suppression_ops() {
  return {
      {.name = "NonMaxSuppression",
       .versions = {10, 11},
       .inputs = {{"boxes", "tensor(float)"},
                  {"scores", "tensor(float)"},
                  {"max_output_boxes_per_class", "tensor(int64)", Arity::Optional},
                  {"iou_threshold", "tensor(float)", Arity::Optional},
                  {"score_threshold", "tensor(float)", Arity::Optional}},
       .outputs = {{"selected_indices", "tensor(int64)"}},
       .type_variables = {{"tensor(float)", {DataType::Float32}}, {"tensor(int64)", kInt64Type}},
       .attributes = {{"center_point_box", AttributeKind::Int, int64_t{0}}},
       .traits = kSizedByData,
       .infer = infer_non_max_suppression,
       .flops = no_flops,
       .kernel = run_non_max_suppression}};
}

}  // namespace tessera::ops
