// Mathematical functions as expressions, so that all printers compute the same bits. They need no
// tables and no branches.
//
// `x` is float32 or float64, and so is the result; sin and cos take float32 only, because the
// reduction of large float64 would take too many instructions. Special values (NaN, infinities,
// zeros and their signs) are those of C's functions. Errors are distances from the exact result in
// units in the last place (ulp) of this result, also of denormal ones:
//
//               exp   expm1  log   log1p  tanh  erf   erfc  sin   cos   pow
//   float32     1.04  1.54   0.93  1.46   1.86  1.81  0.78  1.50  1.50  0.8
//   float64     1.1   2.0    1.4   1.9    2.1   1.7   6.5               1.4
//
// The errors of float32 hold for all arguments; they were compared with float64, and pow on samples
// only. The errors of float64 are a little more than the largest error in 20 million samples.
#pragma once

#include "codegen/expression/expression_builder.h"

namespace tessera::codegen {

InstructionId exp(ExpressionBuilder& builder, InstructionId x);
InstructionId expm1(ExpressionBuilder& builder, InstructionId x);  // exp(x) - 1
InstructionId log(ExpressionBuilder& builder, InstructionId x);
InstructionId log1p(ExpressionBuilder& builder, InstructionId x);  // log(1 + x)
InstructionId tanh(ExpressionBuilder& builder, InstructionId x);
InstructionId erf(ExpressionBuilder& builder, InstructionId x);
InstructionId erfc(ExpressionBuilder& builder, InstructionId x);  // 1 - erf(x)
InstructionId sin(ExpressionBuilder& builder, InstructionId x);
InstructionId cos(ExpressionBuilder& builder, InstructionId x);
// x to the power of y; both have one type.
InstructionId pow(ExpressionBuilder& builder, InstructionId x, InstructionId y);

}  // namespace tessera::codegen
