// The blobs of plug-ins (tessera_host::get_blob) in the process that measures: they are those of
// its parent. So a kernel that one of the two has compiled is not compiled again in the other one,
// and the worker needs neither the user's folder nor its key.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "backend/host.h"
#include "base/process/message_channel.h"
#include "microbench/bench_messages.h"

namespace tessera::tuning {

// The worker's side: asks the parent, which waits for an answer to a request of its own. Between
// two requests there is nobody to ask: then nothing is found or kept. Thread-safe.
class ParentBlobs {
 public:
  // `channel` must outlive this and everything that uses its functions.
  explicit ParentBlobs(MessageChannel& channel) : channel_(channel) {}

  BlobKeeper keeper();

  // Call after a request was received, from the thread that answers it.
  void begin_request();
  // Sends the answer, after which nobody can ask.
  Delivery send_answer(const Message& answer);

 private:
  // nullopt if there is no answer.
  template <class Answer, class Question>
  std::optional<Answer> ask(BenchMessage kind, const Question& question);

  MessageChannel& channel_;
  std::mutex mutex_;  // held from a question to its answer
  bool is_asked_ = false;
};

// The parent's side: answers the questions of one worker.
class WorkerBlobs {
 public:
  // Without `services` there are no blobs.
  explicit WorkerBlobs(std::shared_ptr<HostServices> services) : services_(std::move(services)) {}

  static bool is_question(const Message& message);
  // Throws Corrupt if the message is damaged.
  Message answer(const Message& question);
  // Call when the worker has answered a request, and when it is lost: it claims nothing then.
  void end_claims() { claims_.clear(); }

 private:
  bool keep(const BlobBytes& blob);
  ClaimAnswer claim(const std::string& key);

  std::shared_ptr<HostServices> services_;
  std::map<std::string, BlobClaim> claims_;
  int64_t kept_bytes_ = 0;
};

}  // namespace tessera::tuning
