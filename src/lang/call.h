// SPDX-License-Identifier: Apache-2.0
// Calls of PTX functions: declarations, and arguments through .param variables as nvcc passes them.
#pragma once

#include "lang/tracer.h"

#include <string>
#include <vector>

namespace tilewright::lang {

/// What a caller knows of a function. Every type has 16, 32 or 64 bits.
struct Callee {
  std::string name;
  std::vector<Type> results;
  std::vector<Type> parameters;
};

/// Where C puts the members of a structure.
std::vector<std::int64_t> structure_offsets(const std::vector<Type>& members);
/// The head of the function in PTX, without a body. One result is a number, several a structure.
ptx::Function declaration_of(const Callee& callee, ptx::Linkage linkage);
/// Declares it `.extern` unless the module knows it.
void declare_extern(Tracer& tracer, const Callee& callee);
/// Pre: the module knows it; one argument a parameter.
std::vector<Value> call(Tracer& tracer, const Callee& callee,
                        const std::vector<ptx::Operand>& arguments, SourceLoc at);

/// The generic address of a zero-terminated text in global memory; equal texts are kept once.
ptx::Operand text_address(Tracer& tracer, std::string_view text, SourceLoc at);

}  // namespace tilewright::lang
