#include "group_runner.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace tessera::jit {

namespace {

// std::uniform_int_distribution differs between libraries.
class Dice {
 public:
  explicit Dice(uint32_t seed) : random_(seed) {}
  int64_t below(int64_t count) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(count));
  }
  bool one_in(int64_t count) { return below(count) == 0; }
  template <class T>
  const T& pick(const std::vector<T>& values) {
    return values[static_cast<size_t>(below(static_cast<int64_t>(values.size())))];
  }
  std::mt19937& engine() { return random_; }

 private:
  std::mt19937 random_;
};

const std::vector<int32_t> kAllTypes = {
    TESSERA_BOOL,     TESSERA_INT8,    TESSERA_INT16,   TESSERA_INT32,   TESSERA_INT64,
    TESSERA_UINT8,    TESSERA_UINT16,  TESSERA_UINT32,  TESSERA_UINT64,  TESSERA_FLOAT16,
    TESSERA_BFLOAT16, TESSERA_FLOAT32, TESSERA_FLOAT64, TESSERA_FLOAT32, TESSERA_FLOAT32};

bool is_float(int32_t type) { return type == TESSERA_FLOAT32 || type == TESSERA_FLOAT64; }
bool is_half(int32_t type) { return type == TESSERA_FLOAT16 || type == TESSERA_BFLOAT16; }
bool is_integer(int32_t type) { return type >= TESSERA_INT8 && type <= TESSERA_UINT64; }
bool is_signed(int32_t type) { return type >= TESSERA_INT8 && type <= TESSERA_INT64; }

// Sizes around multiples of lanes, and small ones.
int64_t random_size(Dice& dice, bool is_inner) {
  if (!is_inner) return 1 + dice.below(6);
  if (dice.one_in(3)) return std::max<int64_t>(1, 16 * (1 + dice.below(9)) + dice.below(3) - 1);
  return 1 + dice.below(70);
}

// Strides of a tensor that the points read in another order, with gaps, or repeatedly.
std::vector<int64_t> random_strides(Dice& dice, const std::vector<int64_t>& dims, bool may_repeat) {
  std::vector<size_t> order(dims.size());
  for (size_t axis = 0; axis < dims.size(); ++axis) order[axis] = axis;
  if (dice.one_in(3)) std::shuffle(order.begin(), order.end(), dice.engine());
  std::vector<int64_t> strides(dims.size(), 0);
  int64_t stride = dice.one_in(4) ? 2 : 1;
  for (size_t at = order.size(); at-- > 0;) {
    if (may_repeat && dice.one_in(3)) continue;
    strides[order[at]] = stride;
    stride *= dims[order[at]];
  }
  return strides;
}

class ExpressionMaker {
 public:
  ExpressionMaker(Dice& dice, GroupBuilder& builder) : dice_(dice), builder_(builder) {}

  void add_operand() {
    const int32_t type = dice_.pick(kAllTypes);
    std::vector<int64_t> strides;
    int64_t offset = 0;
    if (dice_.one_in(2)) {
      strides = random_strides(dice_, builder_.group.dims, true);
      offset = dice_.below(5);
    }
    note(builder_.operand(type, std::move(strides), offset), true);
  }

  void add_operation() {
    const int32_t first = dice_.pick(values_);
    const int32_t type = builder_.type(first);
    if (dice_.one_in(8)) return add_select(type);
    if (is_half(type)) return add_half(first, type);
    if (type == TESSERA_BOOL) return add_bool(first);
    if (is_float(type)) return add_float(first, type);
    add_integer(first, type);
  }

  const std::vector<int32_t>& values() const { return values_; }

 private:
  // `is_clean`: all compilers give a NaN the same bits.
  int32_t note(int32_t id, bool is_clean = false) {
    is_clean_.resize(static_cast<size_t>(id) + 1, false);
    is_clean_[static_cast<size_t>(id)] = is_clean;
    values_.push_back(id);
    return id;
  }
  bool is_clean(int32_t id) const { return is_clean_[static_cast<size_t>(id)]; }

