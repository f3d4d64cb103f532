// SPDX-License-Identifier: Apache-2.0
// The functions that matrix.cpp offers at each instruction-set level.
#pragma once

#include "ptx/semantics/matrix.h"

namespace tilewright::ptx::semantics {

struct MatrixTables {
  void (*floats)(const MatrixExtent&, const float*, const float*, const float*, float*);
  void (*doubles)(const MatrixExtent&, const double*, const double*, const double*, double*);
  void (*wrapping)(const MatrixExtent&, const std::int32_t*, const std::int32_t*,
                   const std::int32_t*, std::int32_t*);
  void (*saturating)(const MatrixExtent&, const std::int32_t*, const std::int32_t*,
                     const std::int32_t*, std::int32_t*);
};

#define TW_DECLARE_MATRIX(LEVEL) \
  namespace LEVEL {              \
  MatrixTables matrix_tables();  \
  }
#ifdef TW_ONE_LEVEL
TW_DECLARE_MATRIX(TW_ONE_LEVEL)
#elif defined(__x86_64__)
TW_DECLARE_MATRIX(v2)
TW_DECLARE_MATRIX(v3)
TW_DECLARE_MATRIX(v4)
#else
TW_DECLARE_MATRIX(generic)
#endif
#undef TW_DECLARE_MATRIX

}  // namespace tilewright::ptx::semantics
