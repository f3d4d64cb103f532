// SPDX-License-Identifier: Apache-2.0
// Norm and rotary embedding of the heads of Q and K in one launch: qk_norm, qk_norm_rope and rope.
#pragma once

#include "kernels/reshape_and_cache/cache_pages.h"
#include "kernels/rows/rows.h"
#include "tilewright/operator.h"
#include "tilewright/trace.h"

#include <optional>
#include <string>

namespace tilewright {

enum class RopeStyle : std::uint8_t {
  none,        ///< no rotation
  neox,        ///< element i turns with element i + R / 2
  interleaved  ///< element 2 i turns with element 2 i + 1
};

/// q [T, Hq, D] and k [T, Hk, D], usually parts of packed rows; each has its own strides. The
/// outputs may be the inputs. Pre: positions, which the kernel reads, are less than the table's
/// rows.
template <class T>
struct QkArguments {
  T q;                              ///< bf16, f16 or f32
  T k;                              ///< of q's type
  std::optional<T> q_weight = {};   ///< [D] of q's type or f32; absent: 1
  std::optional<T> k_weight = {};   ///< as q_weight, of its type
  std::optional<T> positions = {};  ///< [T] s32 or s64; negative ones count as 0
  std::optional<T> cos_sin = {};    ///< [P, R]: R / 2 cosines, then R / 2 sines; bf16, f16, f32
  T q_out;                          ///< as q
  T k_out;                          ///< as k
  // Besides, keys as in k_out and values into the pages of a cache: all four or none, but v also
  // for v_out alone; caches of e4m3 and e5m2 as reshape_and_cache writes them.
  std::optional<T> v = {};             ///< [T, Hk, D] of q's type
  std::optional<T> slot_mapping = {};  ///< [T] s32 or s64; as in reshape_and_cache
  std::optional<T> key_cache = {};     ///< of QkOptions::cache_layout; q's type, e4m3 or e5m2
  std::optional<T> value_cache = {};
  std::optional<T> k_scale = {};  ///< [1] or [Hk] f32: divides keys for codes; absent: 1
  std::optional<T> v_scale = {};
  std::optional<T> inv_freq = {};  ///< instead of cos_sin: [R / 2] f32, angles over positions
  std::optional<T> v_out = {};     ///< as v, whose bits are copied; apart from it
};
using QkTensors = QkArguments<View>;

struct QkOptions {
  bool norm = true;  ///< divide each head by its root mean square
  RopeStyle style = RopeStyle::none;
  float eps = 1e-6f;                            ///< finite, at least 0
  float weight_bias = 0.0f;                     ///< added to the weights in f32
  float attention_factor = 1.0f;                ///< of cosines and sines, with inv_freq
  bool round_between = false;                   ///< round to q's type between norm and rotation
  CacheLayout cache_layout = CacheLayout::nhd;  ///< nhd or hnd
};

/// What is on its way before a head's sum begins, besides the head: takes registers.
enum class QkLoads : std::uint8_t {
  free,    ///< what the assembler likes
  early,   ///< weights, and the token's position and slot: few waits for memory one after another
  angles,  ///< the angles, too, which wait for the position
};

/// The specialisation besides the facts of the arguments.
struct QkConfig {
  bool norm = true;
  RopeStyle style = RopeStyle::none;
  bool round_between = false;
  bool has_weight_bias = false;
  bool has_attention_factor = false;  ///< other than 1
  bool wide_index = false;            ///< heads of all tokens are counted in s64
  int q_heads = 0, k_heads = 0;
  int v_heads = 0;  ///< k_heads with v, else 0
  int heads_of_token() const { return q_heads + k_heads + v_heads; }
  int d = 0, rotary = 0;     ///< elements of a head, and how many of them turn
  int vector_elems = 8;      ///< of an access
  int lanes = 8;             ///< threads of a head
  int alignment_bytes = 16;  ///< of every access of q, k and the outputs
  int threads = 128;
  int heads = 1;     ///< that a thread takes part in, of one token: they share weights and angles
  int resident = 0;  ///< blocks that a multiprocessor must hold, which bounds registers; 0: any
  QkLoads loads = QkLoads::free;
  /// A block's heads are all of q or all of k, and of one token: the grid is of parts of a token,
  /// q's first, and of tokens. Not with v.
  bool apart = false;
  friend bool operator==(const QkConfig&, const QkConfig&) = default;
};
std::string to_string(const QkConfig& config);

/// Tuned: lanes, threads, heads, resident and loads; and how few tokens are loaded. The rest of
/// `config` is set.
void choose_threads(std::string_view op, const DeviceProperties& device, const QkTensors& tensors,
                    bool codes, QkConfig& config);

/// Checks v, v_out and the cache's tensors if there are any, and makes the caches paged().
void check_values(QkTensors& tensors, CacheLayout layout, const rows::Caller& caller);

struct QkPlan {
  std::string op;
  QkConfig config;
  QkOptions options;
  QkTensors tensors;  ///< caches paged()
  QkArguments<TensorArg> args;
  LaunchConfig launch;

  std::string key() const;
  Traced trace(ptx::Target target) const;
  Parameters parameters() const;
};

/// Checks the arguments and chooses the configuration. `op` begins messages and names the kernel.
QkPlan plan_qk(std::string_view op, const DeviceProperties& device, const QkTensors& tensors,
               const QkOptions& options, SourceLoc at = SourceLoc::here());
/// Runs on the stream. Allocates nothing on the device and does not wait.
void launch_qk(const Stream& stream, const QkPlan& plan, SourceLoc at = SourceLoc::here());

/// plan_qk() and launch_qk() in one. What the operator's name says counts: options.norm does not,
/// nor options.style of qk_norm; the others turn, by neox where style is none.
void qk_norm(const Stream& stream, const QkTensors& tensors, const QkOptions& options = {},
             SourceLoc at = SourceLoc::here());
void qk_norm_rope(const Stream& stream, const QkTensors& tensors, const QkOptions& options = {},
                  SourceLoc at = SourceLoc::here());
void rope(const Stream& stream, const QkTensors& tensors, const QkOptions& options = {},
          SourceLoc at = SourceLoc::here());

const Operator& qk_norm_operator();
const Operator& qk_norm_rope_operator();
const Operator& rope_operator();

}  // namespace tilewright
