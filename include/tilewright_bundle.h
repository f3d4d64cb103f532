// SPDX-License-Identifier: Apache-2.0
// Loads bundles of GPU kernels in C: needs the CUDA driver alone, and that only to load code.
//
// In one source file, #define TILEWRIGHT_BUNDLE_IMPLEMENTATION before the first include; with an
// old C library link with -ldl. A bundle is a file that `tilewright compile` or
// tilewright::write_bundle() made. It is read whole, so that the file may be replaced while it is
// in use. Several bundles may be open; many threads may read one. tw_bundle_message() tells of the
// last failure on the calling thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef TW_BUNDLE_API
#define TW_BUNDLE_API extern
#endif

/* ---- The file. Numbers are little-endian; places are counted from the start of the file. ---- */

#define TW_BUNDLE_MAGIC "TWBUNDLE"
#define TW_BUNDLE_FORMAT 1u

typedef struct tw_bundle_head {
  char magic[8];
  uint32_t format;
  uint32_t count; /* of records, which follow the head */
  uint64_t file_bytes;
  uint64_t index_bytes; /* records and texts */
  uint64_t index_hash;  /* tw_bundle_hash() of them */
} tw_bundle_head;

typedef struct tw_bundle_text {
  uint32_t at;
  uint32_t bytes; /* without the NUL that follows */
} tw_bundle_text;

typedef struct tw_bundle_record {
  tw_bundle_text front_key, entry, target, options, recipe, problem, assembler;
  uint64_t code_at, code_bytes, code_hash;
  uint64_t dynamic_smem_bytes;
  uint32_t grid[3], block[3], cluster[3];
  uint32_t flags; /* TW_BUNDLE_COOPERATIVE, TW_BUNDLE_DEPENDENT */
  uint32_t parameter_bytes, static_smem_bytes, registers, stack_bytes, spill_store_bytes,
      spill_load_bytes;
} tw_bundle_record;

#define TW_BUNDLE_COOPERATIVE 1u
#define TW_BUNDLE_DEPENDENT 2u

/* ---- The interface ---- */

typedef enum tw_bundle_status {
  TW_BUNDLE_OK = 0,
  TW_BUNDLE_ARGUMENT = 1,  /* a null pointer, a grid of zero blocks */
  TW_BUNDLE_FILE = 2,      /* cannot be read; the message has the reason */
  TW_BUNDLE_FOREIGN = 3,   /* is no bundle */
  TW_BUNDLE_NEWER = 4,     /* has a newer format than this header */
  TW_BUNDLE_DAMAGED = 5,   /* is cut short, or a checksum does not fit */
  TW_BUNDLE_NOT_FOUND = 6, /* has no such kernel */
  TW_BUNDLE_MEMORY = 7,    /* the host's memory is used up */
  TW_BUNDLE_DRIVER = 8,    /* there is no usable driver */
  TW_BUNDLE_CUDA = 9       /* the driver refused a call; the message has its code */
} tw_bundle_status;

typedef struct tw_bundle tw_bundle;

/* A kernel of a bundle; valid while the bundle is open. */
typedef struct tw_bundle_kernel {
  const char* front_key; /* what the library finds it by */
  const char* entry;
  const char* target;    /* "sm_90a" */
  const char* options;   /* of the assembler, canonical */
  const char* recipe;    /* one line a parameter: "address 0", "extent 0.1 s32", ... */
  const char* problem;   /* the first launch that needed it, in words */
  const char* assembler; /* "ptxas 13.0.88" */
  const void* code;      /* a cubin */
  size_t code_bytes;
  const tw_bundle_record*
      record; /* resources, and the configuration of the launch that was recorded */
} tw_bundle_kernel;

TW_BUNDLE_API tw_bundle_status tw_bundle_open(const char* path, tw_bundle** bundle);
/* Takes a copy of the bytes. */
TW_BUNDLE_API tw_bundle_status tw_bundle_open_memory(const void* bytes, size_t size,
                                                     tw_bundle** bundle);
TW_BUNDLE_API void tw_bundle_close(
    tw_bundle* bundle); /* not before kernels loaded from it are unloaded */

