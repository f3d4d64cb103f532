// SPDX-License-Identifier: Apache-2.0
// Measures the error of every maths function over all f32 numbers, on the host, a GPU or the
// emulator.
#include "test/ulp.h"
#include "tilewright/tilewright.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace tw = tilewright;

namespace {

constexpr const char* kUsage =
    "usage: maths_sweep [--device host|cuda:N|emu:sm_XX] [--only NAME] [--first BITS]\n"
    "                   [--log2-count N] [--stride N] [--commit TEXT] [--json FILE]\n"
    "Evaluates each function at the f32 numbers whose bits are FIRST, FIRST + STRIDE, ... below\n"
    "FIRST + 2^N (default: all), or at as many pairs, and prints the largest error in ulp.\n";

struct Options {
  std::string device = "host", only, commit, json;
  std::uint64_t first = 0, stride = 1, span = std::uint64_t{1} << 32;
};

/// The worst result so far.
struct Worst {
  double ulp = -1;
  std::int64_t steps = 0;
  std::uint64_t inputs = 0, beyond_bound = 0, unlike_host = 0;
  float x = 0, y = 0, got = 0;

  void merge(const Worst& other) {
    if (other.ulp > ulp) {
      ulp = other.ulp, x = other.x, y = other.y, got = other.got;
    }
    steps = std::max(steps, other.steps);
    inputs += other.inputs;
    beyond_bound += other.beyond_bound;
    unlike_host += other.unlike_host;
  }
};

struct Batch {
  std::vector<float> x, y, got;
};

std::uint32_t hash(std::uint64_t n) {  // the finaliser of splitmix64
  n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9u;
  n = (n ^ n >> 27) * 0x94d049bb133111ebu;
  return static_cast<std::uint32_t>(n >> 32);
}

/// Four strata: any two numbers; x near 1; exponents close to each other; both near 1.
std::pair<std::uint32_t, std::uint32_t> pair_of(std::uint64_t n) {
  std::uint32_t x = hash(2 * n + 1);
  std::uint32_t y = hash(2 * n + 2);
  std::uint32_t more = hash(~n);
  constexpr std::uint32_t kOne = 0x3f800000u;
  auto mantissa = [](std::uint32_t bits) { return bits & 0x807fffffu; };
  if (n % 4 == 1) x = mantissa(x) | (kOne - ((more & 1) << 23));
  if (n % 4 == 2) y = mantissa(y) | ((x + ((more % 9) << 23) - (4u << 23)) & 0x7f800000u);
  if (n % 4 == 3) {
    x = mantissa(x) | (kOne + ((more % 16) << 23) - (8u << 23));
    y = mantissa(y) | (kOne + ((more / 16 % 16) << 23) - (8u << 23));
  }
  return {x, y};
}

/// `body(begin, end, thread)` over [0, n) on all cores.
template <class F>
void parallel(std::size_t n, F body) {
  std::size_t threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> pool;
  for (std::size_t t = 0; t < threads; ++t) {
    pool.emplace_back([=, &body] { body(n * t / threads, n * (t + 1) / threads, t); });
  }
  for (std::thread& thread : pool)
    thread.join();
}

/// Fills x and y with inputs number `from` and on.
void fill(Batch& batch, const tw::MathFunction& function, const Options& options,
          std::uint64_t from) {
  parallel(batch.x.size(), [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t i = begin; i < end; ++i) {
      std::uint64_t n = options.first + (from + i) * options.stride;
      auto [x, y] =
          function.arguments == 1 ? std::pair(static_cast<std::uint32_t>(n), 0u) : pair_of(n);
      batch.x[i] = std::bit_cast<float>(x);
      batch.y[i] = std::bit_cast<float>(y);
    }
  });
}

