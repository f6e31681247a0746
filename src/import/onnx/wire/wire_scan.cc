#include "import/onnx/wire/wire_scan.h"

#include <google/protobuf/io/coded_stream.h>

#include <cstring>
#include <limits>

#include "base/errors/check.h"
#include "import/onnx/wire/foreign_format.h"
#include "import/onnx/wire/wire_reader.h"
#include "tessera/error.h"

namespace tessera::onnx_import {
namespace {

// The messages that can contain a tensor. All others are copied unchanged.
enum class Kind : uint8_t { Model, Graph, Node, Attribute, Function, SparseTensor, Tensor };

struct Child {
  Kind parent;
  int field;
  Kind child;
};

constexpr Child kChildren[] = {
    {Kind::Model, onnx::ModelProto::kGraphFieldNumber, Kind::Graph},
    {Kind::Model, onnx::ModelProto::kFunctionsFieldNumber, Kind::Function},
    {Kind::Function, onnx::FunctionProto::kNodeFieldNumber, Kind::Node},
    {Kind::Function, onnx::FunctionProto::kAttributeProtoFieldNumber, Kind::Attribute},
    {Kind::Graph, onnx::GraphProto::kNodeFieldNumber, Kind::Node},
    {Kind::Graph, onnx::GraphProto::kInitializerFieldNumber, Kind::Tensor},
    {Kind::Graph, onnx::GraphProto::kSparseInitializerFieldNumber, Kind::SparseTensor},
    {Kind::Node, onnx::NodeProto::kAttributeFieldNumber, Kind::Attribute},
    {Kind::Attribute, onnx::AttributeProto::kTFieldNumber, Kind::Tensor},
    {Kind::Attribute, onnx::AttributeProto::kTensorsFieldNumber, Kind::Tensor},
    {Kind::Attribute, onnx::AttributeProto::kGFieldNumber, Kind::Graph},
    {Kind::Attribute, onnx::AttributeProto::kGraphsFieldNumber, Kind::Graph},
    {Kind::Attribute, onnx::AttributeProto::kSparseTensorFieldNumber, Kind::SparseTensor},
    {Kind::Attribute, onnx::AttributeProto::kSparseTensorsFieldNumber, Kind::SparseTensor},
    {Kind::SparseTensor, onnx::SparseTensorProto::kValuesFieldNumber, Kind::Tensor},
    {Kind::SparseTensor, onnx::SparseTensorProto::kIndicesFieldNumber, Kind::Tensor},
};

const Child* find_child(Kind parent, Tag tag) {
  if (tag.type != WireType::Length) return nullptr;
  for (const Child& child : kChildren) {
    if (child.parent == parent && child.field == static_cast<int>(tag.field)) return &child;
  }
  return nullptr;
}

// Training information is never read.
bool is_dropped(Kind parent, Tag tag) {
  return parent == Kind::Model && tag.field == onnx::ModelProto::kTrainingInfoFieldNumber;
}

// The wire type of one element of a typed field if it is not packed; nullptr for other fields.
const WireType* element_type(uint32_t field) {
  static constexpr WireType kFixed32 = WireType::Fixed32;
  static constexpr WireType kFixed64 = WireType::Fixed64;
  static constexpr WireType kVarint = WireType::Varint;
  switch (field) {
    case onnx::TensorProto::kFloatDataFieldNumber:
      return &kFixed32;
    case onnx::TensorProto::kDoubleDataFieldNumber:
      return &kFixed64;
    case onnx::TensorProto::kInt32DataFieldNumber:
    case onnx::TensorProto::kInt64DataFieldNumber:
    case onnx::TensorProto::kUint64DataFieldNumber:
      return &kVarint;
    default:
      return nullptr;
  }
}

class Scanner {
 public:
  explicit Scanner(const ByteSource& source) : reader_(source, 0, source.size()) {}

  // Appends the current message without its payloads to `target`.
  void scan(Kind kind, std::string& target) {
    if (kind == Kind::Graph && ++graph_depth_ > kMaxNestedGraphs) {
      throw Error(ErrorKind::InvalidModel, "nested graphs",
                  "expected at most " + std::to_string(kMaxNestedGraphs) +
                      " graphs inside one another, found more (at byte " +
                      std::to_string(reader_.position()) + ")");
    }
    if (kind == Kind::Tensor) {
      scan_tensor_fields(target);
    } else {
      while (!reader_.is_at_end()) scan_field(kind, target);
    }
    if (kind == Kind::Graph) --graph_depth_;
  }

  std::vector<Payload> take_payloads() { return std::move(payloads_); }

 private:
  void scan_field(Kind kind, std::string& target) {
    const int64_t begin = reader_.position();
    const Tag tag = reader_.tag();
    const Child* child = find_child(kind, tag);
    if (child == nullptr) {
      reader_.skip_value(tag.type);
      if (!is_dropped(kind, tag)) reader_.copy(begin, reader_.position(), target);
      return;
    }
    const int64_t outer_end = reader_.enter(reader_.length());
    std::string inner;
    scan(child->child, inner);
    reader_.leave(outer_end);
    append_varint(target, (static_cast<uint64_t>(tag.field) << 3) | 2);
    append_varint(target, inner.size());
    target += inner;
  }