TW_BUNDLE_API size_t tw_bundle_count(const tw_bundle* bundle);
/* Checks the code's checksum. */
TW_BUNDLE_API tw_bundle_status tw_bundle_at(const tw_bundle* bundle, size_t index,
                                            tw_bundle_kernel* kernel);
/* By entry name, or by front key and "" or a target. */
TW_BUNDLE_API tw_bundle_status tw_bundle_find(const tw_bundle* bundle, const char* name,
                                              const char* target, tw_bundle_kernel* kernel);

TW_BUNDLE_API const char* tw_bundle_message(void);
TW_BUNDLE_API uint64_t tw_bundle_hash(const void* bytes, size_t size);

/* ---- On a GPU: in the context that is current on the calling thread ---- */

typedef struct tw_bundle_function {
  void* module;   /* a CUmodule */
  void* function; /* a CUfunction */
  struct tw_bundle_driver* driver;
  tw_bundle_record how;
  uint32_t* offsets; /* of each parameter in the caller's buffer; NULL: there is no recipe */
  uint32_t parameter_count;
} tw_bundle_function;

/* Makes the primary context of a GPU current on this thread, for programs without a context. */
TW_BUNDLE_API tw_bundle_status tw_bundle_use_gpu(int ordinal);
TW_BUNDLE_API tw_bundle_status tw_bundle_load(const tw_bundle_kernel* kernel,
                                              tw_bundle_function* function);
TW_BUNDLE_API tw_bundle_status tw_bundle_unload(tw_bundle_function* function);
/* `grid` in blocks; block, cluster, shared memory and attributes are those that were recorded.
 * `parameters` is packed as the recipe says, each at its natural alignment. `stream` is a CUstream;
 * NULL is the default one. */
TW_BUNDLE_API tw_bundle_status tw_bundle_launch(const tw_bundle_function* function,
                                                const uint32_t grid[3], const void* parameters,
                                                size_t parameter_bytes, void* stream);

#ifdef __cplusplus
}
#endif

#ifdef TILEWRIGHT_BUNDLE_IMPLEMENTATION
#undef TILEWRIGHT_BUNDLE_IMPLEMENTATION

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tw_bundle {
  unsigned char* bytes;
  size_t size;
  size_t count;
};

static __thread char tw_bundle_last_message[512];

static tw_bundle_status tw_bundle_fail(tw_bundle_status status, const char* format, ...) {
  va_list values;
  va_start(values, format);
  vsnprintf(tw_bundle_last_message, sizeof tw_bundle_last_message, format, values);
  va_end(values);
  return status;
}

TW_BUNDLE_API const char* tw_bundle_message(void) { return tw_bundle_last_message; }

/* FNV-1a over little-endian words of 64 bits, the last one filled up with zeros. */
TW_BUNDLE_API uint64_t tw_bundle_hash(const void* bytes, size_t size) {
  const unsigned char* from = (const unsigned char*)bytes;
  uint64_t hash = 14695981039346656037u;
  while (size > 0) {
    uint64_t word = 0;
    const size_t step = size < 8 ? size : 8;
    memcpy(&word, from, step);
    hash = (hash ^ word) * 1099511628211u;
    from += step;
    size -= step;
  }
  return hash;
}

static const tw_bundle_record* tw_bundle_records(const tw_bundle* bundle) {
  return (const tw_bundle_record*)(const void*)(bundle->bytes + sizeof(tw_bundle_head));
}

static int tw_bundle_text_is_sound(const tw_bundle* bundle, tw_bundle_text text) {
  const uint64_t end = (uint64_t)text.at + text.bytes;
  return end < bundle->size && bundle->bytes[end] == 0 &&
         memchr(bundle->bytes + text.at, 0, text.bytes) == NULL;
}

static int tw_bundle_record_is_sound(const tw_bundle* bundle, const tw_bundle_record* record) {
  const tw_bundle_text texts[] = {record->front_key, record->entry,  record->target,
                                  record->options,   record->recipe, record->problem,
                                  record->assembler};
  size_t i;
  for (i = 0; i < sizeof texts / sizeof texts[0]; ++i)
    if (!tw_bundle_text_is_sound(bundle, texts[i])) return 0;
  return record->code_at <= bundle->size && record->code_bytes <= bundle->size - record->code_at;
}