  int32_t constant_of(int32_t type) {
    const std::string bytes = random_elements(dice_.engine(), type, 8);
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.data(), static_cast<size_t>(plugin::element_bytes(type)));
    if (type == TESSERA_BOOL) bits &= 1;
    return note(builder_.constant(type, bits), true);
  }

  int32_t other_of(int32_t type) {
    std::vector<int32_t> found;
    for (const int32_t id : values_) {
      if (builder_.type(id) == type) found.push_back(id);
    }
    return found.empty() || dice_.one_in(6) ? constant_of(type) : dice_.pick(found);
  }

  void add_select(int32_t type) {
    const int32_t condition = other_of(TESSERA_BOOL);
    const int32_t yes = other_of(type);
    const int32_t no = other_of(type);
    note(builder_.append(TESSERA_EXPRESSION_SELECT, type, {condition, yes, no}),
         is_clean(yes) && is_clean(no));
  }

  void add_half(int32_t first, int32_t type) {
    if (is_clean(first) && dice_.one_in(2)) {
      note(builder_.append(TESSERA_EXPRESSION_BIT_CAST,
                           dice_.one_in(2) ? TESSERA_INT16 : TESSERA_UINT16, {first}),
           true);
      return;
    }
    (void)type;
    note(builder_.append(TESSERA_EXPRESSION_CONVERT, TESSERA_FLOAT32, {first}));
  }

  void add_bool(int32_t first) {
    switch (dice_.below(4)) {
      case 0:
        note(builder_.append(TESSERA_EXPRESSION_NOT, TESSERA_BOOL, {first}), true);
        return;
      case 1: {
        std::vector<int32_t> types;
        for (const int32_t type : kAllTypes) {
          if (is_float(type) || is_integer(type)) types.push_back(type);
        }
        note(builder_.append(TESSERA_EXPRESSION_CONVERT, dice_.pick(types), {first}), true);
        return;
      }
      default: {
        const int32_t second = other_of(TESSERA_BOOL);
        const int32_t operation =
            dice_.pick<int32_t>({TESSERA_EXPRESSION_AND, TESSERA_EXPRESSION_OR,
                                 TESSERA_EXPRESSION_XOR, TESSERA_EXPRESSION_EQUAL});
        note(builder_.append(operation, TESSERA_BOOL, {first, second}), true);
      }
    }
  }

  void add_comparison(int32_t first, int32_t type) {
    const int32_t operation = dice_.pick<int32_t>(
        {TESSERA_EXPRESSION_EQUAL, TESSERA_EXPRESSION_LESS, TESSERA_EXPRESSION_LESS_OR_EQUAL});
    const int32_t second = other_of(type);
    note(builder_.append(operation, TESSERA_BOOL, {first, second}), true);
  }

  void add_float(int32_t first, int32_t type) {
    switch (dice_.below(8)) {
      case 0:
        return add_comparison(first, type);
      case 1:
        return add_float_conversion(first, type);
      case 2:
        if (!is_clean(first)) return add_comparison(first, type);
        return add_bit_cast(first, type);
      case 3: {
        const int32_t second = other_of(type);
        const int32_t third = other_of(type);
        note(builder_.append(TESSERA_EXPRESSION_FUSED_MULTIPLY_ADD, type, {first, second, third}));
        return;
      }
      case 4:
      case 5: {
        const int32_t operation = dice_.pick<int32_t>(
            {TESSERA_EXPRESSION_NEGATE, TESSERA_EXPRESSION_ABSOLUTE, TESSERA_EXPRESSION_SQUARE_ROOT,
             TESSERA_EXPRESSION_FLOOR, TESSERA_EXPRESSION_CEILING, TESSERA_EXPRESSION_TRUNCATE,
             TESSERA_EXPRESSION_ROUND});
        const bool keeps =
            operation == TESSERA_EXPRESSION_NEGATE || operation == TESSERA_EXPRESSION_ABSOLUTE;
        note(builder_.append(operation, type, {first}), keeps && is_clean(first));
        return;
      }
      default: {
        const int32_t operation =
            dice_.pick<int32_t>({TESSERA_EXPRESSION_ADD, TESSERA_EXPRESSION_SUBTRACT,
                                 TESSERA_EXPRESSION_MULTIPLY, TESSERA_EXPRESSION_DIVIDE});
        const int32_t second = other_of(type);
        note(builder_.append(operation, type, {first, second}));
      }
    }
  }

  void add_bit_cast(int32_t first, int32_t type) {
    note(builder_.append(TESSERA_EXPRESSION_BIT_CAST,
                         type == TESSERA_FLOAT32
                             ? dice_.pick<int32_t>({TESSERA_INT32, TESSERA_UINT32})
                             : dice_.pick<int32_t>({TESSERA_INT64, TESSERA_UINT64}),
                         {first}),
         true);
  }

  void add_float_conversion(int32_t first, int32_t type) {
    std::vector<int32_t> types = {TESSERA_INT32, TESSERA_INT64, TESSERA_UINT64,
                                  type == TESSERA_FLOAT32 ? TESSERA_FLOAT64 : TESSERA_FLOAT32};
    if (type == TESSERA_FLOAT32) types.insert(types.end(), {TESSERA_FLOAT16, TESSERA_BFLOAT16});
    const int32_t to = dice_.pick(types);
    note(builder_.append(TESSERA_EXPRESSION_CONVERT, to, {first}), is_integer(to));
  }

  void add_integer(int32_t first, int32_t type) {
    switch (dice_.below(8)) {
      case 0:
        return add_comparison(first, type);
      case 1:
      case 2: {
        int32_t to = dice_.pick(kAllTypes);
        if (to == type || to == TESSERA_BOOL || is_half(to)) to = TESSERA_FLOAT32;
        note(builder_.append(TESSERA_EXPRESSION_CONVERT, to, {first}), true);
        return;
      }
      case 3:
        return add_integer_cast(first, type);
      case 4:
        return add_shift(first, type);
      case 5:
        return add_integer_division(first, type);
      case 6:
        note(builder_.append(TESSERA_EXPRESSION_NOT, type, {first}), true);
        return;
      default: {
        const int32_t operation = dice_.pick<int32_t>(
            {TESSERA_EXPRESSION_ADD, TESSERA_EXPRESSION_SUBTRACT, TESSERA_EXPRESSION_MULTIPLY,
             TESSERA_EXPRESSION_AND, TESSERA_EXPRESSION_OR, TESSERA_EXPRESSION_XOR});
        const int32_t second = other_of(type);
        note(builder_.append(operation, type, {first, second}), true);
      }
    }
  }

  // By a constant count, and by one of data.
  void add_shift(int32_t first, int32_t type) {
    const int64_t bits = 8 * plugin::element_bytes(type);
    int32_t count = builder_.number(type, static_cast<double>(dice_.below(bits)));
    if (dice_.one_in(2)) {
      const int32_t limit = builder_.number(type, static_cast<double>(bits - 1));
      count = builder_.append(TESSERA_EXPRESSION_AND, type, {other_of(type), limit});
    }
    const int32_t operation =
        dice_.one_in(2) ? TESSERA_EXPRESSION_SHIFT_LEFT : TESSERA_EXPRESSION_SHIFT_RIGHT;
    note(builder_.append(operation, type, {first, count}), true);
  }

  void add_integer_division(int32_t first, int32_t type) {
    const double divisor = dice_.pick<double>({1, 2, 3, 7, 10, 100, 127});
    const bool is_negative = is_signed(type) && divisor > 1 && dice_.one_in(3);
    const int32_t second = builder_.number(type, is_negative ? -divisor : divisor);
    const int32_t operation =
        dice_.one_in(2) ? TESSERA_EXPRESSION_DIVIDE : TESSERA_EXPRESSION_REMAINDER;
    note(builder_.append(operation, type, {first, second}), true);
  }

  void add_integer_cast(int32_t first, int32_t type) {
    std::vector<int32_t> types;
    for (const int32_t to : kAllTypes) {
      const bool fits = plugin::element_bytes(to) == plugin::element_bytes(type);
      if (fits && to != type && to != TESSERA_BOOL) types.push_back(to);
    }
    note(builder_.append(TESSERA_EXPRESSION_BIT_CAST, dice_.pick(types), {first}), true);
  }

  Dice& dice_;
  GroupBuilder& builder_;
  std::vector<int32_t> values_;
  std::vector<bool> is_clean_;  // by instruction
};

