#include "products.h"

#include <algorithm>
#include <utility>

#include "clblast.h"

namespace tessera::opencl {

namespace {

constexpr const char* kVector = "vector";
constexpr const char* kTiles = "tiles";
constexpr const char* kClblast = "clblast";

// CLBlast adds up all products one after the other in float32, which loses digits in long sums.
constexpr int64_t kMaxClblastDepth = 4096;

// In parts of the depth, each of which is added to C.
void multiply_by_clblast(Offer& offer, const Product& product) {
  int64_t first = 0;
  do {
    Product part = product;
    part.k = std::min(kMaxClblastDepth, product.k - first);
    part.a = product.a.plus(first * (product.is_a_transposed ? product.lda : 1) * kFloatBytes);
    part.b = product.b.plus(first * (product.is_b_transposed ? 1 : product.ldb) * kFloatBytes);
    if (first > 0) part.beta = 1;
    offer.multiply(std::move(part));
    first += kMaxClblastDepth;
  } while (first < product.k);
}

}  // namespace

std::vector<std::string> product_algorithms(const Offers& offers, const Product& product) {
  if (is_vector_product(product)) return {kVector};
  std::vector<std::string> algorithms;
  if (is_tiled_product(offers, product)) algorithms.emplace_back(kTiles);
  const std::string missing = explain_no_clblast();
  if (missing.empty()) algorithms.emplace_back(kClblast);
  if (algorithms.empty()) throw plugin::Failure(TESSERA_UNSUPPORTED, missing);
  return algorithms;
}

int64_t workspace_bytes(const std::string& algorithm, const Product& product) {
  return algorithm == kClblast ? product_workspace(product) : 0;
}

void multiply(const Offers& offers, Offer& offer, const std::string& algorithm, Product product) {
  if (algorithm == kVector) {
    offer.launch(vector_product(offers, product));
  } else if (algorithm == kTiles) {
    offer.launch(tiled_product(product));
  } else {
    multiply_by_clblast(offer, product);
  }
}

std::optional<BatchEntry> batch_step(const std::vector<BatchEntry>& batch) {
  if (batch.size() < 2) return BatchEntry{};
  const BatchEntry step = {batch[1].a - batch[0].a, batch[1].b - batch[0].b,
                           batch[1].c - batch[0].c};
  for (size_t index = 1; index < batch.size(); ++index) {
    if (batch[index].a - batch[index - 1].a != step.a ||
        batch[index].b - batch[index - 1].b != step.b ||
        batch[index].c - batch[index - 1].c != step.c) {
      return std::nullopt;
    }
  }
  if (step.a < 0 || step.b < 0 || step.c < 0) return std::nullopt;
  return step;
}

}  // namespace tessera::opencl
