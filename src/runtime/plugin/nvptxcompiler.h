// SPDX-License-Identifier: Apache-2.0
// The C interface of libtilewright_nvptxcompiler, which wraps NVIDIA's static PTX compiler library.
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/// What a compilation made. `data` is machine code (status 0) and `log` is text, both from malloc.
struct TilewrightNvptxResult {
  int status;  ///< an nvPTXCompileResult; 0: success
  void* data;
  size_t data_bytes;
  char* log;  ///< the info log after success, else the error log; never null after a call
};

/// The CUDA version of the compiler: 13000 for 13.0; 0 if it does not say.
int tilewright_nvptx_version(void);
void tilewright_nvptx_compile(const char* ptx, size_t ptx_bytes, int option_count,
                              const char* const* options, struct TilewrightNvptxResult* result);
void tilewright_nvptx_free(struct TilewrightNvptxResult* result);

#ifdef __cplusplus
}
#endif