/* Everything but the code itself, which tw_bundle_at() checks. */
static tw_bundle_status tw_bundle_check(tw_bundle* bundle) {
  tw_bundle_head head;
  size_t i;
  const size_t magic = bundle->size < 8 ? bundle->size : 8;
  if (bundle->size == 0 || memcmp(bundle->bytes, TW_BUNDLE_MAGIC, magic) != 0)
    return tw_bundle_fail(TW_BUNDLE_FOREIGN, "is not a bundle");
  if (bundle->size < sizeof head) return tw_bundle_fail(TW_BUNDLE_DAMAGED, "is cut short");
  memcpy(&head, bundle->bytes, sizeof head);
  if (head.format != TW_BUNDLE_FORMAT)
    return tw_bundle_fail(TW_BUNDLE_NEWER, "has format %u; this program reads %u",
                          (unsigned)head.format, TW_BUNDLE_FORMAT);
  if (head.file_bytes > bundle->size) return tw_bundle_fail(TW_BUNDLE_DAMAGED, "is cut short");
  if (head.file_bytes < bundle->size)
    return tw_bundle_fail(TW_BUNDLE_DAMAGED, "has bytes after its end");
  if (head.index_bytes > bundle->size - sizeof head ||
      head.count > head.index_bytes / sizeof(tw_bundle_record))
    return tw_bundle_fail(TW_BUNDLE_DAMAGED, "is malformed");
  if (tw_bundle_hash(bundle->bytes + sizeof head, (size_t)head.index_bytes) != head.index_hash)
    return tw_bundle_fail(TW_BUNDLE_DAMAGED, "is damaged: the checksum of its index does not fit");
  bundle->count = head.count;
  for (i = 0; i < bundle->count; ++i)
    if (!tw_bundle_record_is_sound(bundle, tw_bundle_records(bundle) + i))
      return tw_bundle_fail(TW_BUNDLE_DAMAGED, "is malformed");
  return TW_BUNDLE_OK;
}

static tw_bundle* tw_bundle_make(size_t size) {
  tw_bundle* bundle = (tw_bundle*)calloc(1, sizeof *bundle);
  if (bundle == NULL) return NULL;
  bundle->size = size;
  bundle->bytes = (unsigned char*)malloc(size == 0 ? 1 : size);
  if (bundle->bytes != NULL) return bundle;
  free(bundle);
  return NULL;
}

static tw_bundle_status tw_bundle_finish(tw_bundle* made, tw_bundle** bundle) {
  const tw_bundle_status status = tw_bundle_check(made);
  if (status == TW_BUNDLE_OK) {
    *bundle = made;
  } else {
    tw_bundle_close(made);
  }
  return status;
}

TW_BUNDLE_API tw_bundle_status tw_bundle_open_memory(const void* bytes, size_t size,
                                                     tw_bundle** bundle) {
  tw_bundle* made;
  if (bundle == NULL || (bytes == NULL && size > 0))
    return tw_bundle_fail(TW_BUNDLE_ARGUMENT, "tw_bundle_open_memory: a pointer is null");
  *bundle = NULL;
  made = tw_bundle_make(size);
  if (made == NULL)
    return tw_bundle_fail(TW_BUNDLE_MEMORY, "no memory for a bundle of %zu bytes", size);
  if (size > 0) memcpy(made->bytes, bytes, size);
  return tw_bundle_finish(made, bundle);
}

static tw_bundle_status tw_bundle_read(FILE* file, const char* path, tw_bundle** made) {
  long size;
  if (fseek(file, 0, SEEK_END) != 0 || (size = ftell(file)) < 0 || fseek(file, 0, SEEK_SET) != 0)
    return tw_bundle_fail(TW_BUNDLE_FILE, "%s: %s", path, strerror(errno));
  *made = tw_bundle_make((size_t)size);
  if (*made == NULL)
    return tw_bundle_fail(TW_BUNDLE_MEMORY, "no memory for a bundle of %ld bytes", size);
  if (fread((*made)->bytes, 1, (*made)->size, file) == (*made)->size) return TW_BUNDLE_OK;
  tw_bundle_close(*made);
  *made = NULL;
  return tw_bundle_fail(TW_BUNDLE_FILE, "%s: cannot be read whole", path);
}

