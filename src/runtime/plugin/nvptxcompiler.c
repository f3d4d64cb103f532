// SPDX-License-Identifier: Apache-2.0
// Compiles PTX with NVIDIA's static library, behind an interface that needs none of its headers.
#include "runtime/plugin/nvptxcompiler.h"

#include <nvPTXCompiler.h>
#include <stdlib.h>
#include <string.h>

int tilewright_nvptx_version(void) {
  unsigned major = 0;
  unsigned minor = 0;
  if (nvPTXCompilerGetVersion(&major, &minor) != NVPTXCOMPILE_SUCCESS) return 0;
  return (int)(major * 1000 + minor * 10);
}

static char* copy_text(const char* text) {
  char* copy = malloc(strlen(text) + 1);
  if (copy != NULL) strcpy(copy, text);
  return copy;
}

typedef nvPTXCompileResult (*log_size_function)(nvPTXCompilerHandle, size_t*);
typedef nvPTXCompileResult (*log_function)(nvPTXCompilerHandle, char*);

static char* read_log(nvPTXCompilerHandle compiler, log_size_function size, log_function read) {
  size_t bytes = 0;
  if (size(compiler, &bytes) != NVPTXCOMPILE_SUCCESS || bytes == 0) return copy_text("");
  char* text = calloc(bytes + 1, 1);
  if (text != NULL && read(compiler, text) != NVPTXCOMPILE_SUCCESS) text[0] = '\0';
  return text;
}

static nvPTXCompileResult read_code(nvPTXCompilerHandle compiler,
                                    struct TilewrightNvptxResult* result) {
  nvPTXCompileResult status = nvPTXCompilerGetCompiledProgramSize(compiler, &result->data_bytes);
  if (status != NVPTXCOMPILE_SUCCESS) return status;
  result->data = malloc(result->data_bytes);
  if (result->data == NULL) return NVPTXCOMPILE_ERROR_OUT_OF_MEMORY;
  return nvPTXCompilerGetCompiledProgram(compiler, result->data);
}

void tilewright_nvptx_compile(const char* ptx, size_t ptx_bytes, int option_count,
                              const char* const* options, struct TilewrightNvptxResult* result) {
  memset(result, 0, sizeof *result);
  nvPTXCompilerHandle compiler = NULL;
  nvPTXCompileResult status = nvPTXCompilerCreate(&compiler, ptx_bytes, ptx);
  if (status != NVPTXCOMPILE_SUCCESS) {
    result->status = (int)status;
    result->log = copy_text("");
    return;
  }
  status = nvPTXCompilerCompile(compiler, option_count, options);
  if (status == NVPTXCOMPILE_SUCCESS) {
    result->log = read_log(compiler, nvPTXCompilerGetInfoLogSize, nvPTXCompilerGetInfoLog);
    status = read_code(compiler, result);
  } else {
    result->log = read_log(compiler, nvPTXCompilerGetErrorLogSize, nvPTXCompilerGetErrorLog);
  }
  result->status = (int)status;
  nvPTXCompilerDestroy(&compiler);
}

void tilewright_nvptx_free(struct TilewrightNvptxResult* result) {
  free(result->data);
  free(result->log);
  memset(result, 0, sizeof *result);
}