std::vector<int64_t> random_dims(Dice& dice, size_t rank) {
  std::vector<int64_t> dims;
  for (size_t axis = 0; axis < rank; ++axis) dims.push_back(random_size(dice, axis + 1 == rank));
  if (rank > 2 && dice.one_in(2)) dims[1] = 1 + dice.below(36);
  return dims;
}

Tensors random_inputs(Dice& dice, const plugin::FusedGroup& group) {
  Tensors inputs;
  for (size_t port = 0; port < group.inputs.size(); ++port) {
    inputs.push_back(
        random_elements(dice.engine(), group.operands[port].data_type,
                        port_bytes(group, group.operands, static_cast<int32_t>(port))));
  }
  return inputs;
}

// Floats that are small integers, so that sums of them are exact.
std::string small_integers(Dice& dice, int32_t data_type, int64_t bytes) {
  std::string elements(static_cast<size_t>(bytes), '\0');
  const int64_t size = plugin::element_bytes(data_type);
  for (int64_t at = 0; at < bytes; at += size) {
    const int64_t number = dice.below(9) - 4;
    char* element = elements.data() + at;
    const auto put = [&](auto value) { std::memcpy(element, &value, sizeof(value)); };
    if (data_type == TESSERA_FLOAT32) put(static_cast<float>(number));
    if (data_type == TESSERA_FLOAT64) put(static_cast<double>(number));
    if (data_type == TESSERA_INT32) put(static_cast<int32_t>(number));
    if (data_type == TESSERA_INT64) put(number);
  }
  return elements;
}