TW_BUNDLE_API tw_bundle_status tw_bundle_open(const char* path, tw_bundle** bundle) {
  tw_bundle* made = NULL;
  FILE* file;
  tw_bundle_status status;
  if (path == NULL || bundle == NULL)
    return tw_bundle_fail(TW_BUNDLE_ARGUMENT, "tw_bundle_open: a pointer is null");
  *bundle = NULL;
  file = fopen(path, "rb");
  if (file == NULL) return tw_bundle_fail(TW_BUNDLE_FILE, "%s: %s", path, strerror(errno));
  status = tw_bundle_read(file, path, &made);
  fclose(file);
  if (made == NULL) return status;
  status = tw_bundle_finish(made, bundle);
  if (status != TW_BUNDLE_OK) {
    char why[sizeof tw_bundle_last_message];
    memcpy(why, tw_bundle_last_message, sizeof why);
    return tw_bundle_fail(status, "%s %s", path, why);
  }
  return status;
}

TW_BUNDLE_API void tw_bundle_close(tw_bundle* bundle) {
  if (bundle == NULL) return;
  free(bundle->bytes);
  free(bundle);
}

TW_BUNDLE_API size_t tw_bundle_count(const tw_bundle* bundle) {
  return bundle == NULL ? 0 : bundle->count;
}

TW_BUNDLE_API tw_bundle_status tw_bundle_at(const tw_bundle* bundle, size_t index,
                                            tw_bundle_kernel* kernel) {
  const tw_bundle_record* record;
  const char* file;
  if (bundle == NULL || kernel == NULL)
    return tw_bundle_fail(TW_BUNDLE_ARGUMENT, "tw_bundle_at: a pointer is null");
  if (index >= bundle->count)
    return tw_bundle_fail(TW_BUNDLE_NOT_FOUND, "the bundle has %zu kernels, none has index %zu",
                          bundle->count, index);
  file = (const char*)bundle->bytes;
  record = tw_bundle_records(bundle) + index;
  if (tw_bundle_hash(file + record->code_at, (size_t)record->code_bytes) != record->code_hash)
    return tw_bundle_fail(TW_BUNDLE_DAMAGED, "is damaged: the checksum of kernel %s does not fit",
                          file + record->entry.at);
  kernel->front_key = file + record->front_key.at;
  kernel->entry = file + record->entry.at;
  kernel->target = file + record->target.at;
  kernel->options = file + record->options.at;
  kernel->recipe = file + record->recipe.at;
  kernel->problem = file + record->problem.at;
  kernel->assembler = file + record->assembler.at;
  kernel->code = file + record->code_at;
  kernel->code_bytes = (size_t)record->code_bytes;
  kernel->record = record;
  return TW_BUNDLE_OK;
}

TW_BUNDLE_API tw_bundle_status tw_bundle_find(const tw_bundle* bundle, const char* name,
                                              const char* target, tw_bundle_kernel* kernel) {
  size_t i;
  if (bundle == NULL || name == NULL || target == NULL || kernel == NULL)
    return tw_bundle_fail(TW_BUNDLE_ARGUMENT, "tw_bundle_find: a pointer is null");
  for (i = 0; i < bundle->count; ++i) {
    const tw_bundle_record* record = tw_bundle_records(bundle) + i;
    const char* file = (const char*)bundle->bytes;
    if (strcmp(file + record->entry.at, name) != 0 &&
        strcmp(file + record->front_key.at, name) != 0)
      continue;
    if (*target == 0 || strcmp(file + record->target.at, target) == 0)
      return tw_bundle_at(bundle, i, kernel);
  }
  return tw_bundle_fail(TW_BUNDLE_NOT_FOUND, "the bundle has no kernel '%s' for %s", name,
                        *target == 0 ? "any target" : target);
}

/* ---- The driver, by declarations of our own: CUDA Driver API reference manual ---- */

typedef struct tw_bundle_attribute {
  int id; /* CUlaunchAttributeID */
  char pad[4];
  union {
    char bytes[64];
    uint32_t cluster[3];
    int flag;
  } value;
} tw_bundle_attribute;

