// Mathematical functions as expressions, so that all printers compute the same bits. They need no
// tables and no branches.
//
// `x` is float32 or float64, and so is the result. Special values are those of C's functions of the
// same name. The largest error of each function, in units in the last place (ulp) of the correctly
// rounded result, denormal arguments and results included; "all" means all float32 values.
//
//   float32: exp 0.00
#pragma once

#include "codegen/expression_builder.h"

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
// x to the power of y; both of one type.
InstructionId pow(ExpressionBuilder& builder, InstructionId x, InstructionId y);

}  // namespace tessera::codegen
