// The elements of tensors, in every encoding that ONNX has.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "import/onnx/byte_source.h"
#include "import/onnx/external_data.h"
#include "import/onnx/wire_scan.h"
#include "tessera/tensor.h"

namespace tessera::onnx_import {

// Reads the tensors of one scanned file. Elements in the file are copied once, from the file into
// the tensor; external ones are mapped, or copied where they are misaligned or the caller wants
// that. All three objects must outlive the reader, but not its tensors.
class TensorReader {
 public:
  TensorReader(const ByteSource& source, const std::vector<Payload>& payloads,
               ExternalData& external, bool copies_external = false);

  // `where` is what errors call the tensor. Throws InvalidModel where dimensions and elements do
  // not agree, Unsupported for element types without storage, and OutOfMemory, before anything is
  // allocated, where the tensors read so far and this one need more than the machine has.
  // Reading one twice gives the same storage.
  Tensor read(const onnx::TensorProto& proto, const std::string& where);

  // Takes `bytes` from what is left of the machine's memory. Throws OutOfMemory where that is less.
  void charge(int64_t bytes, const std::string& where);

 private:
  Tensor read_external(const onnx::TensorProto& proto, DataType type, std::vector<int64_t> dims,
                       const std::string& where);
  Tensor read_payload(const Payload& payload, DataType type, std::vector<int64_t> dims,
                      const std::string& where);
  Tensor allocate(DataType type, std::vector<int64_t> dims, const std::string& where);

  const ByteSource& source_;
  const std::vector<Payload>& payloads_;
  ExternalData& external_;
  bool copies_external_;
  int64_t bytes_left_;  // of the machine's memory
  // By payload: a function that is called twice shares its weights.
  std::unordered_map<int64_t, Tensor> read_already_;
};

}  // namespace tessera::onnx_import
