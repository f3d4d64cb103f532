// SPDX-License-Identifier: Apache-2.0
// Every lane-pure opcode: the levels agree, inactive lanes stay, a destination may be a source.
#include "ptx/opcodes_of_row.h"
#include "ptx/semantics_lanes.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <string>

namespace tilewright::ptx::semantics {
namespace {

using ptx::test::for_each_opcode;

template <class Visit>
void for_each_lane_opcode(const Visit& visit) {
  for (std::uint16_t row = 0; row < forms().size(); ++row) {
    if (forms()[row].effect != Effect::lane) continue;
    Opcode opcode;
    opcode.form = row;
    for_each_opcode(row, 0, opcode, [&](const Opcode& full) {
      const std::string text = to_string(full);
      if (resolve(text)) visit(text);
    });
  }
}

/// Often small or special, so that shifts, fields and floats meet their edges.
std::uint64_t random_bits(std::mt19937_64& random) {
  switch (random() % 5) {
    case 0:
      return random() % 70;
    case 1:
      return 0x3f800000'3f800000 ^ (random() & 0x80ff'0000'80ff'0000);
    case 2:
      return 0x7ff0'0000'7f80'0000 | random() % 3;
    default:
      return random();
  }
}
void fill(Execution& run, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int lane = 0; lane < 32; ++lane) {
    for (std::size_t i = 0; i < 5; ++i)
      run.set(i, lane, random_bits(random));
    for (std::size_t i = 0; i < 2; ++i)
      run.set_result(lane, random_bits(random), i);
  }
  run.carry = static_cast<std::uint32_t>(random());
}
/// Doubles that are NaN agree whatever their payload.
bool same(const Execution& a, const Execution& b, int lane, std::size_t i) {
  if (a.result(lane, i) == b.result(lane, i)) return true;
  return a.meaning.dst[i] == Lanes::b64 && std::isnan(std::bit_cast<double>(a.result(lane, i))) &&
         std::isnan(std::bit_cast<double>(b.result(lane, i)));
}

TEST(SemanticsLevels, AgreeAndLeaveInactiveLanes) {
  constexpr std::uint32_t kMask = 0x5a0ff00f;
  for_each_lane_opcode([&](const std::string& opcode) {
    Execution reference(opcode, Isa::generic);
    Execution before(opcode, Isa::generic);
    fill(reference, 5);
    fill(before, 5);
    reference.execute(0xffffffffu);
    for (const Isa isa : available_isas()) {
      for (const std::uint32_t mask : {0xffffffffu, kMask}) {
        Execution run(opcode, isa);
        fill(run, 5);
        run.execute(mask);
        for (int lane = 0; lane < 32; ++lane) {
          const Execution& expected = (mask >> lane & 1) != 0 ? reference : before;
          for (std::size_t i = 0; i < 2; ++i) {
            if (run.meaning.dst[i] == Lanes::none) continue;
            ASSERT_TRUE(same(run, expected, lane, i))
                << opcode << " lane " << lane << " level " << static_cast<int>(isa) << std::hex
                << ": " << run.result(lane, i) << " and " << expected.result(lane, i);
          }
          const std::uint32_t carry = run.carry ^ expected.carry;
          ASSERT_EQ(carry >> lane & 1, 0u) << opcode << " carry of lane " << lane;
        }
      }
    }
  });
}

TEST(SemanticsLevels, ADestinationMayBeASource) {
  for_each_lane_opcode([&](const std::string& opcode) {
    for (const Isa isa : available_isas()) {
      for (const std::uint32_t mask : {0xffffffffu, 0x00ffff0fu}) {
        Execution apart(opcode, isa);
        for (std::size_t source = 0; source < 3; ++source) {
          if (apart.meaning.src[source] != apart.meaning.dst[0] ||
              apart.meaning.dst[0] == Lanes::pred)
            continue;
          Execution shared(opcode, isa);
          fill(apart, 9);
          fill(shared, 9);
          apart.execute(mask);
          shared.execute_onto_source(source, mask);
          for (int lane = 0; lane < 32; ++lane) {
            if ((mask >> lane & 1) == 0) continue;
            ASSERT_EQ(apart.result(lane), shared.source(source, lane))
                << opcode << " onto source " << source;
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace tilewright::ptx::semantics
