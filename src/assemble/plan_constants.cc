#include "assemble/plan_assembler.h"

#include <array>
#include <utility>

#include "backend/device_memory/device_tensor.h"
#include "base/errors/check.h"
#include "engine/largest_buffers.h"
#include "tessera/error.h"

namespace tessera {
namespace {

class ConstantMaker {
 public:
  ConstantMaker(BuiltPlan& built, PackStore& packs, ThreadPool& pool)
      : built_(built), packs_(packs), context_(pool), pool_(pool) {}

  std::optional<ReleasedWeight> make_all() {
    find_stored();
    // Keeps these packs alive until all constants are made.
    std::vector<PackStore::Bytes> packs_of_released;
    if (auto released = find_unavailable_weight(packs_of_released)) return released;
    for (const PlanConstant& constant : built_.plan.constants) {
      built_.constants.push_back(make_or_explain(constant));
    }
    for (const int result : built_.plan.results) {
      const PlanBuffer& buffer = built_.plan.buffers[static_cast<size_t>(result)];
      built_.constant_results.push_back(constant_result(buffer));
    }
    return std::nullopt;
  }

 private:
  std::shared_ptr<const void> make_or_explain(const PlanConstant& constant) {
    try {
      return make(constant);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::OutOfMemory) throw;
      throw Error(ErrorKind::OutOfMemory, "weight '" + built_.graph[constant.value].name + "'",
                  error.message() + "; the plan's largest: " + largest_buffers_text(built_));
    }
  }

