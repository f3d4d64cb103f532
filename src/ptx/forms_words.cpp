// SPDX-License-Identifier: Apache-2.0
// The named word lists of patterns, and the words that need more than their row does.
#include "ptx/forms.h"

namespace tilewright::ptx::detail {
namespace {

// clang-format off
constexpr WordSet kSets[] = {
    {"rnd", "rn,rz,rm,rp"},
    {"irnd", "rni,rzi,rmi,rpi"},
    {"int", "u16,u32,u64,s16,s32,s64"},
    {"ucmp", "eq,ne,lt,le,gt,ge,lo,ls,hi,hs"},
    {"scmp", "eq,ne,lt,le,gt,ge"},
    {"fcmp", "eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan"},
    {"bool", "and,or,xor"},
    {"scope", "cta,cluster,gpu,sys"},
    {"sem", "relaxed,acquire,release,acq_rel"},
    {"ld_space", "const,global,local,param,param::entry,param::func,shared,shared::cta,shared::cluster"},
    {"st_space", "global,local,param,param::func,shared,shared::cta,shared::cluster"},
    {"strong_space", "global,shared,shared::cta,shared::cluster"},
    {"atom_space", "global,shared,shared::cta,shared::cluster"},
    {"ld_cop", "ca,cg,cs,lu,cv"},
    {"st_cop", "wb,cg,cs,wt"},
    {"not_global", "const,local,param,param::entry,param::func,shared,shared::cta,shared::cluster"},
    {"l1", "L1::evict_normal,L1::evict_unchanged,L1::evict_first,L1::evict_last,L1::no_allocate"},
    {"l2", "L2::evict_normal,L2::evict_first,L2::evict_last"},
    {"l2_size", "L2::64B,L2::128B,L2::256B"},
    {"narrow", "b8,b16,b32,u8,u16,u32,s8,s16,s32,f32"},
    {"wide4", "b64,u64,s64,f64"},
    {"ldst", "b8,b16,b32,b64,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64"},
    {"cta_group", "cta_group::1,cta_group::2"},
    {"collector_a", "collector::a::fill,collector::a::use,collector::a::lastuse,collector::a::discard"},
    {"collector_b", "collector::b0::fill,collector::b0::use,collector::b0::lastuse,collector::b0::discard,collector::b1::fill,collector::b1::use,collector::b1::lastuse,collector::b1::discard,collector::b2::fill,collector::b2::use,collector::b2::lastuse,collector::b2::discard,collector::b3::fill,collector::b3::use,collector::b3::lastuse,collector::b3::discard"},
    {"f8f6f4", "e4m3,e5m2,e3m2,e2m3,e2m1"},
    {"dim", "1d,2d,3d,4d,5d"},
    {"wgmma8", "m64n8k8,m64n16k8,m64n24k8,m64n32k8,m64n40k8,m64n48k8,m64n56k8,m64n64k8,m64n72k8,m64n80k8,m64n88k8,m64n96k8,m64n104k8,m64n112k8,m64n120k8,m64n128k8,m64n136k8,m64n144k8,m64n152k8,m64n160k8,m64n168k8,m64n176k8,m64n184k8,m64n192k8,m64n200k8,m64n208k8,m64n216k8,m64n224k8,m64n232k8,m64n240k8,m64n248k8,m64n256k8"},
    {"wgmma16", "m64n8k16,m64n16k16,m64n24k16,m64n32k16,m64n40k16,m64n48k16,m64n56k16,m64n64k16,m64n72k16,m64n80k16,m64n88k16,m64n96k16,m64n104k16,m64n112k16,m64n120k16,m64n128k16,m64n136k16,m64n144k16,m64n152k16,m64n160k16,m64n168k16,m64n176k16,m64n184k16,m64n192k16,m64n200k16,m64n208k16,m64n216k16,m64n224k16,m64n232k16,m64n240k16,m64n248k16,m64n256k16"},
    {"wgmma32", "m64n8k32,m64n16k32,m64n24k32,m64n32k32,m64n40k32,m64n48k32,m64n56k32,m64n64k32,m64n72k32,m64n80k32,m64n88k32,m64n96k32,m64n104k32,m64n112k32,m64n120k32,m64n128k32,m64n136k32,m64n144k32,m64n152k32,m64n160k32,m64n168k32,m64n176k32,m64n184k32,m64n192k32,m64n200k32,m64n208k32,m64n216k32,m64n224k32,m64n232k32,m64n240k32,m64n248k32,m64n256k32"},
    {"wgmma64", "m64n8k64,m64n16k64,m64n24k64,m64n32k64,m64n40k64,m64n48k64,m64n56k64,m64n64k64,m64n72k64,m64n80k64,m64n88k64,m64n96k64,m64n104k64,m64n112k64,m64n120k64,m64n128k64,m64n136k64,m64n144k64,m64n152k64,m64n160k64,m64n168k64,m64n176k64,m64n184k64,m64n192k64,m64n200k64,m64n208k64,m64n216k64,m64n224k64,m64n232k64,m64n240k64,m64n248k64,m64n256k64"},
    {"wgmma32i", "m64n8k32,m64n16k32,m64n24k32,m64n32k32,m64n48k32,m64n64k32,m64n80k32,m64n96k32,m64n112k32,m64n128k32,m64n144k32,m64n160k32,m64n176k32,m64n192k32,m64n208k32,m64n224k32,m64n240k32,m64n256k32"},
    {"wgmma64i", "m64n8k64,m64n16k64,m64n24k64,m64n32k64,m64n48k64,m64n64k64,m64n80k64,m64n96k64,m64n112k64,m64n128k64,m64n144k64,m64n160k64,m64n176k64,m64n192k64,m64n208k64,m64n224k64,m64n240k64,m64n256k64"},
    {"wgmma256", "m64n8k256,m64n16k256,m64n24k256,m64n32k256,m64n48k256,m64n64k256,m64n80k256,m64n96k256,m64n112k256,m64n128k256,m64n144k256,m64n160k256,m64n176k256,m64n192k256,m64n208k256,m64n224k256,m64n240k256,m64n256k256"},
};

constexpr Conflict kConflicts[] = {
    // Cache control is for global memory, and one kind of it at a time.
    {"ld", "<l1>", "<ld_cop>"},
    {"st", "<l1>", "<st_cop>"},
    {"ld", "<l1>", "<not_global>"},
    {"st", "<l1>", "<not_global>"},
    {"ld", "<l2_size>", "<not_global>"},
    {"ld", "L2::cache_hint", "<not_global>"},
    {"st", "L2::cache_hint", "<not_global>"},
    {"atom", "L2::cache_hint", "<not_global>"},
    {"red", "L2::cache_hint", "<not_global>"},
};

constexpr WordRequires kWords[] = {
    {"", "cluster", {{7, 8}, "sm_90+"}},
    {"", "shared::cluster", {{7, 8}, "sm_90+"}},
    {"", "shared::cta", {{7, 8}, "sm_50+"}},
    {"", "param::entry", {{8, 3}, "sm_50+"}},
    {"", "param::func", {{8, 3}, "sm_50+"}},
    {"", "L2::cache_hint", {{7, 4}, "sm_80+"}},
    {"", "L2::64B", {{7, 4}, "sm_75+"}},
    {"", "L2::128B", {{7, 4}, "sm_75+"}},
    {"", "L2::256B", {{7, 4}, "sm_80+"}},
    {"ld", "L1::evict_normal", {{7, 4}, "sm_70+"}},
    {"ld", "L1::evict_unchanged", {{7, 4}, "sm_70+"}},
    {"ld", "L1::evict_first", {{7, 4}, "sm_70+"}},
    {"ld", "L1::evict_last", {{7, 4}, "sm_70+"}},
    {"ld", "L1::no_allocate", {{7, 4}, "sm_70+"}},
    {"st", "L1::evict_normal", {{7, 4}, "sm_70+"}},
    {"st", "L1::evict_unchanged", {{7, 4}, "sm_70+"}},
    {"st", "L1::evict_first", {{7, 4}, "sm_70+"}},
    {"st", "L1::evict_last", {{7, 4}, "sm_70+"}},
    {"st", "L1::no_allocate", {{7, 4}, "sm_70+"}},
    {"ld", "L2::evict_normal", {{8, 8}, "sm_100+"}},
    {"ld", "L2::evict_first", {{8, 8}, "sm_100+"}},
    {"ld", "L2::evict_last", {{8, 8}, "sm_100+"}},
    {"st", "L2::evict_normal", {{8, 8}, "sm_100+"}},
    {"st", "L2::evict_first", {{8, 8}, "sm_100+"}},
    {"st", "L2::evict_last", {{8, 8}, "sm_100+"}},
    {"mbarrier", "release", {{8, 0}, "sm_80+"}},
    {"mbarrier", "acquire", {{8, 0}, "sm_80+"}},
    {"barrier", "release", {{8, 0}, "sm_90+"}},
    {"barrier", "relaxed", {{8, 0}, "sm_90+"}},
    {"barrier", "acquire", {{8, 0}, "sm_90+"}},
    {"cvta", "param", {{7, 7}, "sm_70+"}},
    {"isspacep", "param", {{7, 7}, "sm_70+"}},
    {"min", "NaN", {{7, 0}, "sm_80+"}},
    {"max", "NaN", {{7, 0}, "sm_80+"}},
    {"bar", "cta", {{7, 8}, "sm_50+"}},
    {"barrier", "cta", {{7, 8}, "sm_50+"}},
};
constexpr OperandRequires kOperands[] = {
    {"min", "f32", "", 3, Type::none, {{8, 8}, "sm_100+"}},
    {"max", "f32", "", 3, Type::none, {{8, 8}, "sm_100+"}},
    {"mbarrier", "arrive", "noComplete", 2, Type::none, {{7, 8}, "sm_90+"}},
    {"mbarrier", "arrive_drop", "noComplete", 2, Type::none, {{7, 8}, "sm_90+"}},
    {"cp", "async", "bulk", 3, Type::pred, {{7, 5}, "sm_80+"}},
};
// clang-format on

}  // namespace

std::span<const WordSet> word_sets() { return kSets; }
std::span<const Conflict> conflicts() { return kConflicts; }
std::span<const WordRequires> word_requirements() { return kWords; }
std::span<const OperandRequires> operand_requirements() { return kOperands; }

}  // namespace tilewright::ptx::detail
