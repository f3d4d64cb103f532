// SPDX-License-Identifier: Apache-2.0
// Measures the GEMMs of the lessons beside cuBLASLt's fastest candidate in the same run, by replay
// of graphs, interleaved; with --sweep many configurations of the kernels.
#include "bench/gemm/cublaslt.h"
#include "examples/mma_gemm.h"
#include "examples/mma_tma_gemm.h"
#include "examples/wgmma_gemm.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace tw = tilewright;

namespace {

constexpr const char* kUsage =
    "usage: gemm_bench [--device cuda:N] [--m M] [--n N] [--k K] [--sweep 0|1] [--rounds N]\n"
    "                  [--cublaslt PATH] [--commit TEXT] [--json FILE]\n"
    "Times C = A B^T in bf16 (default 8192 x 8192 x 8192) by the kernels of lessons 9 and 11, and\n"
    "by cuBLASLt.\n";

struct Options {
  std::string device = "cuda:0", cublaslt, commit, json;
  std::int64_t m = 8192, n = 8192, k = 8192;
  int rounds = 15;
  bool sweep = false;
};

/// Something to time: a graph of launches, and the microseconds a launch took in each round.
struct Variant {
  std::string name;
  bool peer;
  tw::Graph graph;
  std::vector<double> us;
};

double median(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 2];
}

constexpr int kLaunches = 4;  // in a graph

/// The matrices, all of whose numbers are multiples of 2^-7 in [-1, 1).
class Setup {
 public:
  explicit Setup(const Options& options)
      : device_(tw::Device::open(options.device)),
        a_(upload(options.m * options.k, 1)),
        b_(upload(options.n * options.k, 2)),
        c_(device_, options.m * options.n * 2),
        views_{view(a_, options.m, options.k), view(b_, options.n, options.k),
               view(c_, options.m, options.n)} {}

  const tw::Device& device() const { return device_; }
  const tw::View& a() const { return views_[0]; }
  const tw::View& b() const { return views_[1]; }
  const tw::View& c() const { return views_[2]; }
  const tw::Stream& stream() const { return stream_; }

  /// C after one run of `work` on a C full of NaN.
  std::vector<std::uint16_t> result(const std::function<void()>& work) const {
    c_.fill(std::byte{0xff});
    work();
    stream_.synchronize();
    return tw::download<std::uint16_t>(c_);
  }
  tw::Graph graph(const std::function<void()>& work) const {
    return tw::Graph::capture(stream_, [&] {
      for (int i = 0; i < kLaunches; ++i)
        work();
    });
  }
  double time_us(const tw::Graph& graph) const {
    begin_.record(stream_);
    graph.launch(stream_);
    end_.record(stream_);
    end_.synchronize();
    return 1000 * tw::elapsed_ms(begin_, end_) / kLaunches;
  }

 private:
  tw::Buffer upload(std::int64_t count, std::uint32_t seed) const {
    std::vector<std::uint16_t> out(static_cast<std::size_t>(count));
    for (std::uint16_t& x : out) {
      seed = seed * 1664525 + 1013904223;
      float value = static_cast<float>(static_cast<int>(seed >> 24) - 128) / 128;
      x = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
    }
    return tw::upload(device_, std::span<const std::uint16_t>(out));
  }
  static tw::View view(const tw::Buffer& memory, std::int64_t rows, std::int64_t columns) {
    const std::int64_t shape[] = {rows, columns};
    return tw::make_view(memory.address(), tw::bf16, shape);
  }

  tw::Device device_;
  tw::Buffer a_, b_, c_;
  tw::View views_[3];
  tw::Stream stream_{device_};
  tw::Event begin_{device_}, end_{device_};
};

/// Elements whose bf16 values differ by more than two units in the last place: sums are taken in
/// different orders.
std::int64_t differences(const std::vector<std::uint16_t>& x, const std::vector<std::uint16_t>& y) {
  auto number = [](std::uint16_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  };
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    float p = number(x[i]), q = number(y[i]);
    float most = 0x1p-6f * std::max(std::fabs(p), std::fabs(q)) + 0x1p-6f;
    if (!(std::fabs(p - q) <= most)) ++wrong;
  }
  return wrong;
}

struct Tile {
  int m, n, stages;
};

std::vector<lesson::WgmmaGemm> wgmma_configurations(bool sweep) {
  if (!sweep) return {lesson::WgmmaGemm{}};
  std::vector<lesson::WgmmaGemm> all;
  for (Tile tile : {Tile{128, 256, 4}, Tile{256, 128, 4}}) {
    for (int cluster : {1, 2}) {
      for (int band : {2, 4, 8, 16}) {
        lesson::WgmmaGemm gemm;
        gemm.tile_m = tile.m, gemm.tile_n = tile.n, gemm.stages = tile.stages;
        gemm.cluster = cluster, gemm.band = band;
        all.push_back(gemm);
      }
    }
  }
  return all;
}

