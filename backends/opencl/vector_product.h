// Products of a matrix and a vector. CLBlast's matrix product would first copy the matrix.
#pragma once

#include "offers.h"
#include "work.h"

namespace tessera::opencl {

// Whether one of the matrices is a vector, and the batch has one entry.
bool is_vector_product(const Product& product);

// Computes a product for which is_vector_product() is true.
Launch vector_product(const Offers& offers, const Product& product);

}  // namespace tessera::opencl
