// Shared by the unary ops: the schema of an elementwise op with one input, its rule, and the loops
// of its kernel. unary.cc has the arithmetic functions, activation.cc the activation functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ops/op.h"
#include "ops/visit_type.h"

namespace tessera::ops {

// Gives output 0 the type and shape of input 0.
void infer_same_as_input(InferContext& context);

// The schema of y = f(x) for elements of `types`; `input` and `output` are their names in ONNX.
Op unary_op(const std::string& name, const std::string& input, const std::string& output,
            std::vector<int> versions, TypeSet types, ReferenceKernel kernel);

// With the trait kKeepsZero or kNonExpansive.
Op keeping_zero(Op op);
Op non_expansive(Op op);

// Computes in place on doubles: elements of any numeric type are converted block by block, and the
// results rounded once.
using DoubleFunction = void (*)(std::span<double> elements, const Attributes& attributes);
void run_on_doubles(const KernelCall& call, DoubleFunction function);

// The kernel of y = kFunction(x) for floating types.
template <double (*kFunction)(double)>
void run_unary(const KernelCall& call) {
  run_on_doubles(call, [](std::span<double> elements, const Attributes&) {
    for (double& element : elements) element = kFunction(element);
  });
}

// y = function(x) for integers x and y of one type.
template <class Function>
void run_on_integers(const KernelCall& call, const Function& function) {
  visit_integer(call.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* input = call.inputs[0].as<T>().data();
    T* output = call.outputs[0].as<T>().data();
    call.pool.parallel_for(call.outputs[0].elements, kElementGrain,
                           [&](int64_t begin, int64_t end) {
                             for (int64_t index = begin; index < end; ++index) {
                               output[index] = static_cast<T>(function(input[index]));
                             }
                           });
  });
}

}  // namespace tessera::ops
