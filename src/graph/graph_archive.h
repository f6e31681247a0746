// Serialisation of graphs; see base/files/byte_archive.h. Sparse constants are written as dense
// ones. A graph that was read is structurally complete but may be illegal (graph/verify.h).
//
// transfer() destructures structs into all of their fields, so that a new field does not compile
// until it is transferred too.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "base/files/byte_archive.h"
#include "graph/graph.h"

namespace tessera {

// The range of tensor elements that are stored outside of the archive.
struct BlockRange {
  int64_t offset = 0;
  int64_t bytes = 0;
};

template <class Archive>
void transfer(Archive& archive, BlockRange& range) {
  archive(range.offset, range.bytes);
}

template <class Archive, class Tag>
void transfer(Archive& archive, StrongId<Tag>& id) {
  archive(id.index);
}

template <class Archive>
void transfer(Archive& archive, Dim& dim) {
  if constexpr (Archive::kIsReading) {
    int64_t value = 0;
    std::string symbol;
    archive(value, symbol);
    dim = symbol.empty() ? Dim(value) : Dim::symbol(symbol);
  } else {
    archive(dim.is_known() ? dim.value() : 0, dim.symbol());
  }
}

constexpr bool is_enumerator(Type::Kind kind) { return kind <= Type::Kind::Map; }

template <class Archive>
void transfer(Archive& archive, Type& type) {
  archive(type.kind, type.element, type.shape, type.contents);
}

constexpr bool is_enumerator(SparseFormat format) {
  return format == SparseFormat::Csr || format == SparseFormat::RowSparse;
}

template <class Archive>
void transfer(Archive& archive, SparseForm& form) {
  archive(form.format, form.capacity);
}

template <class Archive>
void transfer(Archive& archive, Value& value) {
  // Neither the device nor numbers that follow from sizes are known before a bind.
  auto& [name, type, constant, elements, numbers, is_state, sparse, is_io_sparse, io_device,
         sparse_constant, digest] = value;
  if constexpr (!Archive::kIsReading) {
    // A sparse constant is written with all its elements; reading restores its sparse form from
    // them.
    if (sparse_constant != nullptr) {
      Tensor full = elements_of(value);
      return archive(name, type, full, elements, is_state, sparse, is_io_sparse, digest);
    }
  }
  archive(name, type, constant, elements, is_state, sparse, is_io_sparse, digest);
}

// Constructs the alternative with this index and reads into it.
template <size_t kNumber = 0>
void read_alternative(ByteReader& archive, Attribute& attribute, size_t wanted) {
  if constexpr (kNumber < std::variant_size_v<Attribute>) {
    if (kNumber == wanted) return archive(attribute.emplace<kNumber>());
    read_alternative<kNumber + 1>(archive, attribute, wanted);
  } else {
    ByteReader::fail("an attribute of kind " + std::to_string(wanted));
  }
}

template <class Archive>
void transfer(Archive& archive, Attribute& attribute) {
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
void transfer(Archive& archive, Attributes& attributes) {
  if constexpr (Archive::kIsReading) {
    Attributes::Values all;
    archive(all);
    for (auto& [name, value] : all) attributes.set(name, std::move(value));
  } else {
    archive(attributes.all());
  }
}

template <class Archive>
void transfer(Archive& archive, Capture& capture) {
  archive(capture.outer, capture.inner);
}

template <class Archive>
void transfer(Archive& archive, Graph& graph);

template <class Archive>
void transfer(Archive& archive, Body& body) {
  archive(body.attribute, body.graph);
}

template <class Archive>
void transfer(Archive& archive, Node& node) {
  auto& [name, op, domain, version, attributes, inputs, outputs, bodies, metadata, inference_only,
         is_removed] = node;
  archive(name, op, domain, version, attributes, inputs, outputs, bodies, metadata, inference_only,
          is_removed);
}

template <class Archive>
void transfer(Archive& archive, Graph& graph) {
  auto& [name, nodes, values, inputs, outputs, kept, captures] = graph;
  archive(name, nodes, values, inputs, outputs, kept, captures);
}

}  // namespace tessera
