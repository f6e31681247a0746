// A unit of work is some rows of queries that share a head of keys: those of several heads at one
// position, or those of one head at several positions. Keys and values are read in the cache.
#include "attention/cached_attention.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/divide_up.h"
#include "base/element_type.h"
#include "base/grain.h"
#include "base/shared_parts.h"

namespace tessera::native {

using plugin::RunContext;

namespace {

// Rows that share a pass over keys and values, and rows of a unit.
constexpr int64_t kSharingRows = 4;
constexpr int64_t kUnitRows = 32;

struct CachedDivision {
  bool has_head_rows = false;  // rows are heads, at one position
  int64_t rows = 0;            // of a head, or of a group of heads
  int64_t units_of_rows = 0;
  int64_t units = 0;
  int64_t slots = 1;
  int64_t rotated_floats = 0;
  int64_t slot_floats = 0;
};

CachedDivision cached_division_of(const CachedAttention& sizes, int64_t keys, int64_t threads) {
  CachedDivision division;
  division.has_head_rows = sizes.queries == 1;
  division.rows = division.has_head_rows ? sizes.heads / sizes.key_heads : sizes.queries;
  division.units_of_rows = divide_up(division.rows, kUnitRows);
  const int64_t heads = division.has_head_rows ? sizes.key_heads : sizes.heads;
  division.units = sizes.batch * heads * division.units_of_rows;
  const double products = 4 * static_cast<double>(sizes.batch * sizes.heads * sizes.queries) *
                          static_cast<double>(keys) * static_cast<double>(sizes.size);
  const auto worth = static_cast<int64_t>(products / kGrainFlops) + 1;
  division.slots =
      std::clamp<int64_t>(std::min(worth, division.units), 1, std::max<int64_t>(threads, 1));
  if (sizes.rotation.half > 0) {
    division.rotated_floats = sizes.batch * sizes.heads * sizes.queries * sizes.size;
  }
  division.slot_floats = kSharingRows * keys;
  return division;
}

// The keys [begin, end) of a cache that a query sees.
struct SeenKeys {
  int64_t begin = 0;
  int64_t end = 0;
};

class CachedRun {
 public:
  CachedRun(const CachedAttention& attention, const CachedDivision& division, float* workspace)
      : attention_(attention),
        division_(division),
        loops_(find_cached_attention_loops()),
        workspace_(workspace),
        query_(attention.query) {}

  void fill_caches(RunContext& context) {
    const CachedAttention& a = attention_;
    copy_cache(context, a.key_cache);
    copy_cache(context, a.value_cache);
    const int64_t grain = kGrain / (a.key_heads * a.size + 1) + 1;
    context.parallel_for(a.batch * a.added, grain, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) {
        add_position(index / a.added, index % a.added);
      }
    });
  }

