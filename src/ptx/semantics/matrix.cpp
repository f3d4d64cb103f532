// SPDX-License-Identifier: Apache-2.0
// Calls the matrix functions of the best instruction-set level.
#include "ptx/semantics/matrix.h"

#include "ptx/semantics/semantics.h"
#include "ptx/semantics/vector/matrix_tables.h"

namespace tilewright::ptx::semantics {
namespace {

#ifdef TW_ONE_LEVEL
MatrixTables choose_tables() { return TW_ONE_LEVEL::matrix_tables(); }
#else
MatrixTables choose_tables() {
  switch (best_isa()) {
    case Isa::generic:
      return v2::matrix_tables();
    case Isa::x86_64_v3:
      return v3::matrix_tables();
    case Isa::x86_64_v4:
      return v4::matrix_tables();
  }
  return {};
}
#endif

const MatrixTables& tables() {
  static const MatrixTables chosen = choose_tables();
  return chosen;
}

}  // namespace

void multiply_add(const MatrixExtent& extent, const float* a, const float* b, const float* c,
                  float* d) {
  tables().floats(extent, a, b, c, d);
}
void multiply_add(const MatrixExtent& extent, const double* a, const double* b, const double* c,
                  double* d) {
  tables().doubles(extent, a, b, c, d);
}
void multiply_add(const MatrixExtent& extent, const std::int32_t* a, const std::int32_t* b,
                  const std::int32_t* c, std::int32_t* d, IntegerOverflow overflow) {
  (overflow == IntegerOverflow::saturate ? tables().saturating : tables().wrapping)(extent, a, b, c,
                                                                                    d);
}

}  // namespace tilewright::ptx::semantics
