// How plans, costs and plug-ins refer to a candidate.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

// Identifies a candidate among those offered for a graph.
struct CandidateId {
  std::vector<int32_t> nodes;  // by index in the graph, ascending
  std::string backend;
  std::string algorithm;
  std::string ports;  // plugin::ports_text() of its inputs and outputs
  int threads = 1;    // on which it runs
  auto operator<=>(const CandidateId&) const = default;
};

template <class Archive>
void transfer(Archive& archive, CandidateId& id) {
  auto& [nodes, backend, algorithm, ports, threads] = id;
  archive(nodes, backend, algorithm, ports, threads);
}

}  // namespace tessera
