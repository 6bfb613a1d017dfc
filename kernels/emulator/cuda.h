// CUDA C++ for the CPU: included before each kernel file when it is compiled for the emulated device.
//
// Only what kernels use. A name that is missing here fails to compile, which is the point: add it with its exact meaning.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "check/check.h"
#include "language/qualifiers.h"
#include "language/arithmetic.h"
#include "language/threads.h"
#include "language/atomics.h"
#include "language/tensor.h"
#include "language/warpgroup.h"
#include "language/registry.h"