typedef struct tw_bundle_config { /* CUlaunchConfig */
  uint32_t grid[3], block[3], dynamic_smem_bytes;
  void* stream;
  tw_bundle_attribute* attributes;
  uint32_t attribute_count;
} tw_bundle_config;

typedef struct tw_bundle_driver {
  int (*load)(void**, const void*, unsigned, int*, void**);
  int (*unload)(void*);
  int (*function)(void**, void*, const char*);
  int (*set_attribute)(void*, int, int);
  int (*launch)(const tw_bundle_config*, void*, void**, void**);
  int (*error_name)(int, const char**);
} tw_bundle_driver;

static int tw_bundle_bind(void* library, const char* name, void* slot) {
  void* const found = dlsym(library, name);
  memcpy(slot, &found, sizeof found);
  return found != NULL;
}

static tw_bundle_status tw_bundle_open_driver(void** library, tw_bundle_driver* driver) {
  const char* chosen = getenv("TILEWRIGHT_CUDA_DRIVER"); /* another file, for tests */
  *library = dlopen(chosen != NULL ? chosen : "libcuda.so.1", RTLD_NOW);
  if (*library == NULL)
    return tw_bundle_fail(TW_BUNDLE_DRIVER, "the CUDA driver cannot be opened: %s", dlerror());
  if (tw_bundle_bind(*library, "cuModuleLoadDataEx", &driver->load) &&
      tw_bundle_bind(*library, "cuModuleUnload", &driver->unload) &&
      tw_bundle_bind(*library, "cuModuleGetFunction", &driver->function) &&
      tw_bundle_bind(*library, "cuFuncSetAttribute", &driver->set_attribute) &&
      tw_bundle_bind(*library, "cuLaunchKernelEx", &driver->launch) &&
      tw_bundle_bind(*library, "cuGetErrorName", &driver->error_name))
    return TW_BUNDLE_OK;
  return tw_bundle_fail(TW_BUNDLE_DRIVER,
                        "the CUDA driver is too old: it must be of CUDA 11.8 or newer");
}

static tw_bundle_status tw_bundle_call(const tw_bundle_driver* driver, int result,
                                       const char* call) {
  enum { kNotInitialized = 3, kInvalidContext = 201 };
  const char* name = NULL;
  if (result == 0) return TW_BUNDLE_OK;
  driver->error_name(result, &name);
  return tw_bundle_fail(TW_BUNDLE_CUDA, "%s: %s (%d)%s", call,
                        name == NULL ? "unknown error" : name, result,
                        result == kNotInitialized || result == kInvalidContext
                            ? "; no context is current on this thread, see tw_bundle_use_gpu"
                            : "");
}

TW_BUNDLE_API tw_bundle_status tw_bundle_use_gpu(int ordinal) {
  int (*init)(unsigned);
  int (*device)(int*, int);
  int (*retain)(void**, int);
  int (*set_current)(void*);
  tw_bundle_driver driver;
  void *library, *context = NULL;
  int gpu = 0;
  tw_bundle_status status = tw_bundle_open_driver(&library, &driver);
  if (status != TW_BUNDLE_OK) return status;
  if (!tw_bundle_bind(library, "cuInit", &init) ||
      !tw_bundle_bind(library, "cuDeviceGet", &device) ||
      !tw_bundle_bind(library, "cuDevicePrimaryCtxRetain", &retain) ||
      !tw_bundle_bind(library, "cuCtxSetCurrent", &set_current))
    return tw_bundle_fail(TW_BUNDLE_DRIVER, "the CUDA driver lacks functions for contexts");
  status = tw_bundle_call(&driver, init(0), "cuInit");
  if (status == TW_BUNDLE_OK)
    status = tw_bundle_call(&driver, device(&gpu, ordinal), "cuDeviceGet");
  if (status == TW_BUNDLE_OK)
    status = tw_bundle_call(&driver, retain(&context, gpu), "cuDevicePrimaryCtxRetain");
  if (status == TW_BUNDLE_OK)
    status = tw_bundle_call(&driver, set_current(context), "cuCtxSetCurrent");
  return status;
}

/* The bytes of a parameter, from its line of the recipe: "address 0", "scalar 3 f32", "tensor_map
 * 1". */
