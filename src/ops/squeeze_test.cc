#include "ops/op_test.h"