// An integer of at most 4, for any `x`.
int32_t small(GroupBuilder& builder, int32_t x) {
  const int32_t type = builder.type(x);
  int32_t rounded = x;
  if (is_float(type)) {
    rounded = builder.append(TESSERA_EXPRESSION_ROUND, type, {x});
    // Turns -0 into 0, of which no reduction is sure.
    rounded = builder.append(TESSERA_EXPRESSION_ADD, type, {rounded, builder.number(type, 0)});
  }
  const int32_t one = builder.number(type, 1);
  const int32_t below =
      builder.append(TESSERA_EXPRESSION_LESS, TESSERA_BOOL, {rounded, builder.number(type, 4)});
  const int32_t above =
      builder.append(TESSERA_EXPRESSION_LESS, TESSERA_BOOL, {builder.number(type, -4), rounded});
  const int32_t is_inside = builder.append(TESSERA_EXPRESSION_AND, TESSERA_BOOL, {below, above});
  return builder.append(TESSERA_EXPRESSION_SELECT, type, {is_inside, rounded, one});
}

int32_t random_reduction(Dice& dice, GroupBuilder& builder, int32_t x) {
  const int32_t type = builder.type(x);
  int32_t operation =
      dice.pick<int32_t>({TESSERA_EXPRESSION_REDUCE_SUM, TESSERA_EXPRESSION_REDUCE_SUM,
                          TESSERA_EXPRESSION_REDUCE_PRODUCT, TESSERA_EXPRESSION_REDUCE_MAX,
                          TESSERA_EXPRESSION_REDUCE_MIN});
  int32_t argument = small(builder, x);
  if (operation == TESSERA_EXPRESSION_REDUCE_PRODUCT) {
    // Signs only.
    const int32_t is_less =
        builder.append(TESSERA_EXPRESSION_LESS, TESSERA_BOOL, {argument, builder.number(type, 0)});
    argument = builder.append(TESSERA_EXPRESSION_SELECT, type,
                              {is_less, builder.number(type, -1), builder.number(type, 1)});
  } else if (operation >= TESSERA_EXPRESSION_REDUCE_MAX && is_float(type) && dice.one_in(2)) {
    // The elements include NaN and infinities.
    argument = builder.append(TESSERA_EXPRESSION_DIVIDE, type, {argument, argument});
  }
  return builder.append(operation, type, {argument});
}

}  // namespace

std::string random_elements(std::mt19937& random, int32_t data_type, int64_t bytes) {
  std::string elements(static_cast<size_t>(bytes), '\0');
  const int64_t size = plugin::element_bytes(data_type);
  using Limits = std::numeric_limits<float>;
  for (int64_t at = 0; at + size <= bytes; at += size) {
    char* element = elements.data() + at;
    const auto put = [&](auto value) { std::memcpy(element, &value, sizeof(value)); };
    const float specials[] = {0.0F,
                              -0.0F,
                              Limits::quiet_NaN(),
                              Limits::infinity(),
                              -Limits::infinity(),
                              Limits::denorm_min(),
                              Limits::max(),
                              0.5F,
                              2.5F,
                              -1.5F,
                              1e10F,
                              -3e9F};
    const bool is_special = random() % 3 == 0;
    const float special = specials[random() % std::size(specials)];
    const float usual = (static_cast<float>(random() % 20001) - 10000.0F) / 1000.0F;
    const uint64_t bits =
        (uint64_t{random()} << 32 | random()) & (random() % 3 == 0 ? 0xffU : ~0ULL);
    if (data_type == TESSERA_FLOAT32) {
      put(is_special ? special : usual);
    } else if (data_type == TESSERA_FLOAT64) {
      put(is_special ? static_cast<double>(special) : static_cast<double>(usual));
    } else {
      std::memcpy(element, &bits, static_cast<size_t>(size));
    }
  }
  return elements;
}