static uint32_t tw_bundle_parameter_bytes(const char* line, size_t length) {
  uint32_t bits = 0;
  size_t i;
  if (strncmp(line, "address", 7) == 0) return 8;
  if (strncmp(line, "tensor_map", 10) == 0) return 128;
  for (i = length; i > 0 && line[i - 1] >= '0' && line[i - 1] <= '9'; --i) {
  }
  for (; i < length; ++i)
    bits = bits * 10 + (uint32_t)(line[i] - '0');
  return bits / 8;
}

/* Where each parameter lies in a buffer, each at its natural alignment, a tensor map at 64. Tensor
 * maps lie elsewhere in the constant bank than in such a buffer, so that the driver is given each
 * parameter's address. */
static tw_bundle_status tw_bundle_place(const tw_bundle_kernel* kernel,
                                        tw_bundle_function* function) {
  const char* line = kernel->recipe;
  uint32_t count = 0, end = 0;
  for (; *line != 0; ++line)
    count += *line == '\n';
  if (count == 0) return TW_BUNDLE_OK;
  function->offsets = (uint32_t*)calloc(count, sizeof *function->offsets);
  if (function->offsets == NULL) return tw_bundle_fail(TW_BUNDLE_MEMORY, "no memory for a kernel");
  for (line = kernel->recipe; *line != 0;) {
    const size_t length = strcspn(line, "\n");
    const uint32_t bytes = tw_bundle_parameter_bytes(line, length);
    const uint32_t alignment = bytes == 128 ? 64 : bytes;
    if (bytes == 0) break;
    end = (end + alignment - 1) / alignment * alignment;
    function->offsets[function->parameter_count++] = end;
    end += bytes;
    line += length + (line[length] == '\n');
  }
  if (end == function->how.parameter_bytes) return TW_BUNDLE_OK;
  return tw_bundle_fail(TW_BUNDLE_DAMAGED,
                        "kernel %s: its recipe does not fit its %u bytes of parameters",
                        kernel->entry, (unsigned)function->how.parameter_bytes);
}

static void tw_bundle_forget(tw_bundle_function* function) {
  free(function->offsets);
  free(function->driver);
  memset(function, 0, sizeof *function);
}

static tw_bundle_status tw_bundle_take(const tw_bundle_driver* driver,
                                       const tw_bundle_kernel* kernel,
                                       tw_bundle_function* function) {
  enum { kMaxDynamicSmem = 8, kNonPortableCluster = 14, kPortableCluster = 8 };
  const tw_bundle_record* const how = kernel->record;
  tw_bundle_status status = tw_bundle_call(
      driver, driver->load(&function->module, kernel->code, 0, NULL, NULL), "cuModuleLoadDataEx");
  if (status == TW_BUNDLE_OK)
    status = tw_bundle_call(driver,
                            driver->function(&function->function, function->module, kernel->entry),
                            "cuModuleGetFunction");
  if (status == TW_BUNDLE_OK && how->dynamic_smem_bytes > 48u * 1024u)
    status = tw_bundle_call(
        driver,
        driver->set_attribute(function->function, kMaxDynamicSmem, (int)how->dynamic_smem_bytes),
        "cuFuncSetAttribute");
  if (status == TW_BUNDLE_OK &&
      how->cluster[0] * how->cluster[1] * how->cluster[2] > kPortableCluster)
    status =
        tw_bundle_call(driver, driver->set_attribute(function->function, kNonPortableCluster, 1),
                       "cuFuncSetAttribute");
  if (status != TW_BUNDLE_OK && function->module != NULL) driver->unload(function->module);
  return status;
}

TW_BUNDLE_API tw_bundle_status tw_bundle_load(const tw_bundle_kernel* kernel,
                                              tw_bundle_function* function) {
  tw_bundle_status status;
  void* library;
  if (kernel == NULL || function == NULL)
    return tw_bundle_fail(TW_BUNDLE_ARGUMENT, "tw_bundle_load: a pointer is null");
  memset(function, 0, sizeof *function);
  function->driver = (tw_bundle_driver*)calloc(1, sizeof *function->driver);
  if (function->driver == NULL) return tw_bundle_fail(TW_BUNDLE_MEMORY, "no memory for a kernel");
  function->how = *kernel->record;
  status = tw_bundle_place(kernel, function);
  if (status == TW_BUNDLE_OK) status = tw_bundle_open_driver(&library, function->driver);
  if (status == TW_BUNDLE_OK) status = tw_bundle_take(function->driver, kernel, function);
  if (status != TW_BUNDLE_OK) tw_bundle_forget(function);
  return status;
}

