// MatMul and Gemm, with a sum and a Relu behind them: for sizes where the call of a library costs
// more than the product.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "families.h"
#include "plain_product.h"
#include "product.h"
#include "product_kernels.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Candidate;
using plugin::Failure;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;
using plugin::Type;
using plugin::Value;

namespace {

// Floating-point operations that one thread does at least.
constexpr double kGrainFlops = 256 * 1024;

// Rows that go over a panel before the next ones; a multiple of what the loops hold in registers.
constexpr int64_t kRowBlock = 96;

// Fewer rows on the left than this are not worth writing the right matrix anew.
constexpr int64_t kLeastRepacked = 4;

[[noreturn]] void refuse(const std::string& reason) { throw Failure(TESSERA_UNSUPPORTED, reason); }

// How the right matrix is read.
enum class Form : uint8_t {
  Panels,    // as it is, some neighbouring columns at a time
  Packed,    // a constant, in panels one behind the other
  Repacked,  // the same, packed each time into the workspace
  Dots       // as it is, each column a vector
};

const char* form_name(Form form) {
  switch (form) {
    case Form::Panels:
      return "panels";
    case Form::Packed:
      return "packed";
    case Form::Repacked:
      return "repacked";
    case Form::Dots:
      return "dots";
  }
  return "";
}

int64_t divide_up(int64_t count, int64_t unit) { return (count + unit - 1) / unit; }

int64_t packed_floats(const Product& product, int64_t panel) {
  return divide_up(product.columns, panel) * panel * product.depth;
}

// Writes [depth, columns] as panels, the columns of each side by side, zeros behind the last.
void pack(RunContext& context, const Product& product, int64_t panel, const float* from,
          float* to) {
  const int64_t panels = divide_up(product.columns, panel);
  const int64_t grain = int64_t{16} * 1024 / (panel * product.depth + 1) + 1;
  context.parallel_for(panels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      const int64_t count = std::min(panel, product.columns - index * panel);
      const float* columns = from + index * panel * product.right_column;
      float* target = to + index * panel * product.depth;
      for (int64_t depth = 0; depth < product.depth; ++depth, target += panel) {
        const float* source = columns + depth * product.right_depth;
        for (int64_t column = 0; column < count; ++column) {
          target[column] = source[column * product.right_column];
        }
        std::fill(target + count, target + panel, 0.0F);
      }
    }
  });
}

// Ports, by their places among the inputs.
struct Work {
  Product product;
  Form form = Form::Panels;
  size_t right = 1;
  std::optional<size_t> addend;
  bool is_addend_whole = false;  // an addend for each result, of all products
  bool has_relu = false;
  // One product, whose rows on the left are as many as the buffer has.
  bool has_open_rows = false;
};

class ProductKernel : public plugin::Kernel {
 public:
  explicit ProductKernel(Work work) : work_(std::move(work)), loops_(find_product_loops()) {
    const Product& product = work_.product;
    tile_ = work_.form == Form::Dots ? std::min<int64_t>(product.columns, 256) : loops_.panel;
    tiles_ = divide_up(product.columns, tile_);
  }

