// Conv and ConvTranspose, with post-operations: unary functions, arithmetic with further operands,
// and residual sums.
#include "convolution.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/accuracy.h"
#include "base/chain.h"
#include "base/families.h"
#include "base/formats.h"
#include "base/primitive.h"

namespace tessera::onednn {

using dnnl::memory;
using plugin::Failure;
using plugin::Node;
using plugin::Value;

namespace {

// Fusing more steps saves nothing.
constexpr size_t kMaxFusedSteps = 4;

// Formats in which the library reads and writes a convolution; none: the library chooses.
struct PortFormats {
  std::optional<Format> input;
  std::optional<Format> output;
};

// The last ones are for few channels, for which blocks are not worth it.
constexpr PortFormats kPortFormats[] = {
    {std::nullopt, std::nullopt},         {Format::Nhwc, Format::Nhwc},
    {Format::Nchw16c, Format::Nchw16c},   {Format::Nchw8c, Format::Nchw8c},
    {Format::RowMajor, Format::Nchw16c},  {Format::RowMajor, Format::Nchw8c},
    {Format::RowMajor, Format::RowMajor},
};
constexpr int64_t kFewChannels = 16;

// The description for a form, with all formats decided.
struct Solution {
  PortFormats form;
  Format input = Format::RowMajor;
  Format output = Format::RowMajor;
  ConvolutionDescription description;
};

// A convolution and the steps that are fused with it.
struct Group {
  std::vector<int32_t> nodes;
  std::vector<ChainStep> steps;
  int32_t result = -1;
  int32_t read = -1;  // the input of the convolution
};

// Proposes the convolutions of one graph.
class Proposer {
 public:
  explicit Proposer(Context& context) : context_(context), chains_(context.chains()) {}

  void propose(const Node& node) {
    std::vector<Group> groups = groups_of(node);
    std::erase_if(groups, [&](const Group& group) { return !context_.is_wanted(group.nodes); });
    if (groups.empty()) return;
    const ConvolutionProblem problem = convolution_problem(node);
    std::erase_if(groups, [&](const Group& group) { return offer_wanted(node, problem, group); });
    if (groups.empty()) return;
    const std::vector<Solution>& solutions = solve(problem);
    if (solutions.empty()) throw Failure(TESSERA_UNSUPPORTED, "oneDNN has no such convolution");
    for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
      for (const Solution& solution : solutions) offer(node, problem, *group, solution);
    }
  }

 private:
  // Offers all groups that begin with `node`, the smallest first.
  std::vector<Group> groups_of(const Node& node) const {
    std::vector<Group> groups = {{{node.id()}, {}, node.output(0).id(), node.input(0).id()}};
    for (const ChainStep& step : chains_.after(node.output(0))) {
      if (groups.size() > kMaxFusedSteps) break;
      Group larger = groups.back();
      larger.nodes.insert(larger.nodes.end(), step.nodes.begin(), step.nodes.end());
      larger.steps.push_back(step);
      larger.result = step.result;
      groups.push_back(std::move(larger));
    }
    for (Group& group : groups) std::sort(group.nodes.begin(), group.nodes.end());
    return groups;
  }

  // If a plan is known, the layouts of its candidate usually determine it, and no others need be
  // described. False if they do not, so that all forms have to be tried.
  bool offer_wanted(const Node& node, const ConvolutionProblem& problem, const Group& group) {
    const std::span<const plugin::Wanted* const> wanted = context_.wanted_for(group.nodes);
    return !wanted.empty() && std::ranges::all_of(wanted, [&](const plugin::Wanted* one) {
      const std::optional<PortFormats> form = form_of(one->ports);
      if (!form) return false;
      const std::optional<PostOperations> operations = operations_of(group, problem, *form->output);
      if (!operations) return false;
      const ConvolutionDescription& description = described(problem, *form, *operations);
      if (!description.is_there()) return false;
      if (context_.is_useless(description.base().impl_info_str(),
                              operations->needs_compiled_code()))
        return false;
      plugin::Candidate candidate = candidate_of(node, problem, group, description, *operations);
      if (candidate.algorithm != one->algorithm || ports_text(candidate) != one->ports)
        return false;
      context_.add(std::move(candidate));
      return true;
    });
  }

