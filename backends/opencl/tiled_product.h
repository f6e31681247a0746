// Matrix products by a kernel of this plug-in for processors, whose programs build in a fraction of
// the time of CLBlast's. CLBlast's kernels are tuned for GPUs.
#pragma once

#include "offers.h"
#include "work.h"

namespace tessera::opencl {

// Whether this kernel can compute the product on the device of `offers`, and is likely to be fast.
bool is_tiled_product(const Offers& offers, const Product& product);

// Computes a product for which is_tiled_product() is true.
Launch tiled_product(const Product& product);

}  // namespace tessera::opencl
