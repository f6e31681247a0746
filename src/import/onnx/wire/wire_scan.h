// Splits an ONNX file into its structure and its weights; see
// docs/decisions/0004-import-by-wire-scan.md. tensors.h joins them again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "import/onnx/wire/byte_source.h"
#include "onnx.pb.h"

namespace tessera::onnx_import {

// Maximum nesting depth of graphs, including the model's own.
inline constexpr int kMaxNestedGraphs = 128;

// A part of a tensor's elements: [offset, offset + bytes) of the source.
struct Segment {
  int field = 0;           // of TensorProto: raw_data, float_data, int32_data, ...
  bool is_packed = false;  // if not (never for raw_data), each element has a tag
  int64_t offset = 0;
  int64_t bytes = 0;
};

// The elements of one tensor; a single segment in regular files.
using Payload = std::vector<Segment>;

// A message without the elements of its tensors: their fields are removed, and raw_data holds an
// index into `payloads` instead, which payload_index() reads.
template <class Proto>
struct Scanned {
  Proto message;
  std::vector<Payload> payloads;
};

// Both throw InvalidModel with the position if the bytes are no such message or (with a message of
// its own) if graphs nest deeper than kMaxNestedGraphs.
Scanned<onnx::ModelProto> scan_model(const ByteSource& source);
Scanned<onnx::TensorProto> scan_tensor(const ByteSource& source);

// The index into Scanned::payloads; -1 if the file has no elements for the tensor.
int64_t payload_index(const onnx::TensorProto& tensor);

}  // namespace tessera::onnx_import
