/* SPDX-License-Identifier: Apache-2.0
 * Lists a bundle's kernels with the header alone, and loads each where there is a GPU. usage:
 * bundle_c FILE */
#define TILEWRIGHT_BUNDLE_IMPLEMENTATION
#include <stdio.h>
#include <tilewright_bundle.h>

static int failed(tw_bundle_status status) {
  if (status == TW_BUNDLE_OK) return 0;
  fprintf(stderr, "status %d: %s\n", (int)status, tw_bundle_message());
  return 1;
}

int main(int argc, char** argv) {
  tw_bundle* bundle = NULL;
  int on_gpu;
  size_t i;
  if (argc != 2) return fprintf(stderr, "usage: bundle_c FILE\n"), 2;
  if (failed(tw_bundle_open(argv[1], &bundle))) return 1;
  on_gpu = tw_bundle_use_gpu(0) == TW_BUNDLE_OK; /* or make a context current in your own way */
  for (i = 0; i < tw_bundle_count(bundle); ++i) {
    tw_bundle_kernel kernel;
    tw_bundle_function function;
    if (failed(tw_bundle_at(bundle, i, &kernel))) return 1;
    printf("%s %s: %zu bytes of code, %s\n", kernel.target, kernel.entry, kernel.code_bytes,
           kernel.problem);
    if (!on_gpu) continue;
    if (failed(tw_bundle_load(&kernel, &function)))
      return 1; /* tw_bundle_launch() then runs it on any grid */
    if (failed(tw_bundle_unload(&function))) return 1;
  }
  tw_bundle_close(bundle);
  return 0;
}
