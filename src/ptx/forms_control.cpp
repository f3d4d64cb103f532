// SPDX-License-Identifier: Apache-2.0
// Rows of control flow, barriers, fences and warp-wide instructions.
#include "ptx/forms.h"

namespace tilewright::ptx::detail {
namespace {

constexpr std::array<Requires, 2> kBarrier = since(6, 0, "sm_50+");
constexpr std::array<Requires, 2> kWarp = since(6, 0, "sm_50+");

// clang-format off
constexpr Form kControlRows[] = {
    {"bra", ".uni?", "label", kAny, Effect::branch},
    {"brx", ".idx .uni?", "a:u32, label", since(6, 0, "sm_50+"), Effect::branch_indexed},
    {"call", ".uni?", "call", kAny, Effect::call},
    {"ret", ".uni?", "", kAny, Effect::ret},
    {"exit", "", "", kAny, Effect::exit},
    {"trap", "", "", kAny, Effect::trap},
    {"brkpt", "", "", kAny, Effect::brkpt},
    {"pmevent", "", "#a=0..15", kAny, Effect::none},
    {"pmevent", ".mask", "#a=0..65535", kAny, Effect::none},
    {"nanosleep", ".u32", "a", since(6, 3, "sm_70+"), Effect::nanosleep},

    // Block barriers. barrier without .aligned may be divergent; .cta names came with ISA 7.8.
    {"bar", ".cta? .sync", "a:u32=0..15, b:u32=32..1024/32?", kAny, Effect::barrier},
    {"bar", ".cta? .arrive", "a:u32=0..15, b:u32=32..1024/32", kAny, Effect::barrier},
    {"bar", ".cta? .red .popc .u32", "d, a:u32=0..15, b:u32=32..1024/32?, !c:pred", kAny, Effect::barrier},
    {"bar", ".cta? .red .{and,or} .pred", "p:pred, a:u32=0..15, b:u32=32..1024/32?, !c:pred", kAny, Effect::barrier},
    {"barrier", ".cta? .sync .aligned?", "a:u32=0..15, b:u32=32..1024/32?", kBarrier, Effect::barrier},
    {"barrier", ".cta? .arrive .aligned?", "a:u32=0..15, b:u32=32..1024/32", kBarrier, Effect::barrier},
    {"barrier", ".cta? .red .popc .aligned? .u32", "d, a:u32=0..15, b:u32=32..1024/32?, !c:pred", kBarrier, Effect::barrier},
    {"barrier", ".cta? .red .{and,or} .aligned? .pred", "p:pred, a:u32=0..15, b:u32=32..1024/32?, !c:pred", kBarrier, Effect::barrier},
    {"bar", ".warp .sync", "a:b32", since(6, 0, "sm_50+"), Effect::barrier_warp},
    {"barrier", ".cluster .arrive .{release,relaxed}? .aligned?", "", kSm90, Effect::barrier_cluster},
    {"barrier", ".cluster .wait .acquire? .aligned?", "", kSm90, Effect::barrier_cluster},

    // Fences.
    {"membar", ".{cta,gl,sys}", "", kAny, Effect::fence},
    {"fence", ".{sc,acq_rel,acquire,release}? .<scope>", "", kVolta, Effect::fence},
    {"fence", ".acquire .sync_restrict::shared::cluster .cluster", "", kSm90v86, Effect::fence},
    {"fence", ".release .sync_restrict::shared::cta .cluster", "", kSm90v86, Effect::fence},
    {"fence", ".mbarrier_init .release .cluster", "", kSm90v80, Effect::fence},
    {"fence", ".proxy .alias", "", since(7, 5, "sm_70+"), Effect::fence},
    {"fence", ".proxy .async .{global,shared::cta,shared::cluster}?", "", kSm90v80, Effect::fence},
    {"fence", ".proxy .tensormap::generic .release .<scope>", "", since(8, 3, "sm_90+"), Effect::fence},
    {"fence", ".proxy .tensormap::generic .acquire .<scope>", "[a], #b=128..128", since(8, 3, "sm_90+"), Effect::fence},
    {"fence", ".proxy .async::generic .acquire .sync_restrict::shared::cluster .cluster", "", kSm90v86, Effect::fence},
    {"fence", ".proxy .async::generic .release .sync_restrict::shared::cta .cluster", "", kSm90v86, Effect::fence},

    // Warp-wide.
    {"shfl", ".sync .{up,down,bfly,idx} .b32", "d|p:pred?, a, b:u32, c:u32, m:b32", kWarp, Effect::shuffle},
    {"vote", ".sync .{all,any,uni} .pred", "d, !a, m:b32", kWarp, Effect::vote},
    {"vote", ".sync .ballot .b32", "d, !a:pred, m:b32", kWarp, Effect::vote},
    {"match", ".any .sync .{b32,b64}", "d:b32, a, m:b32", since(6, 0, "sm_70+"), Effect::match},
    {"match", ".all .sync .{b32,b64}", "d:b32|p:pred?, a, m:b32", since(6, 0, "sm_70+"), Effect::match},
    {"activemask", ".b32", "d", since(6, 2, "sm_50+"), Effect::activemask},
    {"redux", ".sync .{add,min,max} .{u32,s32}", "d, a, m:b32", kSm80, Effect::redux},
    {"redux", ".sync .{and,or,xor} .b32", "d, a, m:b32", kSm80, Effect::redux},
    {"redux", ".sync .{min,max} .abs? .NaN? .f32", "d, %a, m:b32", since(8, 6, "100f"), Effect::none},
    {"elect", ".sync", "d:b32_|p:pred, m:b32", kSm90v80, Effect::elect},
    {"griddepcontrol", ".{launch_dependents,wait}", "", kSm90, Effect::griddepcontrol},
    {"setmaxnreg", ".{inc,dec} .sync .aligned .u32", "#a=24..256/8", since(8, 0, "90a,100f,110f,120f"), Effect::setmaxnreg},
};
// clang-format on

}  // namespace

std::span<const Form> control_forms() { return kControlRows; }

}  // namespace tilewright::ptx::detail
