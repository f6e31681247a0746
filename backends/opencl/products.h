// The ways in which this plug-in computes matrix products.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "offers.h"
#include "work.h"

namespace tessera::opencl {

// The algorithms that can compute the product, the likely fastest first: "vector", "tiles",
// "clblast". Throws Failure (TESSERA_UNSUPPORTED) if it needs CLBlast and that is missing.
std::vector<std::string> product_algorithms(const Offers& offers, const Product& product);

// The scratch memory that the algorithm needs, for Product::workspace.
int64_t workspace_bytes(const std::string& algorithm, const Product& product);

// Adds the step that computes the product by one of these algorithms.
void multiply(const Offers& offers, Offer& offer, const std::string& algorithm, Product product);

// The distance between the entries of a batch, if it is the same for all; 0 for a batch of one
// entry.
std::optional<BatchEntry> batch_step(const std::vector<BatchEntry>& batch);

// Matrix products by a kernel of this plug-in for processors, whose programs build in a fraction of
// the time of CLBlast's (tiled_product.cc). CLBlast's kernels are tuned for GPUs.

// Whether this kernel can compute the product on the device of `offers`, and is likely to be fast.
bool is_tiled_product(const Offers& offers, const Product& product);

// Computes a product for which is_tiled_product() is true.
Launch tiled_product(const Product& product);

// Products of a matrix and a vector (vector_product.cc). CLBlast's matrix product would first copy
// the matrix.

// Whether one of the matrices is a vector, and the batch has one entry.
bool is_vector_product(const Product& product);

// Computes a product for which is_vector_product() is true.
Launch vector_product(const Offers& offers, const Product& product);

}  // namespace tessera::opencl