  int64_t workspace_bytes() const override { return workspace_for(work_); }
  static int64_t workspace_for(const Work& work) {
    if (work.form != Form::Repacked) return 0;
    return packed_floats(work.product, find_product_loops().panel) *
           static_cast<int64_t>(sizeof(float));
  }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const float* left = inputs[0].as<const float>();
    const float* right = inputs[work_.right].as<const float>();
    const float* addend = work_.addend ? inputs[*work_.addend].as<const float>() : nullptr;
    float* to = outputs[0].as<float>();
    if (work_.form == Form::Repacked) {
      float* packed = static_cast<float*>(context.workspace());
      pack(context, work_.product, loops_.panel, right, packed);
      right = packed;
    }
    const Product& product = work_.product;
    const int64_t rows = work_.has_open_rows ? inputs[0].elements() / product.depth : product.rows;
    const int64_t parts = tiles_ * divide_up(rows, kRowBlock);
    const double flops = 2 * static_cast<double>(rows) * static_cast<double>(product.columns) *
                         static_cast<double>(product.depth) / static_cast<double>(parts);
    const int64_t grain = static_cast<int64_t>(kGrainFlops / (flops + 1)) + 1;
    context.parallel_for(product.count * parts, grain, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) {
        run_part(index, rows, left, right, addend, to);
      }
    });
  }

 private:
  void run_part(int64_t index, int64_t rows, const float* left, const float* right,
                const float* addend, float* to) const {
    const Product& product = work_.product;
    const int64_t row_blocks = divide_up(rows, kRowBlock);
    const int64_t row = index % row_blocks * kRowBlock;
    const int64_t tile = index / row_blocks % tiles_;
    const int64_t which = index / row_blocks / tiles_;
    const int64_t column = tile * tile_;
    const auto place = static_cast<size_t>(which);
    const bool is_packed = work_.form == Form::Packed || work_.form == Form::Repacked;
    ProductPart part = {.left_row = product.left_row,
                        .left_depth = product.left_depth,
                        .right_depth = is_packed ? loops_.panel : product.right_depth,
                        .right_column = product.right_column,
                        .rows = std::min(kRowBlock, rows - row),
                        .columns = std::min(tile_, product.columns - column),
                        .depth = product.depth,
                        .to_row = product.columns};
    part.left = left + product.left_starts[place] + row * product.left_row;
    part.right = right + (product.has_one_right() ? 0 : product.right_starts[place]) +
                 column * (is_packed ? product.depth : product.right_column);
    const int64_t first = (which * rows + row) * product.columns + column;
    part.to = to + first;
    part.end = {.alpha = product.alpha, .beta = product.beta, .has_relu = work_.has_relu};
    if (addend != nullptr) {
      part.end.addend_row = work_.is_addend_whole ? product.columns : product.addend_row;
      part.end.addend_column = work_.is_addend_whole ? 1 : product.addend_column;
      part.end.addend = work_.is_addend_whole
                            ? addend + first
                            : addend + row * product.addend_row + column * product.addend_column;
    }
    if (work_.form == Form::Dots) {
      loops_.dots(part);
    } else if (is_packed) {
      loops_.padded(part);
    } else {
      loops_.columns(part);
    }
  }

  Work work_;
  ProductLoops loops_;
  int64_t tile_ = 1;
  int64_t tiles_ = 1;
};

void check_usable(const Value& value) {
  if (value.type().data_type != TESSERA_FLOAT32 || !value.type().is_known()) {
    refuse("takes float32 tensors of known shape only");
  }
}

// A product and what follows it.
struct Group {
  std::vector<int32_t> nodes;
  int32_t result = -1;  // value
  int32_t addend = -1;  // value
  bool is_addend_whole = false;
  bool has_relu = false;
};

class ProductOffer {
 public:
  ProductOffer(ProposeContext& context, const Node& node)
      : context_(context), node_(node), product_(product_of(node)) {}

  void offer() {
    Group group = {.nodes = {node_.id()}, .result = node_.output(0).id()};
    group.addend = product_.addend;
    std::vector<Group> groups = {group};
    if (group.addend < 0 && product_.alpha == 1 && append_sum(group)) groups.push_back(group);
    if (append_relu(group)) groups.push_back(group);
    for (size_t index = groups.size(); index-- > 0;) offer_group(groups[index]);
  }

