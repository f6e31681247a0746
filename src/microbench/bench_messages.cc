#include "microbench/bench_messages.h"

#include <chrono>
#include <utility>

#include "base/files/byte_archive.h"
#include "base/memory/guard_pages.h"
#include "graph/graph_archive.h"

namespace tessera {

static constexpr bool is_enumerator(Denormals denormals) { return denormals <= Denormals::Flush; }

}  // namespace tessera

namespace tessera::verification {

static constexpr bool is_enumerator(Judge judge) { return judge <= Judge::Wide; }

}  // namespace tessera::verification

namespace tessera::tuning {

template <class Archive>
static void transfer(Archive& archive, GroupCase& group) {
  auto& [graph, inputs, outputs, magnitudes, judge, exact, spreads, threads, precision, nan,
         accuracy, denormals, special_inputs, special_outputs, bytes_between] = group;
  archive(graph, inputs, outputs, magnitudes, judge, exact, spreads, threads, precision, nan,
          accuracy, denormals, special_inputs, special_outputs, bytes_between);
}

namespace {

constexpr uint64_t kStageBits = 8;

}  // namespace

std::string build_identity() { return "tessera " TESSERA_VERSION ", messages 5"; }

int64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void ProgressPage::enter(BenchStage stage) {
  stage_and_time = (static_cast<uint64_t>(now_us()) << kStageBits) | static_cast<uint64_t>(stage);
}

Progress ProgressPage::read() const {
  const uint64_t both = stage_and_time;
  const uint64_t stage = both & ((uint64_t{1} << kStageBits) - 1);
  const auto last = static_cast<uint64_t>(BenchStage::Run);
  return {stage <= last ? static_cast<BenchStage>(stage) : BenchStage::Prepare,
          static_cast<int64_t>(both >> kStageBits)};
}

Message pack_case(const GroupCase& group, SharedArena& arena) {
  ByteWriter writer;
  writer(group);
  std::vector<std::span<const char>> blocks;
  for (const Tensor& tensor : writer.tensors()) {
    blocks.emplace_back(static_cast<const char*>(tensor.data()),
                        static_cast<size_t>(tensor.bytes()));
  }
  Message message = {.kind = static_cast<uint32_t>(BenchMessage::Load)};
  std::vector<BlockRange> places;
  if (!blocks.empty()) {
    SharedBytes shared = arena.store(blocks);
    for (size_t index = 0; index < blocks.size(); ++index) {
      places.push_back({shared.offsets[index], static_cast<int64_t>(blocks[index].size())});
    }
    message.files.push_back(std::move(shared.file));
  }
  ByteWriter whole;
  whole(places, writer.take_bytes());
  message.payload = whole.take_bytes();
  return message;
}

GroupCase unpack_case(const Message& message) {
  std::vector<BlockRange> places;
  std::string content;
  ByteReader reader(message.payload);
  reader(places, content);
  reader.expect_end();
  if (!places.empty() && message.files.empty()) ByteReader::fail("no file of tensors");
  std::vector<ByteReader::Block> blocks;
  for (const BlockRange& location : places) {
    const auto pages =
        std::make_shared<GuardPages>(location.bytes, message.files[0].get(), location.offset);
    blocks.push_back({{pages, pages->data()}, location.bytes});
  }
  GroupCase group;
  ByteReader inside(content, std::move(blocks));
  inside(group);
  inside.expect_end();
  return group;
}

}  // namespace tessera::tuning
