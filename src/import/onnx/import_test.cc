#include "import/onnx/import.h"
#include <gtest/gtest.h>