  // The layouts of the input of the convolution and of its result, which are the first and last
  // port of a candidate.
  static std::optional<PortFormats> form_of(std::string_view ports) {
    const PortFormats form = {format_named(ports.substr(0, ports.find(' '))),
                              format_named(ports.substr(ports.rfind(' ') + 1))};
    return form.input && form.output ? std::optional(form) : std::nullopt;
  }

  // The solutions of the library for `problem` alone: one for each pair of layouts, the preferred
  // one first. Reference implementations count only if there is no other.
  const std::vector<Solution>& solve(const ConvolutionProblem& problem) {
    const auto [found, is_new] = solved_.try_emplace(problem.key());
    if (is_new) found->second = solve_anew(problem);
    return found->second;
  }

  std::vector<Solution> solve_anew(const ConvolutionProblem& problem) const {
    std::vector<Solution> solutions;
    std::vector<Solution> references;
    for (const PortFormats& form : kPortFormats) {
      if (!is_worth_trying(problem, form, solutions)) continue;
      const ConvolutionDescription description =
          describe_convolution(context_, problem, form.input, form.output, {});
      if (!description.is_there()) continue;
      const auto input = format_of(description.input_desc());
      const auto output = format_of(description.output_desc());
      if (!input || !output || has_equal(solutions, description)) continue;
      auto& position = description.is_reference() ? references : solutions;
      position.push_back({form, *input, *output, description});
    }
    if (solutions.empty() && !references.empty()) solutions.push_back(references.back());
    return solutions;
  }

  static bool is_worth_trying(const ConvolutionProblem& problem, const PortFormats& form,
                              const std::vector<Solution>& found) {
    if (form.input == form.output) {
      // Blocks of 8 are for processors that do not support those of 16.
      return form.input != Format::Nchw8c || !has_format(found, Format::Nchw16c);
    }
    if (problem.is_transposed || problem.groups != 1) return false;
    if (problem.input[1] >= kFewChannels) return false;
    return form.output != Format::Nchw8c || !has_format(found, Format::Nchw16c);
  }

  static bool has_format(const std::vector<Solution>& solutions, Format output) {
    return std::any_of(solutions.begin(), solutions.end(),
                       [&](const Solution& found) { return found.output == output; });
  }

  // Whether a solution has the implementation and the layouts of `description`. Layouts with the
  // same bytes for these sizes are equal.
  static bool has_equal(const std::vector<Solution>& solutions,
                        const ConvolutionDescription& description) {
    const auto traits = [](const ConvolutionDescription& of) {
      return std::tuple(std::string_view(of.base().impl_info_str()),
                        std::string_view(layout_of(of.input_desc())),
                        std::string_view(layout_of(of.output_desc())));
    };
    return std::any_of(solutions.begin(), solutions.end(), [&](const Solution& found) {
      return traits(found.description) == traits(description);
    });
  }

  void offer(const Node& node, const ConvolutionProblem& problem, const Group& group,
             const Solution& solution) {
    const std::optional<PostOperations> operations = operations_of(group, problem, solution.output);
    if (!operations) return;
    ConvolutionDescription description = solution.description;
    if (!group.steps.empty()) {
      description = described(problem, solution.form, *operations);
      if (!is_like(solution, description)) return;
      if (context_.is_useless(description.base().impl_info_str(),
                              operations->needs_compiled_code()))
        return;
    }
    context_.add(candidate_of(node, problem, group, description, *operations));
  }

