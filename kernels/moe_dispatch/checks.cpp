// SPDX-License-Identifier: Apache-2.0
// The checks of moe_dispatch: types, shapes, sizes, memory.
#include "kernels/moe_dispatch/checks.h"

#include "kernels/moe_dispatch/limits.h"

#include <utility>
#include <vector>

namespace tilewright {
namespace {

constexpr std::int64_t kMaxChoicesOfAToken = 128;
constexpr std::int64_t kMaxBlock = 1024;

void check_range(const char* what, std::int64_t value, std::int64_t least, std::int64_t most,
                 const rows::Caller& caller) {
  if (value >= least && value <= most) return;
  caller.refuse(std::string(what) + "=" + std::to_string(value) + "; it must be " +
                std::to_string(least) + " to " + std::to_string(most));
}

struct Checks {
  const MoeDispatchTensors& t;
  const MoeDispatchOptions& options;
  rows::Caller caller;
  std::int64_t experts, least_rows;

  [[noreturn]] void fail(const std::string& what) const { caller.refuse(what); }

  void copied(const View& view, const char* which) const {
    int width = bits(view.type);
    if (width != 8 && width != 16 && width != 32) {
      fail(std::string(which) + " has elements of " + std::to_string(width) +
           " bits; they must have 8, 16 or 32");
    }
    if (view.rank != 2)
      fail(std::string(which) + " is " + to_string(view) + "; it must have two modes");
  }

  void rows_of(const View& view, const char* which) const {
    copied(view, which);
    std::string what = std::string(which) + " is " + to_string(view);
    if (view.shape[1] == 0) fail(what + "; rows must have elements");
    if (view.shape[1] > 1 && view.stride[1] != 1) fail(what + "; its last stride must be 1");
    if (view.shape[0] > 1 && view.stride[0] < view.shape[1])
      fail(what + "; its rows must not overlap");
  }

  void choices() const {
    std::string what = "ids is " + to_string(t.ids);
    if (t.ids.type != s32 || t.ids.rank != 2) fail(what + "; it must be s32[T,K]");
    if (t.ids.shape[0] != t.x.shape[0])
      fail(what + " and x " + to_string(t.x) + "; T must be equal");
    std::int64_t k = t.ids.shape[1];
    if (k < 1 || k > kMaxChoicesOfAToken)
      fail(what + "; K must be 1 to " + std::to_string(kMaxChoicesOfAToken));
    if (k > 1 && t.ids.stride[1] != 1) fail(what + "; its last stride must be 1");
    if (size(t.ids) > kMaxDispatchChoices)
      fail(what + "; it may have " + std::to_string(kMaxDispatchChoices) + " elements at most");
    bool fits =
        options.variant != DispatchVariant::replicated || size(t.ids) <= kMaxReplicatedChoices;
    if (!fits) {
      fail(what + "; variant=replicated takes " + std::to_string(kMaxReplicatedChoices) +
           " elements at most");
    }
  }

  void permuted(const View& in, const char* in_name, const View& out, const char* out_name) const {
    std::string what = std::string(out_name) + " is " + to_string(out);
    if (out.type != in.type || out.shape[1] != in.shape[1]) {
      fail(what + " and " + in_name + " " + to_string(in) +
           "; types and lengths of rows must be equal");
    }
    if (out.shape[0] != t.x_perm.shape[0])
      fail(what + " and x_perm " + to_string(t.x_perm) + "; M must be equal");
    if (out.shape[0] < least_rows || out.shape[0] > kMaxDispatchRows) {
      fail(what + "; it must have at least the " + std::to_string(least_rows) +
           " rows that the choices and their padding can take, and at most " +
           std::to_string(kMaxDispatchRows));
    }
  }