  // Queries are read from the workspace afterwards.
  void rotate_queries(RunContext& context) {
    const CachedAttention& a = attention_;
    if (a.rotation.cosines == nullptr) return;
    const int64_t head = a.queries * a.size;
    float* const to = workspace_;
    const int64_t grain = kGrain / (a.heads * a.size + 1) + 1;
    context.parallel_for(a.batch * a.queries, grain, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) {
        const int64_t b = index / a.queries;
        const int64_t s = index % a.queries;
        const VectorRotation rotation = rotation_at(b, s, a.first_query(b));
        for (int64_t h = 0; h < a.heads; ++h) {
          loops_.rotate(a.query.at(b, h, s), a.size, rotation,
                        to + (b * a.heads + h) * head + s * a.size);
        }
      }
    });
    query_ = {to, a.heads * head, head, a.size};
  }

  void attend(RunContext& context) const {
    SharedParts units(division_.units, division_.slots);
    context.parallel_for(division_.slots, 1, [&](int64_t begin, int64_t end) {
      for (int64_t slot = begin; slot < end; ++slot) {
        float* const scores = workspace_ + division_.rotated_floats + slot * division_.slot_floats;
        units.for_each(slot, [&](int64_t unit) { run_unit(unit, scores); });
      }
    });
  }

 private:
  VectorRotation rotation_at(int64_t b, int64_t s, int64_t first) const {
    const RotationTable& table = attention_.rotation;
    int64_t row = first + s;
    if (table.positions != nullptr) {
      // Of a prompt, only the first one counts.
      const bool is_prompt = attention_.is_prompt();
      const int64_t place = is_prompt ? 0 : b * table.positions_stride + s;
      if (place >= table.positions_count) {
        throw plugin::Failure(TESSERA_INVALID_ARGUMENT,
                              "input 'position_ids': expected a number for each position, found " +
                                  std::to_string(table.positions_count));
      }
      row = table.positions[place] + (is_prompt ? s : 0);
    }
    if (row < 0 || row >= table.rows) {
      throw plugin::Failure(TESSERA_INVALID_ARGUMENT,
                            "expected positions in [0, " + std::to_string(table.rows) +
                                "), those of 'cos_cache', found " + std::to_string(row));
    }
    return {.cosines = table.cosines + row * table.half,
            .sines = table.sines + row * table.half,
            .half = table.half,
            .is_interleaved = table.is_interleaved};
  }

  // All positions but the new ones.
  void copy_cache(RunContext& context, const HeadCache& cache) const {
    const CachedAttention& a = attention_;
    if (cache.past == cache.present) return;
    const int64_t grain = kGrain / (a.present * a.size + 1) + 1;
    context.parallel_for(a.batch * a.key_heads, grain, [&](int64_t begin, int64_t end) {
      for (int64_t head = begin; head < end; ++head) {
        const int64_t first = a.first_key(head / a.key_heads);
        copy_positions(cache, head, 0, first, cache.past_positions);
        // What is behind the new positions stays only in a cache that does not grow.
        const bool keeps_rest = cache.past_positions == a.present;
        copy_positions(cache, head, first + a.added, a.present, keeps_rest ? a.present : 0);
      }
    });
  }

  // Positions [begin, end), of which those from `past_end` on become zero.
  void copy_positions(const HeadCache& cache, int64_t head, int64_t begin, int64_t end,
                      int64_t past_end) const {
    const CachedAttention& a = attention_;
    float* const to = cache.present + head * a.present * a.size;
    const int64_t copied = cache.past == nullptr ? begin : std::clamp(past_end, begin, end);
    if (copied > begin) {
      const float* const from = cache.past + head * cache.past_positions * a.size;
      std::copy(from + begin * a.size, from + copied * a.size, to + begin * a.size);
    }
    std::fill(to + copied * a.size, to + end * a.size, 0.0F);
  }

  // Position s of the new ones.
  void add_position(int64_t b, int64_t s) const {
    const CachedAttention& a = attention_;
    const int64_t position = a.first_key(b) + s;
    for (int64_t h = 0; h < a.key_heads; ++h) {
      const int64_t offset = ((b * a.key_heads + h) * a.present + position) * a.size;
      const float* const key = a.key.at(b, h, s);
      if (a.rotation.cosines == nullptr) {
        std::copy_n(key, a.size, a.key_cache.present + offset);
      } else {
        loops_.rotate(key, a.size, rotation_at(b, s, a.first_key(b)), a.key_cache.present + offset);
      }
      std::copy_n(a.value.at(b, h, s), a.size, a.value_cache.present + offset);
    }
  }

  SeenKeys seen_by(int64_t b, int64_t s) const {
    const int64_t position = attention_.first_query(b) + s;
    int64_t end = attention_.length(b);
    if (attention_.is_causal) end = std::min(end, position + 1);
    const int64_t window = attention_.window;
    return {window < 0 ? 0 : std::clamp<int64_t>(position + 1 - window, 0, end), end};
  }

  void run_unit(int64_t unit, float* scores) const {
    const CachedAttention& a = attention_;
    const int64_t heads = division_.has_head_rows ? a.key_heads : a.heads;
    const int64_t head = unit / division_.units_of_rows % heads;
    const int64_t b = unit / division_.units_of_rows / heads;
    const int64_t first = unit % division_.units_of_rows * kUnitRows;
    const int64_t end = std::min(first + kUnitRows, division_.rows);
    for (int64_t row = first; row < end; row += kSharingRows) {
      const int64_t rows = std::min(kSharingRows, end - row);
      if (division_.has_head_rows) {
        run_rows(b, head * division_.rows + row, 0, rows, scores);
      } else {
        run_rows(b, head, row, rows, scores);
      }
    }
  }

  VectorRows cached(const HeadCache& cache, int64_t b, int64_t head, const SeenKeys& seen) const {
    const CachedAttention& a = attention_;
    const int64_t key_head = head / (a.heads / a.key_heads);
    const int64_t first = (b * a.key_heads + key_head) * a.present + seen.begin;
    return {cache.present + first * a.size, a.size, seen.end - seen.begin, a.size};
  }

  // Rows from query s of `head` on.
  void run_rows(int64_t b, int64_t head, int64_t s, int64_t rows, float* scores) const {
    const CachedAttention& a = attention_;
    std::array<SeenKeys, static_cast<size_t>(kSharingRows)> seen;
    SeenKeys all = seen_by(b, s);
    SeenKeys common = all;
    for (int64_t row = 0; row < rows; ++row) {
      const SeenKeys one = seen_by(b, division_.has_head_rows ? s : s + row);
      seen[static_cast<size_t>(row)] = one;
      all = {std::min(all.begin, one.begin), std::max(all.end, one.end)};
      common = {std::max(common.begin, one.begin), std::min(common.end, one.end)};
    }
    const int64_t stride = all.end - all.begin;
    const VectorRows queries = {query_.at(b, head, s),
                                division_.has_head_rows ? query_.head : query_.position, rows,
                                a.size};
    loops_.multiply_keys(queries, cached(a.key_cache, b, head, all), scores, stride);
    for (int64_t row = 0; row < rows; ++row) {
      const SeenKeys& one = seen[static_cast<size_t>(row)];
      const bool is_head = division_.has_head_rows;
      weigh(b, is_head ? head + row : head, is_head ? s : s + row, one,
            scores + row * stride + one.begin - all.begin);
    }
    const int64_t to_stride = division_.has_head_rows ? a.size : a.heads * a.size;
    float* const to = a.to + ((b * a.queries + s) * a.heads + head) * a.size;
    mix(b, head, all, common, {seen.data(), static_cast<size_t>(rows)}, scores, to, to_stride);
  }

  void weigh(int64_t b, int64_t head, int64_t s, const SeenKeys& seen, float* scores) const {
    const CachedAttention& a = attention_;
    ScoreForm form = a.scores;
    if (a.bias != nullptr) {
      form.bias = a.bias + b * a.bias_batch + head * a.bias_head + s * a.total + seen.begin;
    }
    if (a.has_smooth_softmax) form.sink = 0;
    if (a.sinks != nullptr) form.sink = a.sinks[head];
    loops_.weigh(scores, seen.end - seen.begin, form);
  }

  // Keys that only some of the rows see are left to these rows: a value that a query does not see
  // may be NaN.
  void mix(int64_t b, int64_t head, const SeenKeys& all, const SeenKeys& common,
           std::span<const SeenKeys> seen, const float* weights, float* to,
           int64_t to_stride) const {
    const int64_t stride = all.end - all.begin;
    const bool has_common = common.end > common.begin;
    if (has_common) {
      loops_.mix_values(weights + common.begin - all.begin, stride,
                        static_cast<int64_t>(seen.size()),
                        cached(attention_.value_cache, b, head, common), false, to, to_stride);
    }
    for (size_t row = 0; row < seen.size(); ++row) {
      const SeenKeys& one = seen[row];
      const auto add = [&](int64_t begin, int64_t end, bool adds) {
        const auto line = static_cast<int64_t>(row);
        if (begin >= end && adds) return;
        loops_.mix_values(weights + line * stride + begin - all.begin, stride, 1,
                          cached(attention_.value_cache, b, head, {begin, end}), adds,
                          to + line * to_stride, to_stride);
      };
      if (!has_common) {
        add(one.begin, one.end, false);
      } else {
        add(one.begin, common.begin, true);
        add(common.end, one.end, true);
      }
    }
  }

  const CachedAttention& attention_;
  const CachedDivision& division_;
  CachedAttentionLoops loops_;
  float* workspace_;
  HeadVectors query_;
};

