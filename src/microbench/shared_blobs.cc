#include "microbench/shared_blobs.h"

#include <utility>

#include "base/files/byte_archive.h"
#include "tessera/error.h"

namespace tessera::tuning {
namespace {

// A worker that wants to keep more is broken.
constexpr int64_t kMaxKeptBytes = int64_t{1} << 30;
constexpr size_t kMaxClaims = 256;

template <class Content>
Message pack(BenchMessage kind, const Content& content) {
  ByteWriter writer;
  writer(content);
  return {.kind = static_cast<uint32_t>(kind), .payload = writer.take_bytes()};
}

template <class Content>
Content unpack(const Message& message) {
  Content content{};
  ByteReader reader(message.payload);
  reader(content);
  reader.expect_end();
  return content;
}

}  // namespace

// --- The worker's side ---------------------------------------------------------------------------

void ParentBlobs::begin_request() {
  const std::lock_guard lock(mutex_);
  is_asked_ = true;
}

Delivery ParentBlobs::send_answer(const Message& answer) {
  const std::lock_guard lock(mutex_);
  is_asked_ = false;
  return channel_.send(answer, Deadline::max());
}

// The parent answers at once, or has gone.
template <class Answer, class Question>
std::optional<Answer> ParentBlobs::ask(BenchMessage kind, const Question& question) {
  const Message message = pack(kind, question);
  if (static_cast<int64_t>(message.payload.size()) > kMaxAnswerBytes) return std::nullopt;
  const std::lock_guard lock(mutex_);
  if (!is_asked_) return std::nullopt;
  Message answer;
  const bool is_answered = channel_.send(message, Deadline::max()) == Delivery::Done &&
                           channel_.receive(answer, Deadline::max()) == Delivery::Done &&
                           answer.kind == message.kind;
  is_asked_ = is_answered;
  if (!is_answered) return std::nullopt;
  return unpack<Answer>(answer);
}

BlobKeeper ParentBlobs::keeper() {
  return {
      .find = [this](const std::string& key) -> std::optional<std::string> {
        return ask<std::optional<std::string>>(BenchMessage::FindBlob, key).value_or(std::nullopt);
      },
      .keep =
          [this](const std::string& key, const std::string& bytes) {
            return ask<bool>(BenchMessage::KeepBlob, BlobBytes{key, bytes}).value_or(false);
          },
      .try_claim = [this](const std::string& key) -> BlobClaim {
        const auto of_nothing = std::make_shared<const char>();
        const auto found = ask<ClaimAnswer>(BenchMessage::ClaimBlob, key);
        if (!found || *found == ClaimAnswer::Impossible) return of_nothing;
        if (*found == ClaimAnswer::Busy) return nullptr;
        return {static_cast<const void*>(this),
                [this, key](const void*) { ask<bool>(BenchMessage::ReleaseBlob, key); }};
      }};
}

// --- The parent's side ---------------------------------------------------------------------------

bool WorkerBlobs::is_question(const Message& message) {
  const auto kind = static_cast<BenchMessage>(message.kind);
  return kind >= BenchMessage::FindBlob && kind <= BenchMessage::ReleaseBlob;
}

Message WorkerBlobs::answer(const Message& question) {
  const auto kind = static_cast<BenchMessage>(question.kind);
  switch (kind) {
    case BenchMessage::FindBlob: {
      const auto key = unpack<std::string>(question);
      return pack(kind, services_ ? services_->get_blob(key) : std::nullopt);
    }
    case BenchMessage::KeepBlob:
      return pack(kind, keep(unpack<BlobBytes>(question)));
    case BenchMessage::ClaimBlob:
      return pack(kind, claim(unpack<std::string>(question)));
    default:
      return pack(kind, claims_.erase(unpack<std::string>(question)) > 0);
  }
}

bool WorkerBlobs::keep(const BlobBytes& blob) {
  kept_bytes_ += static_cast<int64_t>(blob.key.size() + blob.bytes.size());
  if (services_ == nullptr || kept_bytes_ > kMaxKeptBytes) return false;
  services_->put_blob(blob.key, blob.bytes);
  return true;
}

ClaimAnswer WorkerBlobs::claim(const std::string& key) {
  if (services_ == nullptr || claims_.size() >= kMaxClaims) return ClaimAnswer::Impossible;
  BlobClaim claim = services_->try_claim(key);
  if (claim == nullptr) return ClaimAnswer::Busy;
  claims_[key] = std::move(claim);
  return ClaimAnswer::Held;
}

}  // namespace tessera::tuning