  void scan_tensor_fields(std::string& target) {
    Payload payload;
    while (!reader_.is_at_end()) {
      const int64_t begin = reader_.position();
      const Tag tag = reader_.tag();
      const bool is_raw = tag.field == onnx::TensorProto::kRawDataFieldNumber;
      const WireType* element = element_type(tag.field);
      if ((is_raw || element != nullptr) && tag.type == WireType::Length) {
        const int64_t length = reader_.length();
        // As in protobuf, the last raw_data wins, while typed fields accumulate.
        if (is_raw) std::erase_if(payload, is_raw_segment);
        payload.push_back({static_cast<int>(tag.field), true, reader_.position(), length});
        reader_.skip(length);
      } else if (element != nullptr && tag.type == *element) {
        reader_.skip_value(tag.type);
        add_unpacked(payload, static_cast<int>(tag.field), begin, reader_.position());
      } else {
        reader_.skip_value(tag.type);
        reader_.copy(begin, reader_.position(), target);
      }
    }
    if (!payload.empty()) append_index(target, std::move(payload));
  }

  static bool is_raw_segment(const Segment& segment) {
    return segment.field == onnx::TensorProto::kRawDataFieldNumber;
  }

  static void add_unpacked(Payload& payload, int field, int64_t begin, int64_t end) {
    const bool continues = !payload.empty() && payload.back().field == field &&
                           !payload.back().is_packed &&
                           payload.back().offset + payload.back().bytes == begin;
    if (continues) {
      payload.back().bytes = end - payload.back().offset;
    } else {
      payload.push_back({field, false, begin, end - begin});
    }
  }

  void append_index(std::string& target, Payload payload) {
    const uint64_t index = payloads_.size();
    payloads_.push_back(std::move(payload));
    append_varint(target, (onnx::TensorProto::kRawDataFieldNumber << 3) | 2);
    append_varint(target, sizeof index);
    target.append(reinterpret_cast<const char*>(&index), sizeof index);
  }

  WireReader reader_;
  int graph_depth_ = 0;
  std::vector<Payload> payloads_;
};

template <class Proto>
Scanned<Proto> scan_protobuf(const ByteSource& source, Kind kind) {
  if (source.size() == 0) {
    throw Error(ErrorKind::InvalidModel, source.location(),
                "expected an ONNX file, found no bytes");
  }
  if (source.size() > std::numeric_limits<int32_t>::max()) {
    throw Error(ErrorKind::InvalidModel, source.location(),
                "expected at most 2 GiB (2147483647 bytes), protobuf's limit, found " +
                    std::to_string(source.size()) +
                    "; larger weights belong into external data files");
  }
  Scanner scanner(source);
  std::string structure;
  scanner.scan(kind, structure);
  if (structure.size() > std::numeric_limits<int32_t>::max()) {
    throw Error(ErrorKind::InvalidModel, source.location(),
                "expected less than 2 GiB besides the elements of tensors, found " +
                    std::to_string(structure.size()) + " bytes");
  }
  Scanned<Proto> result;
  result.payloads = scanner.take_payloads();

  // Three messages per nested graph, and some more for nested types.
  constexpr int kMaxNestedMessages = 3 * kMaxNestedGraphs + 50;
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(structure.data()),
                                                static_cast<int>(structure.size()));
  stream.SetRecursionLimit(kMaxNestedMessages);
  if (!result.message.ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage()) {
    throw Error(ErrorKind::InvalidModel, source.location(),
                "not an ONNX (protobuf) file, or a damaged or truncated one: a message inside does "
                "not follow the format, or types nest too deep");
  }
  return result;
}

[[noreturn]] void fail_as(const std::string& format, const ByteSource& source) {
  throw Error(ErrorKind::InvalidModel, source.location(),
              "expected an ONNX (protobuf) file, found " + format);
}

template <class Proto>
Scanned<Proto> scan(const ByteSource& source, Kind kind) {
  try {
    return scan_protobuf<Proto>(source, kind);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::InvalidModel) throw;
    const std::string format = explain_foreign_format(source);
    if (format.empty()) throw;
    fail_as(format, source);
  }
}

}  // namespace

Scanned<onnx::ModelProto> scan_model(const ByteSource& source) {
  Scanned<onnx::ModelProto> model = scan<onnx::ModelProto>(source, Kind::Model);
  // The bytes of another format may happen to be a message of fields that ONNX does not have.
  if (!model.message.has_ir_version() && !model.message.has_graph()) {
    const std::string format = explain_foreign_format(source);
    if (!format.empty()) fail_as(format, source);
  }
  return model;
}

Scanned<onnx::TensorProto> scan_tensor(const ByteSource& source) {
  return scan<onnx::TensorProto>(source, Kind::Tensor);
}

int64_t payload_index(const onnx::TensorProto& tensor) {
  if (!tensor.has_raw_data()) return -1;
  uint64_t index = 0;
  TESSERA_CHECK(tensor.raw_data().size() == sizeof index, "scanning replaced all elements");
  std::memcpy(&index, tensor.raw_data().data(), sizeof index);
  return static_cast<int64_t>(index);
}

}  // namespace tessera::onnx_import