void check_lengths(const CachedAttention& attention) {
  const int64_t least = attention.is_prompt() ? 1 : std::max(attention.queries, attention.added);
  for (int64_t b = 0; b < attention.batch; ++b) {
    const int64_t length = attention.length(b);
    if (length >= least && length <= attention.total) continue;
    throw plugin::Failure(TESSERA_INVALID_ARGUMENT, "input 'seqlens_k': expected numbers in [" +
                                                        std::to_string(least - 1) + ", " +
                                                        std::to_string(attention.total) +
                                                        "), found " + std::to_string(length - 1));
  }
}

}  // namespace

int64_t cached_attention_workspace_bytes(const CachedAttention& sizes, int64_t keys,
                                         int64_t threads) {
  const CachedDivision division = cached_division_of(sizes, keys, threads);
  // A run with fewer keys may have as many slots as threads.
  const int64_t slots = std::max<int64_t>(threads, 1);
  return (division.rotated_floats + slots * division.slot_floats) * kFloatBytes;
}

void run_cached_attention(RunContext& context, const CachedAttention& attention, int64_t threads,
                          void* workspace) {
  check_lengths(attention);
  const CachedDivision division = cached_division_of(attention, attention.total, threads);
  CachedRun run(attention, division, static_cast<float*>(workspace));
  run.fill_caches(context);
  run.rotate_queries(context);
  run.attend(context);
}

}  // namespace tessera::native
