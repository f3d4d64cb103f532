// SPDX-License-Identifier: Apache-2.0
// Rows of mbarriers, asynchronous copies, tensor copies and tensor maps.
#include "ptx/forms.h"

namespace tilewright::ptx::detail {
namespace {

// clang-format off
constexpr Form kAsyncRows[] = {
    // cp.async.
    {"cp", ".async .ca .{shared,shared::cta} .global .L2::cache_hint? .<l2_size>?", "[a], [b], #c=4|8|16, s:u32/pred?, h:b64?L2::cache_hint", kSm80, Effect::cp_async},
    {"cp", ".async .cg .{shared,shared::cta} .global .L2::cache_hint? .<l2_size>?", "[a], [b], #c=16..16, s:u32/pred?, h:b64?L2::cache_hint", kSm80, Effect::cp_async},
    {"cp", ".async .commit_group", "", kSm80, Effect::cp_async_group},
    {"cp", ".async .wait_group", "#a", kSm80, Effect::cp_async_group},
    {"cp", ".async .wait_all", "", kSm80, Effect::cp_async_group},
    {"cp", ".async .mbarrier .arrive .noinc? .{shared,shared::cta}? .b64", "[a]", kSm80, Effect::cp_async_mbarrier},

    // mbarrier.
    {"mbarrier", ".init .{shared,shared::cta}? .b64", "[a], b:u32", kSm80, Effect::mbarrier},
    {"mbarrier", ".inval .{shared,shared::cta}? .b64", "[a]", kSm80, Effect::mbarrier},
    {"mbarrier", ".{expect_tx,complete_tx} .relaxed? .{cta,cluster}+ .{shared,shared::cta,shared::cluster}? .b64", "[a], b:u32", kSm90v80, Effect::mbarrier},
    {"mbarrier", ".{arrive,arrive_drop} .release? .{cta,cluster}+ .{shared,shared::cta}? .b64", "d_, [a], b:u32?", kSm80, Effect::mbarrier},
    {"mbarrier", ".{arrive,arrive_drop} .release? .{cta,cluster}+ .shared::cluster .b64", "_, [a], b:u32?", kSm90v80, Effect::mbarrier},
    {"mbarrier", ".{arrive,arrive_drop} .expect_tx .release? .{cta,cluster}+ .{shared,shared::cta}? .b64", "d_, [a], b:u32", kSm90v80, Effect::mbarrier},
    {"mbarrier", ".{arrive,arrive_drop} .expect_tx .release? .{cta,cluster}+ .shared::cluster .b64", "_, [a], b:u32", kSm90v80, Effect::mbarrier},
    {"mbarrier", ".{arrive,arrive_drop} .noComplete .release? .cta+ .{shared,shared::cta}? .b64", "d, [a], b:u32", kSm80, Effect::mbarrier},
    {"mbarrier", ".{arrive,arrive_drop} .relaxed .{cta,cluster} .{shared,shared::cta}? .b64", "d_, [a], b:u32?", kSm90v86, Effect::mbarrier},
    {"mbarrier", ".{arrive,arrive_drop} .relaxed .{cta,cluster} .shared::cluster .b64", "_, [a], b:u32?", kSm90v86, Effect::mbarrier},
    {"mbarrier", ".{arrive,arrive_drop} .expect_tx .relaxed .{cta,cluster} .{shared,shared::cta}? .b64", "d_, [a], b:u32", kSm90v86, Effect::mbarrier},
    {"mbarrier", ".{arrive,arrive_drop} .expect_tx .relaxed .{cta,cluster} .shared::cluster .b64", "_, [a], b:u32", kSm90v86, Effect::mbarrier},
    {"mbarrier", ".test_wait .acquire? .{cta,cluster}+ .{shared,shared::cta}? .b64", "p:pred, [a], s:b64", kSm80, Effect::mbarrier},
    {"mbarrier", ".test_wait .parity .acquire? .{cta,cluster}+ .{shared,shared::cta}? .b64", "p:pred, [a], b:u32", since(7, 1, "sm_80+"), Effect::mbarrier},
    {"mbarrier", ".try_wait .acquire? .{cta,cluster}+ .{shared,shared::cta}? .b64", "p:pred, [a], s:b64, t:u32?", kSm90, Effect::mbarrier},
    {"mbarrier", ".try_wait .parity .acquire? .{cta,cluster}+ .{shared,shared::cta}? .b64", "p:pred, [a], b:u32, t:u32?", kSm90, Effect::mbarrier},
    {"mbarrier", ".test_wait .relaxed .{cta,cluster} .{shared,shared::cta}? .b64", "p:pred, [a], s:b64", kSm90v86, Effect::mbarrier},
    {"mbarrier", ".test_wait .parity .relaxed .{cta,cluster} .{shared,shared::cta}? .b64", "p:pred, [a], b:u32", kSm90v86, Effect::mbarrier},
    {"mbarrier", ".try_wait .relaxed .{cta,cluster} .{shared,shared::cta}? .b64", "p:pred, [a], s:b64, t:u32?", kSm90v86, Effect::mbarrier},
    {"mbarrier", ".try_wait .parity .relaxed .{cta,cluster} .{shared,shared::cta}? .b64", "p:pred, [a], b:u32, t:u32?", kSm90v86, Effect::mbarrier},
    {"mbarrier", ".pending_count .b64", "d:u32, %a", kSm80, Effect::mbarrier},

    // Bulk copies.
    {"cp", ".async .bulk .shared::cluster .global .mbarrier::complete_tx::bytes .multicast::cluster? .L2::cache_hint?", "[a], [b], c:u32, [m], k:b16?multicast::cluster, h:b64?L2::cache_hint", kSm90v80, Effect::bulk_copy},
    {"cp", ".async .bulk .shared::cta .global .mbarrier::complete_tx::bytes .L2::cache_hint?", "[a], [b], c:u32, [m], h:b64?L2::cache_hint", kSm90v86, Effect::bulk_copy},
    {"cp", ".async .bulk .shared::cluster .shared::cta .mbarrier::complete_tx::bytes", "[a], [b], c:u32, [m]", kSm90v80, Effect::bulk_copy},
    {"cp", ".async .bulk .global .shared::cta .bulk_group .L2::cache_hint?", "[a], [b], c:u32, h:b64?L2::cache_hint", kSm90v80, Effect::bulk_copy},
    {"cp", ".async .bulk .global .shared::cta .bulk_group .L2::cache_hint? .cp_mask", "[a], [b], c:u32, h:b64?L2::cache_hint, k:b16", kSm100, Effect::none},
    {"cp", ".async .bulk .prefetch .L2 .global .L2::cache_hint?", "[a], c:u32, h:b64?L2::cache_hint", kSm90v80, Effect::bulk_copy},
    {"cp", ".reduce .async .bulk .shared::cluster .shared::cta .mbarrier::complete_tx::bytes .{and,or,xor} .b32", "[a], [b], c:u32, [m]", kSm90v80, Effect::bulk_reduce},
    {"cp", ".reduce .async .bulk .shared::cluster .shared::cta .mbarrier::complete_tx::bytes .{add,min,max} .{u32,s32}", "[a], [b], c:u32, [m]", kSm90v80, Effect::bulk_reduce},
    {"cp", ".reduce .async .bulk .shared::cluster .shared::cta .mbarrier::complete_tx::bytes .{inc,dec} .u32", "[a], [b], c:u32, [m]", kSm90v80, Effect::bulk_reduce},
    {"cp", ".reduce .async .bulk .shared::cluster .shared::cta .mbarrier::complete_tx::bytes .add .u64", "[a], [b], c:u32, [m]", kSm90v80, Effect::bulk_reduce},
    {"cp", ".reduce .async .bulk .global .shared::cta .bulk_group .L2::cache_hint? .{and,or,xor} .{b32,b64}", "[a], [b], c:u32, h:b64?L2::cache_hint", kSm90v80, Effect::bulk_reduce},
    {"cp", ".reduce .async .bulk .global .shared::cta .bulk_group .L2::cache_hint? .add .{u32,s32,u64,f32,f64}", "[a], [b], c:u32, h:b64?L2::cache_hint", kSm90v80, Effect::bulk_reduce},
    {"cp", ".reduce .async .bulk .global .shared::cta .bulk_group .L2::cache_hint? .{inc,dec} .u32", "[a], [b], c:u32, h:b64?L2::cache_hint", kSm90v80, Effect::bulk_reduce},
    {"cp", ".reduce .async .bulk .global .shared::cta .bulk_group .L2::cache_hint? .{min,max} .{u32,s32,u64,s64,f16,bf16}", "[a], [b], c:u32, h:b64?L2::cache_hint", kSm90v80, Effect::bulk_reduce},
    {"cp", ".reduce .async .bulk .global .shared::cta .bulk_group .L2::cache_hint? .add .noftz .{f16,bf16}", "[a], [b], c:u32, h:b64?L2::cache_hint", kSm90v80, Effect::bulk_reduce},
    {"cp", ".async .bulk .commit_group", "", kSm90v80, Effect::bulk_group},
    {"cp", ".async .bulk .wait_group .read?", "#a", kSm90v80, Effect::bulk_group},

    // Tensor copies.
    {"cp", ".async .bulk .tensor .<dim> .shared::cluster .global .tile? .mbarrier::complete_tx::bytes .multicast::cluster? .L2::cache_hint?", "[a], [t{dim}], [m], k:b16?multicast::cluster, h:b64?L2::cache_hint", kSm90v80, Effect::tensor_copy},
    {"cp", ".async .bulk .tensor .{3d,4d,5d} .shared::cluster .global .im2col .mbarrier::complete_tx::bytes .multicast::cluster? .L2::cache_hint?", "[a], [t{dim}], [m], i{dim-2}:b16, k:b16?multicast::cluster, h:b64?L2::cache_hint", kSm90v80, Effect::tensor_copy},
    {"cp", ".async .bulk .tensor .<dim> .shared::cta .global .tile? .mbarrier::complete_tx::bytes .L2::cache_hint?", "[a], [t{dim}], [m], h:b64?L2::cache_hint", kSm90v86, Effect::tensor_copy},
    {"cp", ".async .bulk .tensor .{3d,4d,5d} .shared::cta .global .im2col .mbarrier::complete_tx::bytes .L2::cache_hint?", "[a], [t{dim}], [m], i{dim-2}:b16, h:b64?L2::cache_hint", kSm90v86, Effect::tensor_copy},
    {"cp", ".async .bulk .tensor .<dim> .global .shared::cta .tile? .bulk_group .L2::cache_hint?", "[t{dim}], [b], h:b64?L2::cache_hint", kSm90v80, Effect::tensor_copy},
    {"cp", ".async .bulk .tensor .{3d,4d,5d} .global .shared::cta .im2col_no_offs .bulk_group .L2::cache_hint?", "[t{dim}], [b], h:b64?L2::cache_hint", kSm90v80, Effect::tensor_copy},
    {"cp", ".reduce .async .bulk .tensor .<dim> .global .shared::cta .{add,min,max,inc,dec,and,or,xor} .tile? .bulk_group .L2::cache_hint?", "[t{dim}], [b], h:b64?L2::cache_hint", kSm90v80, Effect::tensor_reduce},
    {"cp", ".reduce .async .bulk .tensor .{3d,4d,5d} .global .shared::cta .{add,min,max,inc,dec,and,or,xor} .im2col_no_offs .bulk_group .L2::cache_hint?", "[t{dim}], [b], h:b64?L2::cache_hint", kSm90v80, Effect::tensor_reduce},
    {"cp", ".async .bulk .prefetch .tensor .<dim> .L2 .global .tile? .L2::cache_hint?", "[t{dim}], h:b64?L2::cache_hint", kSm90v80, Effect::tensor_prefetch},
    {"cp", ".async .bulk .prefetch .tensor .{3d,4d,5d} .L2 .global .im2col .L2::cache_hint?", "[t{dim}], i{dim-2}:b16, h:b64?L2::cache_hint", kSm90v80, Effect::tensor_prefetch},

    // Tensor maps.
    {"tensormap", ".replace .tile .global_address .{global,shared::cta}? .b1024 .b64", "[a], b:b64", since(8, 3, "90a,100f,110f,120f"), Effect::tensormap},
    {"tensormap", ".replace .tile .rank .{global,shared::cta}? .b1024 .b32", "[a], b:b32", since(8, 3, "90a,100f,110f,120f"), Effect::tensormap},
    {"tensormap", ".replace .tile .{box_dim,global_dim,element_stride} .{global,shared::cta}? .b1024 .b32", "[a], #o=0..4, b:b32", since(8, 3, "90a,100f,110f,120f"), Effect::tensormap},
    {"tensormap", ".replace .tile .global_stride .{global,shared::cta}? .b1024 .b64", "[a], #o=0..4, b:b64", since(8, 3, "90a,100f,110f,120f"), Effect::tensormap},
    {"tensormap", ".replace .tile .{elemtype,interleave_layout,swizzle_mode,fill_mode} .{global,shared::cta}? .b1024 .b32", "[a], #b", since(8, 3, "90a,100f,110f,120f"), Effect::tensormap},
    {"tensormap", ".replace .tile .swizzle_atomicity .{global,shared::cta}? .b1024 .b32", "[a], #b", since(8, 6, "100f,110f,120f"), Effect::tensormap},
    {"tensormap", ".cp_fenceproxy .global .shared::cta .tensormap::generic .release .<scope> .sync .aligned", "[a], [b], #c=128..128", since(8, 3, "sm_90+"), Effect::tensormap},
};
// clang-format on

}  // namespace

std::span<const Form> async_forms() { return kAsyncRows; }

}  // namespace tilewright::ptx::detail