  // The post-operations of the convolution, whose result is in the layout `output`; nullopt if the
  // library cannot compute them.
  std::optional<PostOperations> operations_of(const Group& group, const ConvolutionProblem& problem,
                                              Format output) const {
    PostOperations operations(context_.graph());
    const ResultView view = {problem.output, plain_view(problem.output.size()), output};
    bool may_sum = !is_rough_convolution_sum();
    for (const ChainStep& step : group.steps) {
      if (may_sum && append_sum(group, step, view, operations)) {
        may_sum = false;
      } else if (!operations.append(step, view)) {
        return std::nullopt;
      }
    }
    return operations;
  }

  plugin::Candidate candidate_of(const Node& node, const ConvolutionProblem& problem,
                                 const Group& group, const ConvolutionDescription& description,
                                 const PostOperations& operations) const {
    PrimitiveOffer offer(group.nodes, description.base());
    offer.read(DNNL_ARG_SRC, node.input(0), description.input_desc());
    offer.read_packed(DNNL_ARG_WEIGHTS, node.input(1), problem.stored_weights,
                      description.weights_desc());
    if (problem.has_bias) {
      offer.read_as(DNNL_ARG_BIAS, node.input(2), description.bias_desc(), TESSERA_LAYOUT_DEFAULT);
    }
    offer.write(DNNL_ARG_DST, context_.graph().value(group.result), description.output_desc());
    operations.read_operands(offer);
    return offer.candidate(seconds(problem, description, group));
  }

  // Networks repeat their blocks: equal problems are described once.
  const ConvolutionDescription& described(const ConvolutionProblem& problem,
                                          const PortFormats& form,
                                          const PostOperations& operations) {
    const auto [found, is_new] =
        described_.try_emplace({problem.key(), form.input, form.output, operations.key()});
    if (is_new) {
      found->second =
          describe_convolution(context_, problem, form.input, form.output, operations.operations());
    }
    return found->second;
  }

  // Whether `description`, the same convolution with post-operations, is no slower.
  static bool is_like(const Solution& solution, const ConvolutionDescription& description) {
    if (!description.is_there()) return false;
    if (description.is_reference() && !solution.description.is_reference()) return false;
    return format_of(description.input_desc()) == solution.input &&
           format_of(description.output_desc()) == solution.output;
  }

  // A tensor of the type of the result is added in place: the result overwrites it. A primitive can
  // do this once, and only if neither the convolution nor another step reads that tensor. False if
  // `step` is no such sum.
  bool append_sum(const Group& group, const ChainStep& step, const ResultView& view,
                  PostOperations& operations) const {
    if (step.operations.size() != 1) return false;
    const PostOperation& operation = step.operations.front();
    if (operation.operand < 0 || operation.arithmetic != dnnl::algorithm::binary_add) return false;
    const Value operand = context_.graph().value(operation.operand);
    if (operand.is_constant() || operand.type().dims != view.dims) return false;
    if (operand.id() == group.read || count_reads(group.steps, operand.id()) > 1) return false;
    operations.append_sum(operation.operand);
    return true;
  }

  double seconds(const ConvolutionProblem& problem, const ConvolutionDescription& description,
                 const Group& group) const {
    double bytes = static_cast<double>(description.input_desc().get_size() +
                                       description.weights_desc().get_size() +
                                       description.output_desc().get_size());
    for (const ChainStep& step : group.steps) {
      for (const PostOperation& operation : step.operations) {
        if (operation.operand < 0) continue;
        const plugin::Type type = context_.graph().value(operation.operand).type();
        bytes += static_cast<double>(type.elements()) * sizeof(float);
      }
    }
    const double factor = description.slowness(problem);
    return context_.optimistic_seconds(problem.flops() * factor, bytes, "");
  }

  Context& context_;
  const Chains& chains_;
  std::map<std::string, std::vector<Solution>> solved_;
  std::map<std::tuple<std::string, std::optional<Format>, std::optional<Format>, std::string>,
           ConvolutionDescription>
      described_;
};

}  // namespace

void propose_convolutions(Context& context) {
  Proposer proposer(context);
  context.for_each({"Conv", "ConvTranspose"}, [&](const Node& node) { proposer.propose(node); });
}

}  // namespace tessera::onednn
