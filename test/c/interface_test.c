/* SPDX-License-Identifier: Apache-2.0
 * The C interface from a C program: an operator on a device, its errors, and an emulator's findings.
 *
 * usage: c_interface_test DEVICE
 */
#include "tilewright.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

static void expect(int right, const char* what) {
  if (right) return;
  printf("FAILED: %s (last message: %s)\n", what, tw_message());
  ++failures;
}

static void expect_message(tw_status status, tw_status wanted, const char* message) {
  expect(status == wanted, message);
  if (strcmp(tw_message(), message) == 0) return;
  printf("FAILED: message\n  is     %s\n  wanted %s\n", tw_message(), message);
  ++failures;
}

enum { kRows = 3, kWidth = 64 };

/* A row-major f32 matrix, or a vector where `rows` is 0, in device memory. */
static tw_tensor tensor(uint64_t address, int64_t* shape, int32_t ndim) {
  tw_tensor made = {0};
  made.data = (void*)(uintptr_t)address;
  made.device_type = 2;
  made.ndim = ndim;
  made.type_code = 2;
  made.type_bits = 32;
  made.type_lanes = 1;
  made.shape = shape;
  return made;
}

static void fill(float* values, int count) {
  int i;
  for (i = 0; i < count; ++i)
    values[i] = (float)(i % 7) - 2.5F;
}

static void check_rms_norm(const float* x, const float* y) {
  int row, i;
  for (row = 0; row < kRows; ++row) {
    double sum = 0, scale;
    for (i = 0; i < kWidth; ++i)
      sum += (double)x[row * kWidth + i] * x[row * kWidth + i];
    scale = 1 / sqrt(sum / kWidth + 1e-5);
    for (i = 0; i < kWidth; ++i) {
      const double wanted = x[row * kWidth + i] * scale;
      expect(fabs(y[row * kWidth + i] - wanted) <= 1e-5 * fabs(wanted), "rms_norm's result");
    }
  }
}

static void run_rms_norm(tw_device* device) {
  float x[kRows * kWidth], y[kRows * kWidth];
  int64_t shape[2] = {kRows, kWidth};
  const int64_t bytes = (int64_t)sizeof x;
  uint64_t x_at = 0, y_at = 0;
  tw_tensor x_tensor, y_tensor;
  tw_argument arguments[2];
  tw_option option = {"eps", "1e-5"};
  tw_output outputs[4];
  size_t count = 4;
  int64_t workspace = -1;
  tw_call call = {0};
  tw_counters before, after;

  expect(tw_allocate(device, bytes, &x_at) == TW_OK && tw_allocate(device, bytes, &y_at) == TW_OK, "allocate");
  fill(x, kRows * kWidth);
  expect(tw_copy_in(device, x_at, x, bytes) == TW_OK, "copy in");
  x_tensor = tensor(x_at, shape, 2);
  y_tensor = tensor(y_at, shape, 2);
  arguments[0].name = "x";
  arguments[0].tensor = &x_tensor;
  arguments[1].name = "y";
  arguments[1].tensor = &y_tensor;
  call.op = "rms_norm";
  call.arguments = arguments;
  call.argument_count = 1;
  call.options = &option;
  call.option_count = 1;
  expect(tw_outputs(&call, outputs, &count) == TW_OK && count == 2, "outputs");
  expect(strcmp(outputs[0].name, "y") == 0 && outputs[0].ndim == 2 && outputs[0].shape[1] == kWidth &&
             outputs[0].type_code == 2 && outputs[0].type_bits == 32,
         "the first output");
  expect(tw_workspace_bytes(&call, &workspace) == TW_OK && workspace == 0, "workspace");
  expect_message(tw_run(device, &call, NULL), TW_USER, "rms_norm: y is absent; it may be where q is given");
  call.argument_count = 2;
  expect(tw_run(device, &call, NULL) == TW_OK, "run");
  expect(tw_device_synchronize(device) == TW_OK, "synchronize");
  expect(tw_copy_out(device, y, y_at, bytes) == TW_OK, "copy out");
  check_rms_norm(x, y);

  expect(tw_get_counters(&before) == TW_OK && tw_set_dependent_launches(1) == TW_OK, "dependent launches");
  expect(tw_run(device, &call, NULL) == TW_OK && tw_run(device, &call, NULL) == TW_OK, "run behind one another");
  expect(tw_set_dependent_launches(0) == TW_OK && tw_get_counters(&after) == TW_OK, "counters");
  expect(after.memory_hits == before.memory_hits + 1 && after.compiles <= before.compiles + 1,
         "the first dependent launch makes a kernel, the second has it");
  expect(tw_copy_out(device, y, y_at, bytes) == TW_OK, "copy out again");
  check_rms_norm(x, y);

  option.value = "-1";
  expect(tw_run(device, &call, NULL) == TW_USER, "an option out of range");
  expect(strstr(tw_message(), "eps") != NULL, "the message names the option");
  option.value = "1e-5";
  x_tensor.type_bits = 48;
  expect_message(tw_run(device, &call, NULL), TW_USER,
                 "tensor x: has DLPack type code 2 of 48 bits and 1 lanes, which is none of the library's");
  x_tensor.type_bits = 32;
  x_tensor.device_type = 1;
  expect_message(tw_run(device, &call, NULL), TW_USER,
                 "tensor x: is in memory of DLPack's device type 1; it must be 2, a GPU's");
  expect(tw_free(device, x_at) == TW_OK && tw_free(device, y_at) == TW_OK, "free");
}

