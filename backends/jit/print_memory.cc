#include "print_memory.h"

#include <algorithm>
#include <vector>

namespace tessera::jit {

namespace {

using TypedValue = std::pair<std::string, std::string>;

// A code generator that widens a shorter vector of bytes must clear the mask behind it. LLVM 19
// drops that if the mask is spilled (findings/llvm_mask_spill.sh).
constexpr int kRegisterBytes = 16;

// "<i64 0, i64 1, ...>"
std::string lane_numbers(const std::string& type, int lanes) {
  std::string text;
  for (int lane = 0; lane < lanes; ++lane) {
    text += (lane == 0 ? "" : ", ") + type + " " + std::to_string(lane);
  }
  return "<" + text + ">";
}

std::string full_mask(int lanes) {
  std::string text;
  for (int lane = 0; lane < lanes; ++lane) text += lane == 0 ? "i1 true" : ", i1 true";
  return "<" + text + ">";
}

// A bool is a byte in memory, of which every value but 0 is true.
std::string from_memory(IrWriter& writer, const IrType& type, const std::string& loaded,
                        int lanes) {
  if (type.value == type.memory) return loaded;
  return writer.value("icmp ne " + of_lanes(type.memory, lanes) + " " + loaded + ", " +
                      (lanes == 1 ? "0" : "zeroinitializer"));
}

std::string to_memory(IrWriter& writer, const IrType& type, const std::string& value, int lanes) {
  if (type.value == type.memory) return value;
  return writer.value("zext " + of_lanes(type.value, lanes) + " " + value + " to " +
                      of_lanes(type.memory, lanes));
}

// The first lanes of a vector, or the vector and any values in more lanes behind it.
std::string with_lanes(IrWriter& writer, std::string_view type, const std::string& vector, int from,
                       int to) {
  if (from == to) return vector;
  std::string indices;
  for (int lane = 0; lane < to; ++lane) {
    indices += lane == 0 ? "" : ", ";
    indices += lane < from ? "i32 " + std::to_string(lane) : "i32 poison";
  }
  const std::string whole = of_lanes(type, from);
  return writer.value("shufflevector " + whole + " " + vector + ", " + whole + " poison, <" +
                      std::to_string(to) + " x i32> <" + indices + ">");
}

// Lanes of a masked load or store of consecutive elements.
int masked_lanes(const VectorPlace& place) {
  return place.type->bytes == 1 ? place.mask.byte_lanes : place.lanes;
}

// The texts that loads and stores of one place share, for `lane_count` lanes.
struct VectorText {
  VectorText(const VectorPlace& place, int lane_count)
      : type(of_lanes(place.type->memory, lane_count)),
        align(std::to_string(place.type->bytes)),
        lanes(std::to_string(lane_count)),
        mask{of_lanes("i1", lane_count), place.mask.is_full()        ? full_mask(lane_count)
                                         : lane_count == place.lanes ? place.mask.lanes
                                                                     : place.mask.bytes} {
    const std::string_view memory = place.type->memory;
    suffix = ".v" + lanes + std::string(memory == "i8" ? "i8" : place.type->suffix);
  }