 private:
  bool append_sum(Group& group) {
    constexpr int32_t kFirstBroadcastingVersion = 7;
    const std::optional<Node> node =
        plugin::only_reader(context_.graph(), context_.graph().value(group.result));
    if (!node || node->op() != "Add" || node->version() < kFirstBroadcastingVersion) return false;
    const Value other = node->input(node->input(0).id() == group.result ? 1 : 0);
    const Type type = context_.graph().value(group.result).type();
    const Type added = other.type();
    if (node->output(0).type() != type || added.data_type != TESSERA_FLOAT32) return false;
    const bool is_last = !added.dims.empty() && added.elements() == added.dims.back() &&
                         added.elements() == product_.columns && !type.dims.empty() &&
                         type.dims.back() == product_.columns;
    if (added == type) {
      group.is_addend_whole = true;
    } else if (is_last || added.elements() == 1) {
      product_.addend_column = added.elements() == 1 ? 0 : 1;
    } else {
      return false;
    }
    group.addend = other.id();
    group.nodes.push_back(node->id());
    group.result = node->output(0).id();
    return true;
  }

  bool append_relu(Group& group) const {
    const std::optional<Node> node =
        plugin::only_reader(context_.graph(), context_.graph().value(group.result));
    if (!node || node->op() != "Relu") return false;
    group.has_relu = true;
    group.nodes.push_back(node->id());
    group.result = node->output(0).id();
    return true;
  }

  void offer_group(const Group& group) {
    const bool has_columns = product_.right_column == 1;
    const bool has_vectors = product_.right_depth == 1 || product_.depth == 1;
    const bool is_left_vector = product_.left_depth == 1 || product_.depth == 1;
    const bool is_one = product_.has_one_right();
    if (node_.input(1).is_constant() && is_one) add(group, Form::Packed);
    if (is_left_vector && has_vectors) add(group, Form::Dots);
    if (has_columns) {
      add(group, Form::Panels);
    } else if (is_one && (product_.rows >= kLeastRepacked || !is_left_vector)) {
      add(group, Form::Repacked);
    }
  }

  void add(const Group& group, Form form) {
    Work work = {.product = product_, .form = form, .has_relu = group.has_relu};
    work.is_addend_whole = group.is_addend_whole;
    Candidate candidate;
    candidate.nodes = group.nodes;
    std::sort(candidate.nodes.begin(), candidate.nodes.end());
    candidate.algorithm = form_name(form);
    candidate.inputs.push_back({.value = node_.input(0).id()});
    work.right = port_of(candidate, node_.input(1).id());
    if (form == Form::Packed) {
      // The packed bytes are not those that another use of the value would read.
      if (work.right == 0 || group.addend == node_.input(1).id()) return;
      candidate.inputs[work.right].pack = pack_of();
    }
    if (group.addend >= 0) work.addend = port_of(candidate, group.addend);
    // A C that counts for nothing is read by the node all the same.
    if (node_.input(2).is_present()) port_of(candidate, node_.input(2).id());
    candidate.outputs.push_back({.value = group.result});
    if (group.is_addend_whole && *work.addend > 1) {
      candidate.outputs[0].requests = TESSERA_REQUEST_WRITE | TESSERA_REQUEST_IN_PLACE;
      candidate.outputs[0].in_place_input = static_cast<int32_t>(*work.addend);
    }
    if (product_.has_open_rows()) {
      work.has_open_rows = true;
      candidate.built_for = all_but_rows(candidate, work);
    }
    candidate.workspace_bytes = ProductKernel::workspace_for(work);
    const auto bytes = static_cast<double>(node_.input(0).type().dense_bytes() +
                                           node_.input(1).type().dense_bytes() +
                                           node_.output(0).type().dense_bytes());
    candidate.optimistic_seconds = context_.optimistic_seconds(product_.flops(), bytes);
    candidate.build = [work](const plugin::BuildOptions&) {
      return std::make_unique<ProductKernel>(work);
    };
    context_.add(std::move(candidate));
  }

