/* SPDX-License-Identifier: Apache-2.0
 * What version 1 of the C interface and format 1 of bundles promise to programs that were compiled before. This file
 * compiles as long as the headers keep it. It may grow; a line that has to change asks for a new TW_ABI_VERSION.
 */
#include "tilewright.h"
#include "tilewright_bundle.h"

#define IS(condition) _Static_assert(condition, #condition)
#define AT(type, field, offset, size) \
  IS(offsetof(type, field) == (offset) && sizeof(((type*)0)->field) == (size))

IS(TW_ABI_VERSION == 1);
IS(TW_OK == 0 && TW_USER == 1 && TW_UNSUPPORTED == 2 && TW_INTERNAL == 3 && TW_FINDINGS == 4 && TW_NO_MEMORY == 5);
IS(sizeof(tw_status) == 4);

IS(sizeof(tw_tensor) == 48);
AT(tw_tensor, data, 0, 8);
AT(tw_tensor, device_type, 8, 4);
AT(tw_tensor, device_id, 12, 4);
AT(tw_tensor, ndim, 16, 4);
AT(tw_tensor, type_code, 20, 1);
AT(tw_tensor, type_bits, 21, 1);
AT(tw_tensor, type_lanes, 22, 2);
AT(tw_tensor, shape, 24, 8);
AT(tw_tensor, strides, 32, 8);
AT(tw_tensor, byte_offset, 40, 8);

IS(sizeof(tw_argument) == 16);
AT(tw_argument, name, 0, 8);
AT(tw_argument, tensor, 8, 8);
IS(sizeof(tw_option) == 16);
AT(tw_option, name, 0, 8);
AT(tw_option, value, 8, 8);

IS(sizeof(tw_call) == 56);
AT(tw_call, op, 0, 8);
AT(tw_call, arguments, 8, 8);
AT(tw_call, argument_count, 16, 8);
AT(tw_call, options, 24, 8);
AT(tw_call, option_count, 32, 8);
AT(tw_call, workspace, 40, 8);
AT(tw_call, workspace_bytes, 48, 8);

IS(sizeof(tw_output) == 104);
AT(tw_output, name, 0, 32);
AT(tw_output, type_code, 32, 1);
AT(tw_output, type_bits, 33, 1);
AT(tw_output, type_lanes, 34, 2);
AT(tw_output, ndim, 36, 4);
AT(tw_output, shape, 40, 64);

IS(sizeof(tw_counters) == 32);
AT(tw_counters, memory_hits, 0, 8);
AT(tw_counters, bundle_hits, 8, 8);
AT(tw_counters, disk_hits, 16, 8);
AT(tw_counters, compiles, 24, 8);

/* Another declaration of a function has to be of the same type. */
const char* tw_message(void);
uint32_t tw_abi_version(void);
const char* tw_version(void);
size_t tw_operator_count(void);
const char* tw_operator_name(size_t index);
tw_status tw_device_open(const char* name, tw_device** device);
void tw_device_close(tw_device* device);
tw_status tw_device_synchronize(tw_device* device);
tw_status tw_outputs(const tw_call* call, tw_output* outputs, size_t* count);
tw_status tw_workspace_bytes(const tw_call* call, int64_t* bytes);
tw_status tw_run(tw_device* device, const tw_call* call, void* stream);
tw_status tw_set_dependent_launches(int wanted);
tw_status tw_add_bundle(const char* path);
tw_status tw_get_counters(tw_counters* counters);
tw_status tw_allocate(tw_device* device, int64_t bytes, uint64_t* address);
tw_status tw_free(tw_device* device, uint64_t address);
tw_status tw_copy_in(tw_device* device, uint64_t to, const void* from, int64_t bytes);
tw_status tw_copy_out(tw_device* device, void* to, uint64_t from, int64_t bytes);

IS(TW_BUNDLE_FORMAT == 1);
IS(TW_BUNDLE_OK == 0 && TW_BUNDLE_ARGUMENT == 1 && TW_BUNDLE_FILE == 2 && TW_BUNDLE_FOREIGN == 3);
IS(TW_BUNDLE_NEWER == 4 && TW_BUNDLE_DAMAGED == 5 && TW_BUNDLE_NOT_FOUND == 6 && TW_BUNDLE_MEMORY == 7);
IS(TW_BUNDLE_DRIVER == 8 && TW_BUNDLE_CUDA == 9);
IS(TW_BUNDLE_COOPERATIVE == 1 && TW_BUNDLE_DEPENDENT == 2);

IS(sizeof(tw_bundle_head) == 40);
AT(tw_bundle_head, magic, 0, 8);
AT(tw_bundle_head, format, 8, 4);
AT(tw_bundle_head, count, 12, 4);
AT(tw_bundle_head, file_bytes, 16, 8);
AT(tw_bundle_head, index_bytes, 24, 8);
AT(tw_bundle_head, index_hash, 32, 8);

IS(sizeof(tw_bundle_text) == 8);
IS(sizeof(tw_bundle_record) == 152);
AT(tw_bundle_record, front_key, 0, 8);
AT(tw_bundle_record, entry, 8, 8);
AT(tw_bundle_record, target, 16, 8);
AT(tw_bundle_record, options, 24, 8);
AT(tw_bundle_record, recipe, 32, 8);
AT(tw_bundle_record, problem, 40, 8);
AT(tw_bundle_record, assembler, 48, 8);
AT(tw_bundle_record, code_at, 56, 8);
AT(tw_bundle_record, code_bytes, 64, 8);
AT(tw_bundle_record, code_hash, 72, 8);
AT(tw_bundle_record, dynamic_smem_bytes, 80, 8);
AT(tw_bundle_record, grid, 88, 12);
AT(tw_bundle_record, block, 100, 12);
AT(tw_bundle_record, cluster, 112, 12);
AT(tw_bundle_record, flags, 124, 4);
AT(tw_bundle_record, parameter_bytes, 128, 4);
AT(tw_bundle_record, static_smem_bytes, 132, 4);
AT(tw_bundle_record, registers, 136, 4);
AT(tw_bundle_record, stack_bytes, 140, 4);
AT(tw_bundle_record, spill_store_bytes, 144, 4);
AT(tw_bundle_record, spill_load_bytes, 148, 4);

const char* tw_bundle_message(void);
uint64_t tw_bundle_hash(const void* bytes, size_t size);
tw_bundle_status tw_bundle_open(const char* path, tw_bundle** bundle);
tw_bundle_status tw_bundle_open_memory(const void* bytes, size_t size, tw_bundle** bundle);
void tw_bundle_close(tw_bundle* bundle);
size_t tw_bundle_count(const tw_bundle* bundle);
tw_bundle_status tw_bundle_at(const tw_bundle* bundle, size_t index, tw_bundle_kernel* kernel);
tw_bundle_status tw_bundle_find(const tw_bundle* bundle, const char* name, const char* target, tw_bundle_kernel* kernel);
tw_bundle_status tw_bundle_use_gpu(int ordinal);
tw_bundle_status tw_bundle_load(const tw_bundle_kernel* kernel, tw_bundle_function* function);
tw_bundle_status tw_bundle_unload(tw_bundle_function* function);
tw_bundle_status tw_bundle_launch(const tw_bundle_function* function, const uint32_t grid[3], const void* parameters,
                                  size_t parameter_bytes, void* stream);
