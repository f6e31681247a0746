#include "place/view_copies.h"

#include <algorithm>
#include <map>

#include "base/containers/at.h"

namespace tessera {
namespace {

// The default alignment of the plug-in contract.
constexpr int64_t kAlignmentBytes = 64;

}  // namespace

ViewCopies::ViewCopies(const PlacementProblem& problem)
    : problem_(problem),
      memory_(at(problem.value_count)),
      owner_bytes_(at(problem.value_count), 0),
      readers_(at(problem.value_count)),
      candidates_(problem.nodes.size()) {
  for (int value = 0; value < problem.value_count; ++value) memory_[at(value)].owner = value;
  for (size_t node = 0; node < problem.nodes.size(); ++node) {
    for (const int value : problem.nodes[node].inputs) {
      readers_[at(value)].push_back(static_cast<int>(node));
    }
  }
  for (size_t index = 0; index < problem.candidates.size(); ++index) {
    if (!problem.is_forbidden.empty() && problem.is_forbidden[index]) continue;
    for (const int node : problem.candidates[index].nodes) {
      candidates_[at(node)].push_back(static_cast<int>(index));
    }
  }
}

bool ViewCopies::is_fit(const Memory& memory, const PlacementPort& port) const {
  // Conversions need dense and aligned inputs.
  if (memory.layout != port.layout) {
    return !memory.has_strides && memory.offset_bytes % kAlignmentBytes == 0;
  }
  return memory.offset_bytes % port.alignment_bytes == 0 &&
         (port.accepts_strides || !memory.has_strides);
}

// Whether any node reads `value` but has no candidate that can read it at `memory` without a copy.
bool ViewCopies::forces_copy_for_some_reader(int value, const Memory& memory) const {
  const auto can_read = [&](int index) {
    const PlacementCandidate& candidate = problem_.candidates[at(index)];
    if (candidate.sharing != PlacementCandidate::Sharing::None) return true;
    return std::all_of(
        candidate.inputs.begin(), candidate.inputs.end(), [&](const PlacementPort& port) {
          return port.value != value || (port.layout == memory.layout && is_fit(memory, port));
        });
  };
  const std::vector<int>& readers = readers_[at(value)];
  return std::any_of(readers.begin(), readers.end(), [&](int node) {
    return std::none_of(candidates_[at(node)].begin(), candidates_[at(node)].end(), can_read);
  });
}

ViewCopies::Memory ViewCopies::part_of(const PlacementCandidate& view,
                                       const PlacementPort& part) const {
  const PlacementPort& input = view.inputs[0];
  Memory memory = memory_[at(input.value)];
  // A copied or converted input has its own memory.
  if (memory.has_strides || memory.layout != input.layout) memory = {.owner = input.value};
  memory.offset_bytes += part.offset_bytes;
  memory.bytes = part.bytes;
  memory.layout = part.layout;
  memory.has_strides = part.has_strides;
  return memory;
}

// By input: whether it can be written directly into the joint value. This is possible if the inputs
// with the same owner fill the owner's memory, in the same arrangement as in the joint value.
std::vector<bool> ViewCopies::inputs_written_in_place(const PlacementCandidate& joint) const {
  struct Share {
    int64_t bytes = 0;
    int64_t shift = 0;
    bool is_fine = true;
  };
  std::map<int, Share> shares;
  for (const PlacementPort& port : joint.inputs) {
    const Memory& memory = memory_[at(port.value)];
    const auto [entry, is_new] = shares.try_emplace(memory.owner);
    Share& share = entry->second;
    if (is_new) share.shift = port.offset_bytes - memory.offset_bytes;
    share.bytes += memory.bytes;
    share.is_fine = share.is_fine && memory.is_produced_by_plan && !memory.has_strides &&
                    !port.has_strides && share.shift == port.offset_bytes - memory.offset_bytes &&
                    share.shift % kAlignmentBytes == 0 && share.shift >= 0;
  }
  std::vector<bool> is_placed;
  for (const PlacementPort& port : joint.inputs) {
    const Memory& memory = memory_[at(port.value)];
    const Share& share = shares.at(memory.owner);
    // A conversion can write directly into the joint value.
    const bool is_converted = memory.layout != port.layout && !port.has_strides &&
                              port.offset_bytes % kAlignmentBytes == 0 &&
                              !problem_.is_constant[at(port.value)];
    is_placed.push_back(is_converted ||
                        (share.is_fine && share.bytes == owner_bytes_[at(memory.owner)]));
  }
  return is_placed;
}

double ViewCopies::seconds(const PlacementCandidate& candidate) const {
  using Sharing = PlacementCandidate::Sharing;
  const std::vector<double>& prices =
      problem_.copy_seconds.empty() ? problem_.conversion_seconds : problem_.copy_seconds;
  double total = 0;
  const auto add_if = [&](bool is_copied, int value) {
    if (is_copied) total += prices[at(value)];
  };
  switch (candidate.sharing) {
    case Sharing::None:
      for (const PlacementPort& port : candidate.inputs) {
        const bool is_constant = problem_.is_constant[at(port.value)];
        add_if(!is_constant && !is_fit(memory_[at(port.value)], port), port.value);
      }
      break;
    case Sharing::View:
      add_if(memory_[at(candidate.inputs[0].value)].has_strides, candidate.inputs[0].value);
      for (const PlacementPort& port : candidate.outputs) {
        add_if(forces_copy_for_some_reader(port.value, part_of(candidate, port)), port.value);
      }
      break;
    case Sharing::Joint: {
      const std::vector<bool> is_placed = inputs_written_in_place(candidate);
      for (size_t index = 0; index < is_placed.size(); ++index) {
        add_if(!is_placed[index], candidate.inputs[index].value);
      }
    }
  }
  return total;
}

void ViewCopies::take(const PlacementCandidate& candidate) {
  using Sharing = PlacementCandidate::Sharing;
  if (candidate.sharing == Sharing::View) {
    for (const PlacementPort& port : candidate.outputs) {
      memory_[at(port.value)] = part_of(candidate, port);
    }
    return;
  }
  // After the first copy, all later readers share it.
  for (const PlacementPort& port : candidate.inputs) {
    Memory& memory = memory_[at(port.value)];
    if (candidate.sharing == Sharing::None && !is_fit(memory, port)) {
      memory = {.owner = port.value, .layout = port.layout};
    }
  }
  for (const PlacementPort& port : candidate.outputs) {
    memory_[at(port.value)] = {.owner = port.value,
                               .offset_bytes = 0,
                               .bytes = port.bytes,
                               .layout = port.layout,
                               .has_strides = false,
                               .is_produced_by_plan = true};
    owner_bytes_[at(port.value)] = port.bytes;
  }
  if (candidate.sharing != Sharing::Joint) return;
  const int whole = candidate.outputs[0].value;
  const std::vector<bool> is_placed = inputs_written_in_place(candidate);
  for (size_t index = 0; index < is_placed.size(); ++index) {
    if (!is_placed[index]) continue;
    Memory& memory = memory_[at(candidate.inputs[index].value)];
    const bool is_whole = memory.layout == candidate.inputs[index].layout;
    if (!is_whole) continue;
    memory.owner = whole;
    memory.offset_bytes = candidate.inputs[index].offset_bytes;
  }
}

}  // namespace tessera