  // Every dimension but those before the last of the left matrix, and of an addend as large as the
  // results.
  std::vector<tessera_built_for> all_but_rows(const Candidate& candidate, const Work& work) const {
    std::vector<tessera_built_for> built_for;
    for (size_t port = 0; port < candidate.inputs.size(); ++port) {
      const bool has_rows = port == 0 || (work.is_addend_whole && port == *work.addend);
      const auto rank = static_cast<int32_t>(
          context_.graph().value(candidate.inputs[port].value).type().dims.size());
      for (int32_t axis = has_rows ? std::max(rank - 1, 0) : 0; axis < rank; ++axis) {
        built_for.push_back({static_cast<int32_t>(port), axis});
      }
    }
    return built_for;
  }

  static size_t port_of(Candidate& candidate, int32_t value) {
    for (size_t index = 0; index < candidate.inputs.size(); ++index) {
      if (candidate.inputs[index].value == value) return index;
    }
    candidate.inputs.push_back({.value = value});
    return candidate.inputs.size() - 1;
  }

  plugin::Pack pack_of() const {
    const int64_t panel = find_product_loops().panel;
    const bool is_turned = product_.right_depth == 1 && product_.right_column != 1;
    plugin::Pack pack_in_panels;
    pack_in_panels.id = "panels" + std::to_string(panel) + (is_turned ? "_turned" : "") + "_" +
                        std::to_string(product_.depth);
    pack_in_panels.bytes = packed_floats(product_, panel) * static_cast<int64_t>(sizeof(float));
    pack_in_panels.pack = [product = product_, panel](RunContext& context, const Buffer& from,
                                                      void* to) {
      pack(context, product, panel, from.as<const float>(), static_cast<float*>(to));
    };
    return pack_in_panels;
  }

  ProposeContext& context_;
  Node node_;
  Product product_;
};

void offer_plain(ProposeContext& context, const Node& node) {
  const PlainProduct multiply = find_plain_product(node.output(0).type().data_type);
  if (multiply == nullptr) refuse("has no matmul for this element type");
  const Product product = product_of(node);
  const bool is_scaled = product.alpha != 1 || (product.addend >= 0 && product.beta != 1);
  if (is_scaled && node.output(0).type().data_type != TESSERA_FLOAT64) {
    refuse("does not scale the result of an integer matmul");
  }
  Candidate candidate = plugin::candidate_for(node);
  candidate.algorithm = "plain";
  const auto place = [&](int32_t value) {
    size_t port = 0;
    while (candidate.inputs[port].value != value) ++port;
    return port;
  };
  const size_t right = place(node.input(1).id());
  const std::optional<size_t> addend =
      product.addend < 0 ? std::nullopt : std::optional(place(product.addend));
  const auto bytes = static_cast<double>(node.output(0).type().dense_bytes());
  candidate.optimistic_seconds = context.optimistic_seconds(product.flops(), bytes);
  candidate.build = [=](const plugin::BuildOptions&) {
    return plugin::make_kernel(
        [=](RunContext& run, std::span<const Buffer> inputs, std::span<const Buffer> outputs) {
          multiply(run, product, inputs[0].data, inputs[right].data,
                   addend ? inputs[*addend].data : nullptr, outputs[0].data);
        });
  };
  context.add(std::move(candidate));
}

void offer_product(ProposeContext& context, const Node& node) {
  for (const size_t index : {size_t{0}, size_t{1}}) {
    if (!node.input(index).type().is_known()) refuse("takes tensors of known shape only");
  }
  if (node.output(0).type().elements() == 0) refuse("the matmul has no elements");
  if (node.input(2).is_present() && !node.input(2).type().is_known()) {
    refuse("takes tensors of known shape only");
  }
  if (node.output(0).type().data_type != TESSERA_FLOAT32) return offer_plain(context, node);
  for (size_t index = 0; index < node.input_count(); ++index) {
    if (node.input(index).is_present()) check_usable(node.input(index));
  }
  ProductOffer(context, node).offer();
}

}  // namespace

void propose_products(ProposeContext& context) {
  context.for_each({"MatMul", "Gemm"}, [&](const Node& node) { offer_product(context, node); });
}

}  // namespace tessera::native
