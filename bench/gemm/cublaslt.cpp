// SPDX-License-Identifier: Apache-2.0
// The few functions of cuBLASLt that a product needs (cuBLAS documentation, cublasLt API).
#include "bench/gemm/cublaslt.h"

#include <array>
#include <bit>
#include <cstdint>
#include <dlfcn.h>

namespace bench {
namespace {

constexpr int kRealF32 = 0, kRealBf16 = 14;  // cudaDataType
constexpr int kComputeF32 = 68;              // cublasComputeType_t
constexpr int kTransposed = 1;               // cublasOperation_t
constexpr int kDescTransA = 3;               // cublasLtMatmulDescAttributes_t
constexpr int kPreferenceWorkspace = 1;      // cublasLtMatmulPreferenceAttributes_t
constexpr std::int64_t kWorkspaceBytes = 64 << 20;
constexpr int kMostCandidates = 16;

struct Algorithm {
  std::uint64_t data[8];
};
struct Heuristic {
  Algorithm algorithm;
  std::size_t workspace_bytes;
  int state;
  float waves;
  int reserved[4];
};

using Handle = void*;

void check(int status, const char* call) {
  if (status == 0) return;
  throw tw::Error(tw::ErrorKind::user,
                  std::string(call) + ": cuBLAS status " + std::to_string(status));
}

void* open_library(const std::string& path) {
  std::vector<std::string> names{"libcublasLt.so.13", "libcublasLt.so.12"};
  if (!path.empty()) names = {path};
  for (const std::string& name : names) {
    if (void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  }
  const char* why = dlerror();
  throw tw::Error(tw::ErrorKind::unsupported, std::string("cuBLASLt was not found (") +
                                                  (why != nullptr ? why : "") +
                                                  "); give its path with --cublaslt");
}

}  // namespace

struct CublasLt::Library {
  void* object = nullptr;
  Handle handle = nullptr;
  int (*create)(Handle*) = nullptr;
  int (*destroy)(Handle) = nullptr;
  std::size_t (*version)() = nullptr;
  int (*desc_create)(void**, int compute, int scale) = nullptr;
  int (*desc_set)(void*, int attribute, const void* value, std::size_t bytes) = nullptr;
  int (*desc_destroy)(void*) = nullptr;
  int (*layout_create)(void**, int type, std::uint64_t rows, std::uint64_t columns,
                       std::int64_t ld) = nullptr;
  int (*layout_destroy)(void*) = nullptr;
  int (*preference_create)(void**) = nullptr;
  int (*preference_set)(void*, int attribute, const void* value, std::size_t bytes) = nullptr;
  int (*preference_destroy)(void*) = nullptr;
  int (*heuristic)(Handle, void* desc, void* a, void* b, void* c, void* d, void* preference,
                   int most, Heuristic* results, int* count) = nullptr;
  int (*matmul)(Handle, void* desc, const void* alpha, const void* a, void* a_layout, const void* b,
                void* b_layout, const void* beta, const void* c, void* c_layout, void* d,
                void* d_layout, const Algorithm*, void* workspace, std::size_t workspace_bytes,
                void* stream) = nullptr;