TW_BUNDLE_API tw_bundle_status tw_bundle_unload(tw_bundle_function* function) {
  tw_bundle_status status;
  if (function == NULL || function->module == NULL)
    return tw_bundle_fail(TW_BUNDLE_ARGUMENT, "tw_bundle_unload: nothing is loaded");
  status = tw_bundle_call(function->driver, function->driver->unload(function->module),
                          "cuModuleUnload");
  tw_bundle_forget(function);
  return status;
}

/* CU_LAUNCH_ATTRIBUTE_COOPERATIVE, _CLUSTER_DIMENSION, _PROGRAMMATIC_STREAM_SERIALIZATION. */
static uint32_t tw_bundle_attributes(const tw_bundle_record* how, tw_bundle_attribute* to) {
  uint32_t count = 0;
  if (how->flags & TW_BUNDLE_COOPERATIVE) {
    to[count].id = 2;
    to[count++].value.flag = 1;
  }
  if (how->cluster[0] * how->cluster[1] * how->cluster[2] > 1) {
    to[count].id = 4;
    memcpy(to[count++].value.cluster, how->cluster, sizeof how->cluster);
  }
  if (how->flags & TW_BUNDLE_DEPENDENT) {
    to[count].id = 6;
    to[count++].value.flag = 1;
  }
  return count;
}

TW_BUNDLE_API tw_bundle_status tw_bundle_launch(const tw_bundle_function* function,
                                                const uint32_t grid[3], const void* parameters,
                                                size_t parameter_bytes, void* stream) {
  enum { kParametersEnd = 0, kParameters = 1, kParameterBytes = 2 }; /* CU_LAUNCH_PARAM_* */
  tw_bundle_config config;
  tw_bundle_attribute attributes[3];
  void* extra[5];
  void* each[512]; /* 4096 bytes of parameters, the limit of older targets, are no more than that */
  uint32_t i;
  int result;
  if (function == NULL || function->function == NULL || grid == NULL || grid[0] == 0 ||
      grid[1] == 0 || grid[2] == 0)
    return tw_bundle_fail(TW_BUNDLE_ARGUMENT,
                          "tw_bundle_launch: nothing is loaded, or the grid has no blocks");
  if (parameter_bytes != function->how.parameter_bytes ||
      function->parameter_count > sizeof each / sizeof each[0])
    return tw_bundle_fail(TW_BUNDLE_ARGUMENT,
                          "tw_bundle_launch: the kernel takes %u bytes of parameters, not %zu",
                          (unsigned)function->how.parameter_bytes, parameter_bytes);
  memset(&config, 0, sizeof config);
  memset(attributes, 0, sizeof attributes);
  memcpy(config.grid, grid, sizeof config.grid);
  memcpy(config.block, function->how.block, sizeof config.block);
  config.dynamic_smem_bytes = (uint32_t)function->how.dynamic_smem_bytes;
  config.stream = stream;
  config.attributes = attributes;
  config.attribute_count = tw_bundle_attributes(&function->how, attributes);
  extra[0] = (void*)(uintptr_t)kParameters;
  extra[1] = (void*)(uintptr_t)parameters;
  extra[2] = (void*)(uintptr_t)kParameterBytes;
  extra[3] = &parameter_bytes;
  extra[4] = (void*)(uintptr_t)kParametersEnd;
  if (function->offsets != NULL) {
    for (i = 0; i < function->parameter_count; ++i)
      each[i] = (void*)((uintptr_t)parameters + function->offsets[i]);
    result = function->driver->launch(&config, function->function, each, NULL);
  } else {
    result = function->driver->launch(&config, function->function, NULL,
                                      parameter_bytes == 0 ? NULL : extra);
  }
  return tw_bundle_call(function->driver, result, "cuLaunchKernelEx");
}

#ifdef __cplusplus
}
#endif
#endif /* TILEWRIGHT_BUNDLE_IMPLEMENTATION */