std::vector<lesson::MmaGemm> mma_configurations(bool sweep) {
  if (!sweep) return {lesson::MmaGemm{}};
  std::vector<lesson::MmaGemm> all;
  struct Warps {
    Tile tile;
    int m, n;
  };
  for (Warps warps :
       {Warps{{128, 256, 4}, 2, 4}, Warps{{128, 256, 3}, 2, 4}, Warps{{256, 128, 4}, 4, 2},
        Warps{{128, 128, 3}, 2, 2}, Warps{{128, 128, 4}, 2, 4}}) {
    for (int band : {4, 8, 16}) {
      lesson::MmaGemm gemm;
      gemm.tile_m = warps.tile.m, gemm.tile_n = warps.tile.n, gemm.stages = warps.tile.stages;
      gemm.warps_m = warps.m, gemm.warps_n = warps.n, gemm.band = band;
      all.push_back(gemm);
    }
  }
  return all;
}

template <class Gemm>
std::string tile_text(const Gemm& gemm) {
  return " tile=" + std::to_string(gemm.tile_m) + "x" + std::to_string(gemm.tile_n) +
         "x64,stages=" + std::to_string(gemm.stages) + ",band=" + std::to_string(gemm.band);
}
std::string name_of(const lesson::WgmmaGemm& gemm) {
  return "wgmma_gemm" + tile_text(gemm) + ",cluster=" + std::to_string(gemm.cluster);
}
std::string name_of(const lesson::MmaGemm& gemm) {
  return "mma_gemm" + tile_text(gemm) + ",warps=" + std::to_string(gemm.warps_m) + "x" +
         std::to_string(gemm.warps_n);
}

std::string name_of(const lesson::MmaTmaGemm& gemm) {
  return "mma_tma_gemm" + tile_text(gemm) + ",warps=" + std::to_string(gemm.warps_m) + "x" +
         std::to_string(gemm.warps_n);
}

void print(const Variant& variant, double peer_us, const Options& o) {
  double us = median(variant.us);
  double flops =
      2.0 * static_cast<double>(o.m) * static_cast<double>(o.n) * static_cast<double>(o.k);
  std::printf("%-60s %9.1f us %7.1f TFLOP/s", variant.name.c_str(), us, flops / us / 1e6);
  if (peer_us > 0 && !variant.peer) std::printf("  %.3f of cuBLASLt", peer_us / us);
  std::printf("\n");
}

/// What was measured with what.
struct Context {
  std::string device, peer, assembler;
  int driver = 0;
};

void write_json(std::FILE* file, const std::vector<Variant>& variants, double peer_us,
                const Context& context, const Options& o) {
  std::fprintf(file,
               "{\n  \"context\": {\"device\": \"%s\", \"driver\": \"CUDA %d.%d\", "
               "\"assembler\": \"%s\", \"peer\": \"%s\", \"commit\": \"%s\"},\n"
               "  \"benchmarks\": [\n",
               context.device.c_str(), context.driver / 1000, context.driver % 1000 / 10,
               context.assembler.c_str(), context.peer.c_str(), o.commit.c_str());
  for (const Variant& v : variants) {
    auto [fastest, slowest] = std::minmax_element(v.us.begin(), v.us.end());
    std::fprintf(
        file,
        "    {\"name\": \"%s m=%lld,n=%lld,k=%lld\", \"real_time\": %.2f, \"time_unit\": "
        "\"us\", \"fastest_us\": %.2f, \"slowest_us\": %.2f, \"launches\": %d, \"replays\": "
        "%zu, \"of_peer\": %.4f}%s\n",
        v.name.c_str(), static_cast<long long>(o.m), static_cast<long long>(o.n),
        static_cast<long long>(o.k), median(v.us), *fastest, *slowest, kLaunches, v.us.size(),
        peer_us / median(v.us), &v == &variants.back() ? "" : ",");
  }
  std::fputs("  ]\n}\n", file);
}

/// Adds the candidate that is fastest when tried alone.
void add_peer(const Setup& setup, bench::CublasLt& peer, std::vector<Variant>& variants) {
  int candidates = peer.prepare(setup.a(), setup.b(), setup.c());
  int best = -1;
  double best_us = 0;
  for (int i = 0; i < candidates; ++i) {
    tw::Graph graph = setup.graph([&] { peer.run(i, setup.stream()); });
    double us = setup.time_us(graph);
    us = std::min(us, setup.time_us(graph));
    if (best < 0 || us < best_us) best = i, best_us = us;
  }
  if (best < 0) throw tw::Error(tw::ErrorKind::unsupported, "cuBLASLt has no candidate");
  variants.push_back(
      {"cuBLASLt candidate " + std::to_string(best) + " of " + std::to_string(candidates),
       true,
       setup.graph([&] { peer.run(best, setup.stream()); }),
       {}});
}

