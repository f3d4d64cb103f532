// SPDX-License-Identifier: Apache-2.0
// Tilewright's operators in C: opaque handles, tensors as DLPack lays them out, status codes with a
// message.
//
// Link with libtilewright_c. Every function that can fail returns a status; tw_message() has the
// text of the last failure on the calling thread, the same text that C++ throws. Functions are
// thread-safe on GPUs; an emulated device takes one thread at a time. Names and structs of this
// header stay as they are while TW_ABI_VERSION does.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TW_ABI_VERSION 1
#define TW_API __attribute__((visibility("default")))

typedef enum tw_status {
  TW_OK = 0,
  TW_USER = 1,         // what the caller gave is wrong
  TW_UNSUPPORTED = 2,  // this machine, target or build cannot do it
  TW_INTERNAL = 3,     // a mistake of the library's own
  TW_FINDINGS =
      4,  // an emulated device ran the kernel and found errors in it; the message has the first
  TW_NO_MEMORY = 5  // the host's memory is used up
} tw_status;

// The layout of DLPack's DLTensor (dlpack.h, versions 0.2 to 1.x): a pointer to one may be passed
// by a cast. Device type 2 is CUDA; the addresses of emulated devices are passed the same way.
typedef struct tw_tensor {
  void* data;
  int32_t device_type;
  int32_t device_id;
  int32_t ndim;
  uint8_t type_code;  // 0 signed, 1 unsigned, 2 float, 4 bfloat, 6 boolean, 7 to 17 the narrow
                      // floats of DLPack 1.1
  uint8_t type_bits;
  uint16_t type_lanes;
  int64_t* shape;
  int64_t* strides;  // in elements; NULL: row-major
  uint64_t byte_offset;
} tw_tensor;

typedef struct tw_argument {
  const char* name;  // of a tensor of the operator: see `tilewright list OP`
  const tw_tensor* tensor;
} tw_argument;

typedef struct tw_option {
  const char* name;
  const char* value;  // as the command line spells it: "1e-6", "true", "neox"
} tw_option;

// One call of an operator. Outputs are the caller's memory; optional tensors are left out.
typedef struct tw_call {
  const char* op;
  const tw_argument* arguments;
  size_t argument_count;
  const tw_option* options;
  size_t option_count;
  uint64_t
      workspace;  // device address of workspace_bytes bytes that were zero before the first call
  int64_t workspace_bytes;  // at least tw_workspace_bytes()
} tw_call;

// A tensor that the caller has to provide.
typedef struct tw_output {
  char name[32];
  uint8_t type_code, type_bits;
  uint16_t type_lanes;
  int32_t ndim;
  int64_t shape[8];
} tw_output;

typedef struct tw_device tw_device;

TW_API const char* tw_message(void);
TW_API uint32_t tw_abi_version(void);
TW_API const char* tw_version(void);  // "0.1.0"

TW_API size_t tw_operator_count(void);
TW_API const char* tw_operator_name(size_t index);  // NULL: there is none

// "cuda:0" or "emu:sm_90a"; NULL: the CUDA context that is current on this thread.
TW_API tw_status tw_device_open(const char* name, tw_device** device);
TW_API void tw_device_close(tw_device* device);
TW_API tw_status tw_device_synchronize(tw_device* device);

// Checks the inputs and options, and says what the outputs are. `count` holds the room in `outputs`
// before, their number after.
TW_API tw_status tw_outputs(const tw_call* call, tw_output* outputs, size_t* count);
TW_API tw_status tw_workspace_bytes(const tw_call* call, int64_t* bytes);
// Checks everything and launches on a CUstream (NULL: the default one). Allocates nothing on the
// device and does not wait; works under graph capture once the operator's kernel is loaded.
TW_API tw_status tw_run(tw_device* device, const tw_call* call, void* stream);

// With 1, operators that this thread launches from here on begin before the kernel in front of them
// on the stream ends, and wait for it before they touch memory; with 0 no longer. Results are the
// same.
TW_API tw_status tw_set_dependent_launches(int wanted);

// Kernels come from this bundle from here on, in all threads; see tilewright_bundle.h.
TW_API tw_status tw_add_bundle(const char* path);

// How kernels were found, in all threads, since the program began.
typedef struct tw_counters {
  int64_t memory_hits;
  int64_t bundle_hits;
  int64_t disk_hits;  // in the kernel cache
  int64_t compiles;   // what TILEWRIGHT_COMPILE=off makes an error
} tw_counters;
TW_API tw_status tw_get_counters(tw_counters* counters);

// Memory of a device, for programs that have no allocator of their own. The copies block.
TW_API tw_status tw_allocate(tw_device* device, int64_t bytes, uint64_t* address);
TW_API tw_status tw_free(tw_device* device, uint64_t address);
TW_API tw_status tw_copy_in(tw_device* device, uint64_t to, const void* from, int64_t bytes);
TW_API tw_status tw_copy_out(tw_device* device, void* to, uint64_t from, int64_t bytes);

#ifdef __cplusplus
}
#endif
