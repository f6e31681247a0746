// Splits an ONNX file into its structure and its weights; see
// docs/decisions/0004-import-by-wire-scan.md. tensors.h puts the two together again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "import/onnx/byte_source.h"
#include "onnx.pb.h"

namespace tessera::onnx_import {

// Graphs inside graphs, the model's own included.
inline constexpr int kMostNestedGraphs = 32;

// A piece of a tensor's elements: [offset, offset + bytes) of the source.
struct Segment {
  int field = 0;           // of TensorProto: raw_data, float_data, int32_data, ...
  bool is_packed = false;  // false (never for raw_data): a tag stands before each element
  int64_t offset = 0;
  int64_t bytes = 0;
};

// The elements of one tensor; in a legal file one segment.
using Payload = std::vector<Segment>;

// A message without the elements of its tensors: those fields are cut out, and raw_data holds
// instead what payload_index() reads.
template <class Proto>
struct Scanned {
  Proto message;
  std::vector<Payload> payloads;
};

// Both throw InvalidModel with the position where the bytes are no such message, or where graphs
// nest deeper than kMostNestedGraphs (a message of its own).
Scanned<onnx::ModelProto> scan_model(const ByteSource& source);
Scanned<onnx::TensorProto> scan_tensor(const ByteSource& source);

// The index into Scanned::payloads; -1 where the file gives the tensor no elements.
int64_t payload_index(const onnx::TensorProto& tensor);

}  // namespace tessera::onnx_import
