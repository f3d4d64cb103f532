// SPDX-License-Identifier: Apache-2.0
// The whole library: every public header, under the part that it belongs to (a test reads this).
#pragma once

// base
#include "tilewright/error.h"

// layout
#include "tilewright/int.h"
#include "tilewright/int_tuple.h"
#include "tilewright/layout.h"
#include "tilewright/layout_eval.h"
#include "tilewright/layout_picture.h"
#include "tilewright/layout_text.h"
#include "tilewright/swizzle.h"

// ptx
#include "tilewright/form.h"
#include "tilewright/module.h"
#include "tilewright/number_formats.h"
#include "tilewright/target.h"
#include "tilewright/tensor_map.h"
#include "tilewright/type.h"

// lang
#include "tilewright/atomic.h"
#include "tilewright/bit.h"
#include "tilewright/bulk_copy.h"
#include "tilewright/cache_policy.h"
#include "tilewright/call_text.h"
#include "tilewright/cluster.h"
#include "tilewright/control.h"
#include "tilewright/copy.h"
#include "tilewright/debugging.h"
#include "tilewright/fragment.h"
#include "tilewright/function.h"
#include "tilewright/grid_barrier.h"
#include "tilewright/inline_ptx.h"
#include "tilewright/loaded_together.h"
#include "tilewright/math.h"
#include "tilewright/math_functions.h"
#include "tilewright/matrix_tile.h"
#include "tilewright/mbarrier.h"
#include "tilewright/mma.h"
#include "tilewright/multimem.h"
#include "tilewright/ordered.h"
#include "tilewright/packed.h"
#include "tilewright/pipeline.h"
#include "tilewright/sync.h"
#include "tilewright/tensor.h"
#include "tilewright/tensor_map_arg.h"
#include "tilewright/thread.h"
#include "tilewright/tile_scheduler.h"
#include "tilewright/tiled_mma.h"
#include "tilewright/tma.h"
#include "tilewright/trace.h"
#include "tilewright/ue8m0.h"
#include "tilewright/value.h"
#include "tilewright/view.h"
#include "tilewright/warp.h"
#include "tilewright/wgmma.h"

// emu
#include "tilewright/diagnostic.h"
#include "tilewright/emulator.h"
#include "tilewright/replay.h"

// runtime
#include "tilewright/array.h"
#include "tilewright/assembler.h"
#include "tilewright/buffer.h"
#include "tilewright/bundle.h"
#include "tilewright/cache.h"
#include "tilewright/compile.h"
#include "tilewright/dependent_launches.h"
#include "tilewright/device.h"
#include "tilewright/graph.h"
#include "tilewright/kernel.h"
#include "tilewright/launch.h"
#include "tilewright/link_input.h"
#include "tilewright/offline_compiler.h"
#include "tilewright/operator.h"
#include "tilewright/peers.h"
#include "tilewright/stream.h"
#include "tilewright/written.h"

// tune
#include "tilewright/tune.h"
#include "tilewright/tune_record.h"
#include "tilewright/tune_search.h"

// io
#include "tilewright/case_file.h"
#include "tilewright/npy.h"
#include "tilewright/npz.h"
#include "tilewright/safetensors.h"

// kernels
#include "tilewright/operators.h"