  std::string type;
  std::string align;
  std::string lanes;
  TypedValue mask;
  std::string suffix;  // of intrinsics
};

std::string first_address(IrWriter& writer, const VectorPlace& place) {
  return writer.value("getelementptr " + std::string(place.type->memory) + ", ptr " +
                      place.pointer + ", i64 " + place.index);
}

std::string lane_addresses(IrWriter& writer, const VectorPlace& place) {
  const std::string type = of_lanes("i64", place.lanes);
  const std::string first = writer.value("mul nsw i64 " + place.index + ", " + place.stride);
  const std::string begin =
      writer.value("getelementptr i8, ptr " + place.pointer + ", i64 " + first);
  const std::string steps = writer.splat("i64", place.stride, place.lanes);
  const std::string offsets =
      writer.value("mul nsw " + type + " " + steps + ", " + lane_numbers("i64", place.lanes));
  return writer.value("getelementptr i8, ptr " + begin + ", " + type + " " + offsets);
}

}  // namespace

std::string print_vector_load(IrWriter& writer, const VectorPlace& place) {
  std::string loaded;
  if (!place.stride.empty()) {
    const VectorText text(place, place.lanes);
    loaded = writer.call(text.type, "llvm.masked.gather" + text.suffix + ".v" + text.lanes + "p0",
                         {{of_lanes("ptr", place.lanes), lane_addresses(writer, place)},
                          {"i32", text.align},
                          text.mask,
                          {text.type, "zeroinitializer"}});
  } else if (place.mask.is_full()) {
    const VectorText text(place, place.lanes);
    loaded = writer.value("load " + text.type + ", ptr " + first_address(writer, place) +
                          ", align " + text.align);
  } else {
    const int lanes = masked_lanes(place);
    const VectorText text(place, lanes);
    loaded = writer.call(text.type, "llvm.masked.load" + text.suffix + ".p0",
                         {{"ptr", first_address(writer, place)},
                          {"i32", text.align},
                          text.mask,
                          {text.type, "zeroinitializer"}});
    loaded = with_lanes(writer, place.type->memory, loaded, lanes, place.lanes);
  }
  return from_memory(writer, *place.type, loaded, place.lanes);
}

void print_vector_store(IrWriter& writer, const VectorPlace& place, const std::string& value,
                        bool is_streaming) {
  const std::string stored = to_memory(writer, *place.type, value, place.lanes);
  if (!place.stride.empty()) {
    const VectorText text(place, place.lanes);
    writer.call("", "llvm.masked.scatter" + text.suffix + ".v" + text.lanes + "p0",
                {{text.type, stored},
                 {of_lanes("ptr", place.lanes), lane_addresses(writer, place)},
                 {"i32", text.align},
                 text.mask});
    return;
  }
  const std::string address = first_address(writer, place);
  if (place.mask.is_full()) {
    const VectorText text(place, place.lanes);
    const std::string bytes = std::to_string(place.type->bytes * place.lanes);
    writer.line("store " + text.type + " " + stored + ", ptr " + address + ", align " +
                (is_streaming ? bytes + ", !nontemporal !0" : text.align));
    return;
  }
  const int lanes = masked_lanes(place);
  const VectorText text(place, lanes);
  writer.call("", "llvm.masked.store" + text.suffix + ".p0",
              {{text.type, with_lanes(writer, place.type->memory, stored, place.lanes, lanes)},
               {"ptr", address},
               {"i32", text.align},
               text.mask});
}

void print_prefetch(IrWriter& writer, const VectorPlace& place, const std::string& distance) {
  const std::string address =
      writer.value("getelementptr i8, ptr " + first_address(writer, place) + ", i64 " + distance);
  writer.call("", "llvm.prefetch.p0", {{"ptr", address}, {"i32", "0"}, {"i32", "3"}, {"i32", "1"}});
}

std::string print_scalar_load(IrWriter& writer, const IrType& type, const std::string& pointer) {
  const std::string loaded = writer.value("load " + std::string(type.memory) + ", ptr " + pointer +
                                          ", align " + std::to_string(type.bytes));
  return from_memory(writer, type, loaded, 1);
}

void print_scalar_store(IrWriter& writer, const IrType& type, const std::string& pointer,
                        const std::string& value) {
  writer.line("store " + std::string(type.memory) + " " + to_memory(writer, type, value, 1) +
              ", ptr " + pointer + ", align " + std::to_string(type.bytes));
}

LaneMask print_mask(IrWriter& writer, const Target& target, const std::string& index,
                    const std::string& size, int lanes, bool may_be_behind) {
  std::string rest = writer.value("sub nsw i64 " + size + ", " + index);
  if (may_be_behind) rest = writer.call("i64", "llvm.smax.i64", {{"i64", rest}, {"i64", "0"}});
  const std::string count =
      writer.call("i64", "llvm.umin.i64", {{"i64", rest}, {"i64", std::to_string(lanes)}});
  const std::string narrow = writer.value("trunc i64 " + count + " to i8");
  LaneMask mask;
  // Without masks in registers, LLVM writes a branch for each lane.
  mask.byte_lanes = target.has_masks() ? std::max(lanes, kRegisterBytes) : lanes;
  const std::string limit = writer.splat("i8", narrow, mask.byte_lanes);
  mask.bytes = writer.value("icmp ult " + of_lanes("i8", mask.byte_lanes) + " " +
                            lane_numbers("i8", mask.byte_lanes) + ", " + limit);
  mask.lanes = with_lanes(writer, "i1", mask.bytes, mask.byte_lanes, lanes);
  return mask;
}

}  // namespace tessera::jit