/// What is measured: the peer first. The kernels live as long as the graphs that launch them.
struct Field {
  std::vector<Variant> variants;
  std::vector<tw::PreparedLaunch> launches;
  std::vector<std::uint16_t> right;
  int wrong = 0;

  void add(const Setup& setup, const std::string& name, tw::PreparedLaunch launch) {
    launches.push_back(std::move(launch));
    auto work = [&] { launches.back().launch(setup.stream()); };
    std::int64_t differ = differences(setup.result(work), right);
    if (differ > 0) {
      std::printf("%s: %lld elements are WRONG\n", name.c_str(), static_cast<long long>(differ));
      ++wrong;
    }
    variants.push_back({name, false, setup.graph(work), {}});
  }
};

void add_kernels(const Setup& setup, Field& field, bool sweep) {
  const tw::Device& device = setup.device();
  for (const lesson::WgmmaGemm& gemm : wgmma_configurations(sweep)) {
    tw::Kernel kernel = tw::compile(device, gemm.trace(device.target()));
    field.add(setup, name_of(gemm),
              gemm.prepare(kernel, setup.a(), setup.b(), setup.c(), device.properties().sm_count));
  }
  for (const lesson::MmaGemm& gemm : mma_configurations(sweep)) {
    tw::Kernel kernel =
        tw::compile(device, gemm.trace(device.target(), setup.a(), setup.b(), setup.c()));
    field.add(setup, name_of(gemm), gemm.prepare(kernel, setup.a(), setup.b(), setup.c()));
  }
}

void add_fed_kernel(const Setup& setup, Field& field) {
  lesson::MmaTmaGemm gemm;
  tw::Kernel kernel = tw::compile(setup.device(), gemm.trace(setup.device().target(), setup.c()));
  field.add(
      setup, name_of(gemm),
      gemm.prepare(kernel, setup.a(), setup.b(), setup.c(), setup.device().properties().sm_count));
}

/// In an order of its own each round: a variant that draws much power slows down the next one.
void measure(const Setup& setup, std::vector<Variant>& variants, int rounds) {
  std::vector<std::size_t> order(variants.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937 random(1);
  for (int round = 0; round < rounds; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (std::size_t i : order)
      variants[i].us.push_back(setup.time_us(variants[i].graph));
  }
}

int run(const Options& options) {
  Setup setup(options);
  const tw::Device& device = setup.device();
  bench::CublasLt peer(device, options.cublaslt);
  Field field;
  std::vector<Variant>& variants = field.variants;
  add_peer(setup, peer, variants);
  field.right = setup.result([&] { variants[0].graph.launch(setup.stream()); });
  add_kernels(setup, field, options.sweep);
  add_fed_kernel(setup, field);
  measure(setup, variants, options.rounds);
  double peer_us = median(variants[0].us);
  std::string version = "cuBLASLt " + std::to_string(peer.version());
  std::printf("%s, %s\n", device.properties().name.c_str(), version.c_str());
  for (const Variant& variant : variants)
    print(variant, peer_us, options);
  if (!options.json.empty()) {
    std::FILE* file = std::fopen(options.json.c_str(), "w");
    if (file == nullptr) return std::fprintf(stderr, "cannot write %s\n", options.json.c_str()), 2;
    Context context{device.properties().name, version,
                    field.launches.front().kernel().assembled().assembler,
                    device.properties().driver_version};
    write_json(file, variants, peer_us, context, options);
    std::fclose(file);
  }
  return field.wrong == 0 ? 0 : 1;
}

bool set_option(Options& options, const std::string& flag, const char* text) {
  std::int64_t number = std::strtoll(text, nullptr, 0);
  if (flag == "--device") return options.device = text, true;
  if (flag == "--cublaslt") return options.cublaslt = text, true;
  if (flag == "--commit") return options.commit = text, true;
  if (flag == "--json") return options.json = text, true;
  if (flag == "--sweep") return options.sweep = number != 0, true;
  if (number < 1) return false;
  if (flag == "--m") return options.m = number, true;
  if (flag == "--n") return options.n = number, true;
  if (flag == "--k") return options.k = number, true;
  if (flag == "--rounds") return options.rounds = static_cast<int>(number), true;
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    std::string flag = argv[i];
    if (i + 1 == argc || !set_option(options, flag, argv[i + 1]))
      return std::fputs(kUsage, stderr), 2;
  }
  try {
    return run(options);
  } catch (const tw::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
