// A candidate whose kernel is one primitive of oneDNN.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/context.h"
#include "dnnl.hpp"
#include "tessera/backend.h"

namespace tessera::onednn {

// Builds the candidate of a primitive. Every tensor that the primitive reads or writes is named
// once by its DNNL_ARG_; the scratchpad becomes the workspace of the kernel.
//
//   dnnl::eltwise_forward::primitive_desc relu(engine, ..., context.attributes(), true);
//   if (!relu) return context.refuse(...);
//   PrimitiveOffer offer({node.id()}, relu);
//   offer.read(DNNL_ARG_SRC, node.input(0), relu.src_desc());
//   offer.write(DNNL_ARG_DST, node.output(0), relu.dst_desc());
//   context.add(offer.candidate(seconds));
class PrimitiveOffer {
 public:
  // `nodes` in any order. `description` is any primitive_desc that is not empty.
  PrimitiveOffer(std::vector<int32_t> nodes, const dnnl::primitive_desc_base& description);

  // `value` is read as `desc`, which must have the sizes of the tensor and one of the layouts. A
  // value may be read as several arguments.
  void read(int argument, const plugin::Value& value, const dnnl::memory::desc& desc);
  // Same as read(), but desc may have other sizes than the tensor (a matrix as {1, m, k}), so the
  // layout is given.
  void read_as(int argument, const plugin::Value& value, const dnnl::memory::desc& desc,
               const char* layout);
  // Reads a constant, which the host packs once: `stored` describes its row-major elements with the
  // sizes of `wanted`, which is the format of the primitive. If both are equal, nothing is packed,
  // and a value that is not constant is refused (Failure).
  void read_packed(int argument, const plugin::Value& value, const dnnl::memory::desc& stored,
                   const dnnl::memory::desc& wanted);
  // Reads a constant, which the host packs once by `pack`, which writes it as `wanted`; `id`
  // identifies the packing.
  void read_packed(int argument, const plugin::Value& value, const dnnl::memory::desc& wanted,
                   const std::string& id,
                   std::function<void(const plugin::Buffer& from, void* to)> pack);
  // Constants that the kernel stores itself: a few scales, a flag.
  void keep(int argument, const dnnl::memory::desc& desc, std::vector<float> numbers);

  // `value` is an input of the group that does not affect the result.
  void ignore(const plugin::Value& value);

  void write(int argument, const plugin::Value& value, const dnnl::memory::desc& desc);
  void write_as(int argument, const plugin::Value& value, const dnnl::memory::desc& desc,
                const char* layout);

  // The last output may overwrite input `value`, which must have been read.
  void allow_in_place(const plugin::Value& value);
  // The primitive adds to the content of the last output: `value`, in the layout of the output. If
  // the host gives the output other memory, `value` is copied there first.
  void add_to(const plugin::Value& value);

  // Finishes the candidate: `seconds` is Candidate::optimistic_seconds. The algorithm is
  // impl_info_str(), after `prefix`.
  plugin::Candidate candidate(double seconds, const std::string& prefix = "");

 private:
  struct Argument {
    int index = 0;  // DNNL_ARG_
    dnnl::memory::desc desc;
    bool is_output = false;
    int32_t port = -1;  // -1: `kept`
    std::vector<float> kept;
  };
  class PrimitiveKernel;

  int32_t input_port(const plugin::Value& value, const char* layout);

  dnnl::primitive_desc_base description_;
  plugin::Candidate candidate_;
  std::vector<Argument> arguments_;
  int32_t added_input_ = -1;  // port of the operand of add_to()
};

}  // namespace tessera::onednn