RandomCase random_elementwise_case(uint32_t seed) {
  Dice dice(seed);
  GroupBuilder builder(random_dims(dice, static_cast<size_t>(dice.below(5))));
  ExpressionMaker maker(dice, builder);
  const int64_t operands = 1 + dice.below(4);
  for (int64_t operand = 0; operand < operands; ++operand) maker.add_operand();
  const int64_t operations = 1 + dice.below(40);
  for (int64_t operation = 0; operation < operations; ++operation) maker.add_operation();
  builder.result(maker.values().back());
  while (dice.one_in(3)) {
    std::vector<int64_t> strides;
    if (dice.one_in(2)) strides = random_strides(dice, builder.group.dims, false);
    builder.result(dice.pick(maker.values()), std::move(strides), 0);
  }
  RandomCase made = {std::move(builder.group), {}, {}};
  made.inputs = random_inputs(dice, made.group);
  const size_t rank = made.group.dims.size();
  if (rank >= 3) {
    made.settings.layout = dice.pick<std::string>({"", "nhwc", "nchw8c", "nchw16c"});
  }
  made.settings.threads = dice.one_in(2) ? 2 : 1;
  const plugin::FusedAccess& input = made.group.operands[0];
  const plugin::FusedAccess& output = made.group.results[0];
  made.settings.is_in_place =
      input.is_whole && dice.one_in(2) &&
      plugin::element_bytes(input.data_type) == plugin::element_bytes(output.data_type);
  return made;
}

RandomCase random_reduction_case(uint32_t seed) {
  Dice dice(seed);
  const size_t rank = 1 + static_cast<size_t>(dice.below(4));
  GroupBuilder builder(random_dims(dice, rank));
  uint64_t axes = 0;
  while (axes == 0) axes = static_cast<uint64_t>(dice.below(int64_t{1} << rank));
  builder.group.reduced_axes = axes;
  const int32_t type = dice.pick<int32_t>(
      {TESSERA_FLOAT32, TESSERA_FLOAT32, TESSERA_FLOAT64, TESSERA_INT32, TESSERA_INT64});
  std::vector<int32_t> values = {builder.operand(type)};
  while (dice.one_in(2)) {
    values.push_back(builder.operand(type, random_strides(dice, builder.group.dims, true), 0));
  }
  std::vector<int32_t> row_values;
  const int64_t rounds = 1 + dice.below(3);
  for (int64_t round = 0; round < rounds; ++round) {
    int32_t argument = dice.pick(values);
    if (dice.one_in(2)) {
      argument = builder.append(TESSERA_EXPRESSION_MULTIPLY, type, {argument, dice.pick(values)});
    }
    row_values.push_back(random_reduction(dice, builder, argument));
    values.push_back(
        builder.append(TESSERA_EXPRESSION_SUBTRACT, type, {dice.pick(values), row_values.back()}));
  }
  std::vector<int64_t> row_strides(rank, 0);
  int64_t stride = 1;
  for (size_t axis = rank; axis-- > 0;) {
    if (builder.group.is_reduced(axis)) continue;
    row_strides[axis] = stride;
    stride *= builder.group.dims[axis];
  }
  const bool has_rows = dice.one_in(2);
  if (has_rows) builder.result(row_values.back(), row_strides);
  if (!has_rows || dice.one_in(2)) builder.result(values.back());
  RandomCase made = {std::move(builder.group), {}, {}};
  for (size_t port = 0; port < made.group.inputs.size(); ++port) {
    made.inputs.push_back(small_integers(
        dice, type, port_bytes(made.group, made.group.operands, static_cast<int32_t>(port))));
  }
  if (rank >= 3) {
    made.settings.layout = made.group.is_reduced(1)
                               ? dice.pick<std::string>({"", "nhwc"})
                               : dice.pick<std::string>({"", "nhwc", "nchw8c", "nchw16c"});
  }
  made.settings.threads = dice.one_in(2) ? 2 : 1;
  return made;
}

}  // namespace tessera::jit