  explicit Library(const std::string& path) : object(open_library(path)) {
    bind(create, "cublasLtCreate");
    bind(destroy, "cublasLtDestroy");
    bind(version, "cublasLtGetVersion");
    bind(desc_create, "cublasLtMatmulDescCreate");
    bind(desc_set, "cublasLtMatmulDescSetAttribute");
    bind(desc_destroy, "cublasLtMatmulDescDestroy");
    bind(layout_create, "cublasLtMatrixLayoutCreate");
    bind(layout_destroy, "cublasLtMatrixLayoutDestroy");
    bind(preference_create, "cublasLtMatmulPreferenceCreate");
    bind(preference_set, "cublasLtMatmulPreferenceSetAttribute");
    bind(preference_destroy, "cublasLtMatmulPreferenceDestroy");
    bind(heuristic, "cublasLtMatmulAlgoGetHeuristic");
    bind(matmul, "cublasLtMatmul");
    check(create(&handle), "cublasLtCreate");
  }
  ~Library() { destroy(handle); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

 private:
  template <class F>
  void bind(F*& slot, const char* name) {
    slot = reinterpret_cast<F*>(dlsym(object, name));
    if (slot == nullptr)
      throw tw::Error(tw::ErrorKind::unsupported, std::string("cuBLASLt lacks ") + name);
  }
};

/// A row-major C = A B^T is the column-major C^T = B A^T: B transposed, A as it lies.
struct CublasLt::Problem {
  Library& library;
  tw::View a, b, c;
  void *desc = nullptr, *a_layout = nullptr, *b_layout = nullptr, *c_layout = nullptr;
  std::array<Heuristic, kMostCandidates> found{};
  int count = 0;

  Problem(Library& with, const tw::View& of_a, const tw::View& of_b, const tw::View& of_c)
      : library(with), a(of_a), b(of_b), c(of_c) {
    check(library.desc_create(&desc, kComputeF32, kRealF32), "cublasLtMatmulDescCreate");
    check(library.desc_set(desc, kDescTransA, &kTransposed, sizeof kTransposed),
          "cublasLtMatmulDescSetAttribute");
    layout(a_layout, a);
    layout(b_layout, b);
    layout(c_layout, c);
    void* preference = nullptr;
    check(library.preference_create(&preference), "cublasLtMatmulPreferenceCreate");
    auto workspace = static_cast<std::uint64_t>(kWorkspaceBytes);
    check(library.preference_set(preference, kPreferenceWorkspace, &workspace, sizeof workspace),
          "cublasLtMatmulPreferenceSetAttribute");
    int status = library.heuristic(library.handle, desc, b_layout, a_layout, c_layout, c_layout,
                                   preference, kMostCandidates, found.data(), &count);
    library.preference_destroy(preference);
    check(status, "cublasLtMatmulAlgoGetHeuristic");
  }
  ~Problem() {
    library.layout_destroy(a_layout);
    library.layout_destroy(b_layout);
    library.layout_destroy(c_layout);
    library.desc_destroy(desc);
  }
  Problem(const Problem&) = delete;
  Problem& operator=(const Problem&) = delete;

  void layout(void*& made, const tw::View& view) const {
    check(library.layout_create(&made, kRealBf16, static_cast<std::uint64_t>(view.shape[1]),
                                static_cast<std::uint64_t>(view.shape[0]), view.stride[0]),
          "cublasLtMatrixLayoutCreate");
  }
};

namespace {

void* pointer(std::uint64_t address) { return std::bit_cast<void*>(address); }

}  // namespace

CublasLt::CublasLt(const tw::Device& device, const std::string& path)
    : library_(new Library(path)), workspace_(device, kWorkspaceBytes) {}

CublasLt::~CublasLt() {
  delete problem_;
  delete library_;
}

std::size_t CublasLt::version() const { return library_->version(); }

int CublasLt::prepare(const tw::View& a, const tw::View& b, const tw::View& c) {
  delete problem_;
  problem_ = nullptr;
  problem_ = new Problem(*library_, a, b, c);
  return problem_->count;
}

void CublasLt::run(int candidate, const tw::Stream& stream) const {
  const float one = 1, zero = 0;
  const Problem& p = *problem_;
  check(library_->matmul(
            library_->handle, p.desc, &one, pointer(p.b.address), p.b_layout, pointer(p.a.address),
            p.a_layout, &zero, pointer(p.c.address), p.c_layout, pointer(p.c.address), p.c_layout,
            &p.found[static_cast<std::size_t>(candidate)].algorithm, pointer(workspace_.address()),
            static_cast<std::size_t>(kWorkspaceBytes), stream.handle()),
        "cublasLtMatmul");
}

}  // namespace bench
