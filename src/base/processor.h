// What this machine's processor is and how fast it could be.
#pragma once

#include <string>

namespace tessera {

// "Intel(R) Xeon(R) Processor, avx512"; what the system tells, and the instruction set that counts.
std::string processor_name();
// "Intel(R) Xeon(R) Processor" and "avx512", its two parts.
std::string processor_model();
std::string instruction_set_name();

// What one thread can do at most. A multiply-add is 2 FLOPs.
struct ProcessorSpeed {
  double flops_per_second = 0;  // float32
  double bytes_per_second = 0;  // read from the caches
};

// From a table by instruction set: more than any processor of today reaches.
ProcessorSpeed assumed_speed();

// Measured on the calling thread, in about a tenth of a second.
ProcessorSpeed measure_speed();

}  // namespace tessera