/* An input of which no byte was written: the emulator says so. */
static void run_on_unwritten_memory(tw_device* device) {
  int64_t shape[2] = {kRows, kWidth};
  const int64_t bytes = kRows * kWidth * 4;
  uint64_t x_at = 0, y_at = 0;
  tw_tensor x_tensor, y_tensor;
  tw_argument arguments[2];
  tw_call call = {0};
  expect(tw_allocate(device, bytes, &x_at) == TW_OK && tw_allocate(device, bytes, &y_at) == TW_OK, "allocate");
  x_tensor = tensor(x_at, shape, 2);
  y_tensor = tensor(y_at, shape, 2);
  arguments[0].name = "x";
  arguments[0].tensor = &x_tensor;
  arguments[1].name = "y";
  arguments[1].tensor = &y_tensor;
  call.op = "rms_norm";
  call.arguments = arguments;
  call.argument_count = 2;
  expect(tw_run(device, &call, NULL) == TW_FINDINGS, "unwritten memory is a finding");
  expect(strstr(tw_message(), "uninitialized_read") != NULL, "of this kind");
  tw_free(device, x_at);
  tw_free(device, y_at);
}

static void refuse_bad_calls(void) {
  tw_device* device = NULL;
  tw_call call = {0};
  expect_message(tw_device_open("gpu", &device), TW_USER,
                 "unknown device 'gpu'; a device is cuda:N with the number of a GPU, or emu:sm_90a with a target");
  expect(device == NULL, "no device");
  expect_message(tw_device_open("emu:sm_90a", NULL), TW_USER, "tw_device_open: the pointer is null");
  expect_message(tw_run(NULL, &call, NULL), TW_USER, "tw_run: the pointer is null");
  expect_message(tw_outputs(&call, NULL, NULL), TW_USER, "tw_outputs: the pointer is null");
  expect_message(tw_get_counters(NULL), TW_USER, "tw_get_counters: the pointer is null");
  expect_message(tw_add_bundle("/nowhere/a.twb"), TW_USER, "bundle: /nowhere/a.twb: No such file or directory");
}

static void list_operators(void) {
  size_t i;
  int found = 0;
  for (i = 0; i < tw_operator_count(); ++i)
    found |= strcmp(tw_operator_name(i), "rms_norm") == 0;
  expect(found, "rms_norm is an operator");
  expect(tw_operator_name(tw_operator_count()) == NULL, "no name past the end");
}

int main(int argc, char** argv) {
  tw_device* device = NULL;
  if (argc != 2) {
    printf("usage: c_interface_test DEVICE\n");
    return 2;
  }
  expect(tw_abi_version() == TW_ABI_VERSION, "the header is the library's");
  list_operators();
  refuse_bad_calls();
  if (tw_device_open(argv[1], &device) != TW_OK) {
    printf("%s\n", tw_message());
    return 2;
  }
  run_rms_norm(device);
  if (strncmp(argv[1], "emu", 3) == 0) run_on_unwritten_memory(device);
  tw_device_close(device);
  printf(failures == 0 ? "passed\n" : "%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
