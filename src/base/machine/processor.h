// The model and the attainable speed of this machine's processor.
#pragma once

#include <string>

namespace tessera {

// "Intel(R) Xeon(R) Processor, avx512": the model and the relevant instruction set.
std::string processor_name();
// The two parts of processor_name(): "Intel(R) Xeon(R) Processor" and "avx512".
std::string processor_model();
std::string instruction_set_name();

// The maximum speed of one thread. A multiply-add is 2 FLOPs.
struct ProcessorSpeed {
  double flops_per_second = 0;  // float32
  double bytes_per_second = 0;  // read from the caches
};

// An upper bound from a table by instruction set, higher than any current processor reaches.
ProcessorSpeed assumed_speed();

// Measured on the calling thread, in about a tenth of a second.
ProcessorSpeed measure_speed();

}  // namespace tessera
