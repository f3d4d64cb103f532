/* SPDX-License-Identifier: Apache-2.0
 * Calls an operator of the library from C. usage: operator_c [DEVICE] [BUNDLE] */
#include <stdio.h>
#include <tilewright.h>

enum { kRows = 4, kWidth = 64 };

static int failed(tw_status status) {
  if (status == TW_OK) return 0;
  fprintf(stderr, "status %d: %s\n", (int)status, tw_message());
  return 1;
}

// begin call
static int rms_norm(tw_device* device, uint64_t x, uint64_t y) {
  int64_t shape[2] = {kRows, kWidth};
  tw_tensor tensor = {.device_type = 2,
                      .ndim = 2,
                      .type_code = 2,
                      .type_bits = 32,
                      .type_lanes = 1,
                      .shape = shape};
  tw_tensor x_tensor = tensor, y_tensor = tensor;
  const tw_argument arguments[] = {{"x", &x_tensor}, {"y", &y_tensor}}; /* others are optional */
  const tw_option options[] = {{"eps", "1e-5"}};
  const tw_call call = {.op = "rms_norm",
                        .arguments = arguments,
                        .argument_count = 2,
                        .options = options,
                        .option_count = 1};
  x_tensor.data = (void*)(uintptr_t)x;
  y_tensor.data = (void*)(uintptr_t)y;
  return failed(tw_run(device, &call, NULL)) || failed(tw_device_synchronize(device));
}
// end call

int main(int argc, char** argv) {
  float numbers[kRows * kWidth];
  const int64_t bytes = (int64_t)sizeof numbers;
  tw_device* device = NULL;
  uint64_t x = 0, y = 0;
  int i;
  for (i = 0; i < kRows * kWidth; ++i)
    numbers[i] = 2;
  if (tw_abi_version() != TW_ABI_VERSION) return 1;
  if (argc > 2 && failed(tw_add_bundle(argv[2]))) return 1;
  if (failed(tw_device_open(argc > 1 ? argv[1] : "emu:sm_90a", &device)) ||
      failed(tw_allocate(device, bytes, &x)) || failed(tw_allocate(device, bytes, &y)) ||
      failed(tw_copy_in(device, x, numbers, bytes)) || rms_norm(device, x, y) ||
      failed(tw_copy_out(device, numbers, y, bytes)))
    return 1;
  printf("tilewright %s: 2 becomes %.5f\n", tw_version(), (double)numbers[0]);
  tw_free(device, x);
  tw_free(device, y);
  tw_device_close(device);
  return numbers[0] > 0.999F && numbers[0] < 1.001F ? 0 : 1;
}