  // Maps stored packs with all threads, because the system has work to do for each page.
  void find_stored() {
    const std::vector<PlanConstant>& constants = built_.plan.constants;
    pool_.parallel_for(std::ssize(constants), 1, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) {
        const PlanConstant& constant = constants[static_cast<size_t>(index)];
        const Value& value = built_.graph[constant.value];
        const bool is_made_on_device = is_on_device(constant) && constant.pack == nullptr;
        if (value.digest && has_pack(constant) && !is_made_on_device) {
          packs_.find_stored(key_of(constant, *value.digest), constant.bytes);
        }
      }
    });
  }

  // Returns a released weight that is read in a form for which there is no pack. Adds the packs
  // that replace the other released weights to `packs`.
  std::optional<ReleasedWeight> find_unavailable_weight(
      std::vector<PackStore::Bytes>& packs) const {
    for (const PlanConstant& constant : built_.plan.constants) {
      const auto released = find_released_weight(built_.graph, std::span(&constant.value, 1));
      if (!released) continue;
      const std::optional<Digest>& digest = built_.graph[constant.value].digest;
      if (!digest || !has_pack(constant)) return released;
      packs.push_back(packs_.find(stored_key_of(constant, *digest)));
      if (packs.back() == nullptr) return released;
    }
    for (const int result : built_.plan.results) {
      const PlanBuffer& buffer = built_.plan.buffers[static_cast<size_t>(result)];
      if (!is_dense_constant(buffer)) continue;
      if (auto released = find_released_weight(built_.graph, std::span(&buffer.value, 1))) {
        return released;
      }
    }
    return std::nullopt;
  }

  bool is_dense_constant(const PlanBuffer& buffer) const {
    return buffer.kind == PlanBuffer::Kind::Constant && !built_.layouts->sparse_form(buffer.layout);
  }

  Tensor constant_result(const PlanBuffer& buffer) const {
    if (buffer.kind != PlanBuffer::Kind::Constant) return {};
    if (is_dense_constant(buffer)) return elements(buffer.value);
    const auto& bytes = built_.constants[static_cast<size_t>(buffer.index)];
    return {DataType::UInt8, {buffer.bytes}, bytes, bytes.get()};
  }

  Tensor elements(ValueId value) const {
    Tensor tensor = elements_of(built_.graph[value]);
    TESSERA_CHECK(tensor.has_elements(), "find_unavailable_weight() has found those without");
    return tensor;
  }

  // The digest under which a pack is found. The digest of a dense constant is stored in the value:
  // if it were computed when the weights are released, all of them would be read again and need
  // memory in addition to the packs.
  Digest digest(ValueId id) {
    Value& value = built_.graph[id];
    if (value.digest) return *value.digest;
    if (value.constant.has_elements()) {
      value.digest = digest_of(value.constant, &pool_);
      return *value.digest;
    }
    return digest_of(value.sparse_constant ? value.sparse_constant->storage() : elements(id),
                     &pool_);
  }

  // Whether the model's file has the constant in the requested form.
  bool has_file_form(const PlanConstant& constant, const Value& value) const {
    const std::optional<SparseForm> form = built_.layouts->sparse_form(constant.layout);
    return form && value.sparse_constant && constant.pack == nullptr &&
           *form == SparseForm{value.sparse_constant->format(), value.sparse_constant->stored()};
  }

  // Whether the constant is needed in another form than that of the graph.
  bool has_pack(const PlanConstant& constant) const {
    if (constant.pack == nullptr && constant.layout == kDefaultLayout) return false;
    return !has_file_form(constant, built_.graph[constant.value]);
  }

  PackKey key_of(const PlanConstant& constant, const Digest& weight) const {
    const Value& value = built_.graph[constant.value];
    PackKey key{.weight = weight};
    if (constant.pack != nullptr) {
      const Candidate& candidate =
          built_.offers.candidates[static_cast<size_t>(constant.candidate)];
      key.id = constant.pack->id;
      key.ingredients = candidate.backend() + ";" + candidate.plugin->ingredients();
    } else {
      key.id = "layout " + built_.layouts->name(constant.layout);
    }
    // The digest of a sparse constant is that of its storage, which does not determine all
    // dimensions.
    if (value.sparse_constant) key.id += " of " + text(value.type);
    return key;
  }

  bool is_on_device(const PlanConstant& constant) const { return constant.device != kHostDevice; }

  // The key of the form in which steps read the constant: in memory of the device, if it is there.
  PackKey stored_key_of(const PlanConstant& constant, const Digest& weight) const {
    PackKey key = key_of(constant, weight);
    if (!is_on_device(constant)) return key;
    const Device& device = built_.layouts->device(constant.device);
    key.id += " on " + device.name();
    key.ingredients = device.plugin().name() + ";" + device.plugin().ingredients();
    return key;
  }

  std::shared_ptr<const void> make_pack(const PlanConstant& constant, const Value& value) {
    return packs_.get(key_of(constant, digest(constant.value)), constant.bytes,
                      [&](void* memory) { pool_.execute([&] { fill(constant, value, memory); }); });
  }

  std::shared_ptr<const void> make_on_device(const PlanConstant& constant, const Value& value) {
    return packs_.get_on_device(stored_key_of(constant, digest(constant.value)), [&] {
      if (constant.pack != nullptr) {
        const auto packed = make_pack(constant, value);
        return copied_to_device(built_.layouts->device(constant.device), packed.get(),
                                constant.bytes);
      }
      const Tensor dense = elements(constant.value);
      return stored_on_device(*built_.layouts, constant.layout, *known_type(value.type),
                              dense.data(), "weight '" + value.name + "'", pool_);
    });
  }

  std::shared_ptr<const void> make(const PlanConstant& constant) {
    const Value& value = built_.graph[constant.value];
    if (is_on_device(constant)) return make_on_device(constant, value);
    if (has_pack(constant)) return make_pack(constant, value);
    if (constant.layout != kDefaultLayout) {
      return {value.sparse_constant, value.sparse_constant->storage().data()};
    }
    const auto held = std::make_shared<const Tensor>(elements(constant.value));
    return {held, held->data()};
  }

  static tessera_buffer buffer_of(const Tensor& tensor) {
    tessera_buffer buffer = {};
    buffer.data = const_cast<void*>(tensor.data());
    buffer.bytes = tensor.bytes();
    buffer.data_type = static_cast<int32_t>(tensor.type());
    buffer.rank = static_cast<int32_t>(tensor.rank());
    buffer.dims = tensor.dims().data();
    return buffer;
  }

  void fill(const PlanConstant& constant, const Value& value, void* memory) {
    const Tensor dense = elements(constant.value);
    const tessera_buffer from = buffer_of(dense);
    const std::string location = "weight '" + value.name + "'";
    if (constant.pack == nullptr) {
      convert_along_route(constant, location, from, memory);
      return;
    }
    const Candidate& candidate = built_.offers.candidates[static_cast<size_t>(constant.candidate)];
    const Status status = call_plugin([&](tessera_error* error) {
      const int32_t packed = constant.pack->pack(constant.pack->self, context_.abi(), &from, memory,
                                                 constant.bytes, error);
      return context_.checked(packed, error);
    });
    if (!status.is_fine()) {
      throw Error(status.kind(), location,
                  "backend '" + candidate.backend() + "' could not pack it: " + status.message);
    }
  }

  void convert_along_route(const PlanConstant& constant, const std::string& location,
                           const tessera_buffer& from, void* memory) {
    const TensorType type = *known_type(built_.graph[constant.value].type);
    // Every layout can be reached from the default layout.
    const std::vector<ConversionStep> route =
        built_.layouts->route(kDefaultLayout, constant.layout, type);
    TESSERA_CHECK(!route.empty(), "a constant in the default layout is the tensor itself");
    std::vector<Tensor> between;
    tessera_buffer source = from;
    for (size_t index = 0; index < route.size(); ++index) {
      tessera_buffer target = from;
      target.bytes = built_.layouts->known_storage_bytes(route[index].to, type);
      target.data = memory;
      if (index + 1 < route.size()) {
        target.data = between.emplace_back(Tensor(DataType::UInt8, {target.bytes})).mutable_data();
      }
      convert(route[index], location, context_, source, target);
      source = target;
    }
  }

  BuiltPlan& built_;
  PackStore& packs_;
  RunContext context_;
  ThreadPool& pool_;
};

}  // namespace

std::optional<ReleasedWeight> make_constants(BuiltPlan& built, PackStore& packs, ThreadPool& pool) {
  return ConstantMaker(built, packs, pool).make_all();
}

int64_t pack_bytes(const ExecutionPlan& plan) {
  int64_t total = 0;
  for (const PlanConstant& constant : plan.constants) {
    if (constant.pack != nullptr || constant.layout != kDefaultLayout) total += constant.bytes;
  }
  return total;
}

}  // namespace tessera
