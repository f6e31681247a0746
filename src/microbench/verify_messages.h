// The messages between verify_in_worker.h, which supervises, and worker_main.cc, which verifies a
// plug-in in another process. After one request, all messages come from the worker: a Step before
// each call of the plug-in, with the results since the previous one, and Done at the end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "verify/verify_backend.h"

namespace tessera::tuning {

enum class VerifyMessage : uint32_t {
  Start = 101,  // VerifyRequest
  Step = 102,   // VerifyNews
  Done = 103,   // VerifyNews without a step
};

// The argument that makes tessera-worker verify a plug-in.
inline constexpr const char* kVerifyArgument = "verify";

struct VerifyRequest {
  std::string identity;  // build_identity()
  std::string library;
  uint64_t seed = 1;
  int32_t cases = 1;
  int32_t first_unit = 0;
  std::vector<std::string> passed_over;
  int64_t memory_bytes = 0;  // limit of the worker's writable memory
};

struct VerifyNews {
  std::string identity;
  std::string name;  // of the backend; "" until it is open
  std::string version;
  verification::Report found;  // since the previous message
  verification::VerifyStep step;
};

template <class Archive>
void transfer(Archive& archive, VerifyRequest& request) {
  auto& [identity, library, seed, cases, first_unit, passed_over, memory_bytes] = request;
  archive(identity, library, seed, cases, first_unit, passed_over, memory_bytes);
}

template <class Archive>
void transfer(Archive& archive, VerifyNews& news) {
  auto& [identity, name, version, found, step] = news;
  auto& [check, subject, case_number, case_count, detail, unit] = step;
  archive(identity, name, version, found);
  archive(check, subject, case_number, case_count, detail, unit);
}

}  // namespace tessera::tuning