  void scales() const {
    if (t.scales.has_value() != t.scales_perm.has_value()) {
      fail(std::string(t.scales ? "scales" : "scales_perm") + " is given without " +
           (t.scales ? "scales_perm" : "scales"));
    }
    if (!t.scales) return;
    copied(*t.scales, "scales");
    copied(*t.scales_perm, "scales_perm");
    if (t.scales->shape[0] != t.x.shape[0])
      fail("scales is " + to_string(*t.scales) + " and x " + to_string(t.x) + "; T must be equal");
    permuted(*t.scales, "scales", *t.scales_perm, "scales_perm");
  }

  void vector(const View& view, const char* which, std::int64_t elems) const {
    if (view.type != s32)
      fail(std::string(which) + " has type " + std::string(name(view.type)) + "; it must be s32");
    rows::check_vector(view, which, elems, caller);
  }

  void vectors() const {
    vector(t.counts, "counts", experts);
    vector(t.offsets, "offsets", experts + 1);
    vector(t.slot, "slot", size(t.ids));
    vector(t.total_rows, "total_rows", 1);
    std::int64_t rows = t.x_perm.shape[0];
    if (t.sorted_token_ids) vector(*t.sorted_token_ids, "sorted_token_ids", rows);
    if (t.block_expert) vector(*t.block_expert, "block_expert", rows / options.block);
  }

  void memory(const Workspace& workspace) const {
    using Named = std::pair<const View*, const char*>;
    std::vector<Named> inputs{{&t.x, "x"}, {&t.ids, "ids"}};
    std::vector<Named> outputs{{&t.x_perm, "x_perm"},
                               {&t.counts, "counts"},
                               {&t.offsets, "offsets"},
                               {&t.slot, "slot"},
                               {&t.total_rows, "total_rows"}};
    auto add = [](std::vector<Named>& list, const std::optional<View>& view, const char* which) {
      if (view) list.emplace_back(&*view, which);
    };
    add(inputs, t.scales, "scales");
    add(outputs, t.scales_perm, "scales_perm");
    add(outputs, t.sorted_token_ids, "sorted_token_ids");
    add(outputs, t.block_expert, "block_expert");
    auto apart = [&](const Named& a, const Named& b) {
      rows::check_apart(*a.first, a.second, *b.first, b.second, caller);
    };
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      for (const Named& input : inputs)
        apart(input, outputs[i]);
      for (std::size_t other = 0; other < i; ++other)
        apart(outputs[other], outputs[i]);
    }
    std::int64_t needed = moe_dispatch_workspace_bytes(options);
    if (workspace.size_bytes < needed) {
      fail("the workspace has " + std::to_string(workspace.size_bytes) + " bytes; it needs " +
           std::to_string(needed) + ", zeroed once");
    }
    if (workspace.address % 16 != 0) fail("the workspace's address must be a multiple of 16");
  }
};

}  // namespace

std::int64_t local_experts(const MoeDispatchOptions& options, SourceLoc at) {
  rows::Caller caller{"moe_dispatch", at};
  check_range("experts", options.experts, 1, kMaxDispatchExpertsOfAll, caller);
  check_range("first_expert", options.first_expert, 0, options.experts - 1, caller);
  std::int64_t most = options.experts - options.first_expert;
  std::int64_t local = options.local_experts < 0 ? most : options.local_experts;
  check_range("local_experts", local, 1, most, caller);
  check_range("the experts of this rank", local, 1, kMaxDispatchExperts, caller);
  check_range("block", options.block, 1, kMaxBlock, caller);
  return local;
}

void check_moe_dispatch(const MoeDispatchTensors& tensors, const MoeDispatchOptions& options,
                        const Workspace& workspace, const rows::Caller& caller) {
  std::int64_t experts = local_experts(options, caller.at);
  std::int64_t least_rows = moe_dispatch_rows(size(tensors.ids), options);
  Checks checks{tensors, options, caller, experts, least_rows};
  checks.rows_of(tensors.x, "x");
  checks.choices();
  checks.rows_of(tensors.x_perm, "x_perm");
  checks.permuted(tensors.x, "x", tensors.x_perm, "x_perm");
  checks.scales();
  checks.vectors();
  checks.memory(workspace);
}

}  // namespace tilewright