Worst compare(const Batch& batch, const tw::MathFunction& function) {
  std::vector<Worst> parts(std::max(1u, std::thread::hardware_concurrency()));
  parallel(batch.x.size(), [&](std::size_t begin, std::size_t end, std::size_t thread) {
    Worst worst;
    for (std::size_t i = begin; i < end; ++i) {
      float x = batch.x[i];
      float y = batch.y[i];
      float got = batch.got[i];
      double exact = function.exact(static_cast<double>(x), static_cast<double>(y));
      double ulp = tw::test::ulp_error(got, exact);
      worst.steps = std::max(worst.steps, tw::test::f32_steps(got, exact));
      worst.beyond_bound += ulp > function.bound_ulp ? 1 : 0;
      if (function.agreement == tw::HostAgreement::bits && got == got) {
        float host = function.host(x, y);
        worst.unlike_host +=
            std::bit_cast<std::uint32_t>(host) != std::bit_cast<std::uint32_t>(got);
      }
      if (ulp > worst.ulp) {
        worst.ulp = ulp, worst.x = x, worst.y = y, worst.got = got;
      }
    }
    worst.inputs = end - begin;
    parts[thread] = worst;
  });
  Worst all;
  for (const Worst& part : parts)
    all.merge(part);
  return all;
}

/// Evaluates batches of one size on a device.
class DeviceEvaluator {
 public:
  DeviceEvaluator(const tw::Device& device, const tw::MathFunction& function, std::size_t elems)
      : stream_(device),
        x_(device, bytes(elems)),
        y_(device, bytes(elems)),
        out_(device, bytes(elems)),
        kernel_(make_kernel(device, function, elems)) {}

  void operator()(Batch& batch) const {
    x_.upload(std::as_bytes(std::span(batch.x)));
    y_.upload(std::as_bytes(std::span(batch.y)));
    tw::Parameters parameters;
    parameters.add(x_.address()).add(y_.address()).add(out_.address());
    int blocks = static_cast<int>(batch.x.size() / kThreads);
    kernel_.launch({.grid = {blocks}, .block = {kThreads}}, parameters, stream_);
    stream_.synchronize();
    out_.download(std::as_writable_bytes(std::span(batch.got)));
  }

  static constexpr int kThreads = 256;

 private:
  static std::int64_t bytes(std::size_t elems) { return static_cast<std::int64_t>(4 * elems); }

  static tw::Kernel make_kernel(const tw::Device& device, const tw::MathFunction& function,
                                std::size_t elems) {
    const std::int64_t shape[] = {static_cast<std::int64_t>(elems)};
    tw::TensorArg arg = tw::tensor_arg(tw::make_view(0, tw::f32, shape));
    arg.alignment_bytes = 16;
    tw::TraceOptions options{.name = std::string("maths_sweep_") + std::string(function.name),
                             .target = device.target(),
                             .block = {kThreads, 1, 1}};
    auto body = [&](const tw::Tensor& x, const tw::Tensor& y, const tw::Tensor& out) {
      tw::Value i = tw::block_idx().x * kThreads + tw::thread_idx().x;
      out(i) = function.traced(x(i).load(), y(i).load());
    };
    return tw::compile(device, tw::trace(options, body, arg, arg, arg));
  }

  tw::Stream stream_;
  tw::Buffer x_, y_, out_;
  tw::Kernel kernel_;
};

void evaluate_on_host(Batch& batch, const tw::MathFunction& function) {
  parallel(batch.x.size(), [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t i = begin; i < end; ++i)
      batch.got[i] = function.host(batch.x[i], batch.y[i]);
  });
}

Worst sweep(const tw::MathFunction& function, const Options& options) {
  std::uint64_t inputs = options.span / options.stride;
  std::size_t elems = std::min<std::uint64_t>(inputs, std::uint64_t{1} << 22);
  elems = std::max<std::size_t>(elems / DeviceEvaluator::kThreads, 1) * DeviceEvaluator::kThreads;
  Batch batch{std::vector<float>(elems), std::vector<float>(elems), std::vector<float>(elems)};
  Worst worst;
  if (options.device == "host") {
    for (std::uint64_t from = 0; from < inputs; from += elems) {
      fill(batch, function, options, from);
      evaluate_on_host(batch, function);
      worst.merge(compare(batch, function));
    }
    return worst;
  }
  DeviceEvaluator evaluate(tw::Device::open(options.device), function, elems);
  for (std::uint64_t from = 0; from < inputs; from += elems) {
    fill(batch, function, options, from);
    evaluate(batch);
    worst.merge(compare(batch, function));
  }
  return worst;
}

