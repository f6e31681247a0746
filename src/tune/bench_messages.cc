#include "tune/bench_messages.h"

#include <chrono>
#include <utility>
#include <variant>

#include "base/byte_archive.h"
#include "base/fenced_pages.h"
#include "base/shared_bytes.h"

namespace tessera {

// In the namespaces of their structs, where ByteWriter and ByteReader find them.

template <class Archive, class Tag>
static void transfer(Archive& archive, StrongId<Tag>& id) {
  archive(id.index);
}

template <class Archive>
static void transfer(Archive& archive, Dim& dim) {
  if constexpr (Archive::kIsReading) {
    int64_t value = 0;
    std::string symbol;
    archive(value, symbol);
    dim = symbol.empty() ? Dim(value) : Dim::symbol(symbol);
  } else {
    archive(dim.is_known() ? dim.value() : 0, dim.symbol());
  }
}

template <class Archive>
static void transfer(Archive& archive, Type& type) {
  archive(type.kind, type.element, type.shape, type.contents);
}

template <class Archive>
static void transfer(Archive& archive, SparseForm& form) {
  archive(form.format, form.capacity);
}

template <class Archive>
static void transfer(Archive& archive, Value& value) {
  auto& [name, type, constant, elements, is_state, sparse, is_exchanged_sparse, sparse_constant,
         digest] = value;
  if constexpr (!Archive::kIsReading) {
    // A sparse constant crosses with all its elements, from which its form is made again.
    if (sparse_constant != nullptr) {
      Tensor full = elements_of(value);
      return archive(name, type, full, elements, is_state, sparse, is_exchanged_sparse, digest);
    }
  }
  archive(name, type, constant, elements, is_state, sparse, is_exchanged_sparse, digest);
}

// Makes the alternative of this number and reads into it.
template <size_t number = 0>
static void read_alternative(ByteReader& archive, Attribute& attribute, size_t wanted) {
  if constexpr (number < std::variant_size_v<Attribute>) {
    if (number == wanted) return archive(attribute.emplace<number>());
    read_alternative<number + 1>(archive, attribute, wanted);
  } else {
    ByteReader::fail("an attribute of kind " + std::to_string(wanted));
  }
}

template <class Archive>
static void transfer(Archive& archive, Attribute& attribute) {
  if constexpr (Archive::kIsReading) {
    uint8_t kind = 0;
    archive(kind);
    read_alternative(archive, attribute, kind);
  } else {
    archive(static_cast<uint8_t>(attribute.index()));
    std::visit([&](const auto& value) { archive(value); }, attribute);
  }
}

template <class Archive>
static void transfer(Archive& archive, Attributes& attributes) {
  if constexpr (Archive::kIsReading) {
    std::map<std::string, Attribute> all;
    archive(all);
    for (auto& [name, value] : all) attributes.set(name, std::move(value));
  } else {
    archive(attributes.all());
  }
}

template <class Archive>
static void transfer(Archive& archive, Capture& capture) {
  archive(capture.outer, capture.inner);
}

template <class Archive>
static void transfer(Archive& archive, Graph& graph);

template <class Archive>
static void transfer(Archive& archive, Body& body) {
  archive(body.attribute, body.graph);
}

template <class Archive>
static void transfer(Archive& archive, Node& node) {
  auto& [name, op, domain, version, attributes, inputs, outputs, bodies, metadata, inference_only,
         is_removed] = node;
  archive(name, op, domain, version, attributes, inputs, outputs, bodies, metadata, inference_only,
          is_removed);
}

template <class Archive>
static void transfer(Archive& archive, Graph& graph) {
  auto& [name, nodes, values, inputs, outputs, kept, captures] = graph;
  archive(name, nodes, values, inputs, outputs, kept, captures);
}

namespace tuning {

template <class Archive>
static void transfer(Archive& archive, GroupCase& group) {
  auto& [graph, inputs, outputs, magnitudes, threads, precision, bytes_between] = group;
  archive(graph, inputs, outputs, magnitudes, threads, precision, bytes_between);
}

namespace {

// Where a tensor's elements are in the file.
struct BlockPlace {
  int64_t offset = 0;
  int64_t bytes = 0;
};

template <class Archive>
void transfer(Archive& archive, BlockPlace& place) {
  archive(place.offset, place.bytes);
}

constexpr uint64_t kStageBits = 8;

}  // namespace

std::string build_identity() { return std::string("tessera ") + TESSERA_VERSION + ", messages 1"; }

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

Message pack_case(const GroupCase& group) {
  ByteWriter writer;
  writer(group);
  std::vector<std::span<const char>> blocks;
  for (const Tensor& tensor : writer.tensors()) {
    blocks.emplace_back(static_cast<const char*>(tensor.data()),
                        static_cast<size_t>(tensor.bytes()));
  }
  Message message = {.kind = static_cast<uint32_t>(BenchMessage::Load)};
  std::vector<BlockPlace> places;
  if (!blocks.empty()) {
    SharedBytes shared = share_bytes(blocks);
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
  std::vector<BlockPlace> places;
  std::string content;
  ByteReader reader(message.payload);
  reader(places, content);
  reader.expect_end();
  if (!places.empty() && message.files.empty()) ByteReader::fail("no file of tensors");
  std::vector<ByteReader::Block> blocks;
  for (const BlockPlace& place : places) {
    const auto pages =
        std::make_shared<FencedPages>(place.bytes, message.files[0].get(), place.offset);
    blocks.push_back({{pages, pages->data()}, place.bytes});
  }
  GroupCase group;
  ByteReader inside(content, std::move(blocks));
  inside(group);
  inside.expect_end();
  return group;
}

}  // namespace tuning
}  // namespace tessera