/// Google Benchmark's format, which scripts/docs.py reads; a "time" is that of evaluating and
/// comparing one input.
void write_row(std::FILE* file, const tw::MathFunction& f, const Worst& w, double seconds,
               const char* separator) {
  char y[40] = "";
  if (f.arguments == 2) std::snprintf(y, sizeof y, ", \"y\": \"%a\"", static_cast<double>(w.y));
  std::fprintf(file,
               "    {\"name\": \"%s\", \"inputs\": %llu, \"max_ulp\": %.4f, \"max_steps\": %lld, "
               "\"x\": \"%a\"%s, \"got\": \"%a\",\n     \"bound_ulp\": %g, \"cuda_steps\": %d, "
               "\"beyond_bound\": %llu, "
               "\"unlike_host\": %llu, \"real_time\": %.3f, \"time_unit\": \"ns\"}%s\n",
               std::string(f.name).c_str(), static_cast<unsigned long long>(w.inputs), w.ulp,
               static_cast<long long>(w.steps), static_cast<double>(w.x), y,
               static_cast<double>(w.got), f.bound_ulp, f.cuda_steps,
               static_cast<unsigned long long>(w.beyond_bound),
               static_cast<unsigned long long>(w.unlike_host),
               seconds * 1e9 / static_cast<double>(w.inputs), separator);
}

struct Row {
  const tw::MathFunction* function;
  Worst worst;
  double seconds;
};

void write_json(std::FILE* file, const std::vector<Row>& rows, const Options& options) {
  std::string device = options.device == "host"
                           ? options.device
                           : tw::Device::open(options.device).properties().name;
  std::fprintf(file,
               "{\n  \"context\": {\"device\": \"%s\", \"commit\": \"%s\", \"first\": %llu, "
               "\"stride\": %llu, \"span\": %llu},\n  \"benchmarks\": [\n",
               device.c_str(), options.commit.c_str(),
               static_cast<unsigned long long>(options.first),
               static_cast<unsigned long long>(options.stride),
               static_cast<unsigned long long>(options.span));
  for (const Row& row : rows) {
    write_row(file, *row.function, row.worst, row.seconds, &row == &rows.back() ? "" : ",");
  }
  std::fputs("  ]\n}\n", file);
}

int run(const Options& options) {
  std::vector<Row> rows;
  bool good = true;
  for (const tw::MathFunction& function : tw::math_functions()) {
    if (!options.only.empty() && function.name != options.only) continue;
    auto begin = std::chrono::steady_clock::now();
    Worst worst = sweep(function, options);
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    good = good && worst.beyond_bound == 0 && worst.unlike_host == 0;
    rows.push_back({&function, worst, took.count()});
    std::printf(
        "%-8s %.4f ulp (%lld steps) at %a %a: %a; bound %g, %llu beyond, %llu unlike host\n",
        std::string(function.name).c_str(), worst.ulp, static_cast<long long>(worst.steps),
        static_cast<double>(worst.x), static_cast<double>(worst.y), static_cast<double>(worst.got),
        function.bound_ulp, static_cast<unsigned long long>(worst.beyond_bound),
        static_cast<unsigned long long>(worst.unlike_host));
    std::fflush(stdout);
  }
  if (!options.json.empty()) {
    std::FILE* file = std::fopen(options.json.c_str(), "w");
    if (file == nullptr) return std::fprintf(stderr, "cannot write %s\n", options.json.c_str()), 2;
    write_json(file, rows, options);
    std::fclose(file);
  }
  return good ? 0 : 1;
}

bool set_option(Options& options, const std::string& flag, const char* text) {
  std::uint64_t number = std::strtoull(text, nullptr, 0);
  if (flag == "--device") return options.device = text, true;
  if (flag == "--only") return options.only = text, true;
  if (flag == "--commit") return options.commit = text, true;
  if (flag == "--json") return options.json = text, true;
  if (flag == "--first") return options.first = number, true;
  if (flag == "--stride" && number > 0) return options.stride = number, true;
  if (flag == "--log2-count" && number <= 40)
    return options.span = std::uint64_t{1} << number, true;
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
