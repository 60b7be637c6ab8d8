// A stream and tasks take turns: a matrix product of cuBLAS (of a kernel of this file where there
// is no cuBLAS, or no GPU), then tasks that work on its columns, then the next product. Between the
// turns no thread of the program waits.
#include <cstdio>
#include <utility>
#include <vector>

#include <grosr/grosr.hpp>

#if defined(EXAMPLE_HAS_CUBLAS)
#include <cublas_v2.h>
#endif

constexpr std::uint32_t n = 64;

// [task]
struct keep_small {
  static constexpr grosr::width width = grosr::width::warp;
  float* column;
  GROSR_DEVICE void operator()(auto& context) const {
    for (std::uint32_t i = context.rank(); i < n; i += context.size())
      column[i] = static_cast<float>(static_cast<int>(column[i]) % 7);
  }
};
// [task]

// c = a b; columns side by side, as cuBLAS has them.
struct product {
  const float *a, *b;
  float* c;
  GROSR_DEVICE void operator()() const {
    const std::uint32_t column = grosr::simt::block_id();
    for (std::uint32_t row = grosr::simt::thread_id(); row < n; row += grosr::simt::block_size()) {
      float sum = 0;
      for (std::uint32_t k = 0; k < n; ++k) sum += a[k * n + row] * b[column * n + k];
      c[column * n + row] = sum;
    }
  }
};

/// Puts products into a stream.
class multiplier {
 public:
  explicit multiplier(grosr::simt::stream& s) : stream_(s) {
#if defined(EXAMPLE_HAS_CUBLAS)
    if (!s.where().is_cuda() || cublasCreate(&library_) != CUBLAS_STATUS_SUCCESS) return;
    cublasSetStream(library_, static_cast<cudaStream_t>(s.native()));
#endif
  }
#if defined(EXAMPLE_HAS_CUBLAS)
  ~multiplier() {
    if (library_ != nullptr) cublasDestroy(library_);
  }
#endif
  multiplier(const multiplier&) = delete;

  void operator()(const product& p) {
#if defined(EXAMPLE_HAS_CUBLAS)
    if (library_ != nullptr) {
      const float one = 1, zero = 0;
      if (cublasSgemm(library_, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, p.a, n, p.b, n, &zero, p.c,
                      n) != CUBLAS_STATUS_SUCCESS)
        std::fprintf(stderr, "cublasSgemm failed\n");
      return;
    }
#endif
    grosr::simt::launch(stream_, {n, 32}, p);
  }
  const char* name() const {
#if defined(EXAMPLE_HAS_CUBLAS)
    if (library_ != nullptr) return "cuBLAS";
#endif
    return "a kernel of its own";
  }

 private:
  grosr::simt::stream& stream_;
#if defined(EXAMPLE_HAS_CUBLAS)
  cublasHandle_t library_ = nullptr;
#endif
};

std::vector<float> on_the_host(const std::vector<float>& a, std::vector<float> x, int rounds) {
  for (; rounds > 0; --rounds) {
    std::vector<float> y(n * n);
    for (std::uint32_t column = 0; column < n; ++column)
      for (std::uint32_t row = 0; row < n; ++row) {
        int sum = 0;
        for (std::uint32_t k = 0; k < n; ++k)
          sum += static_cast<int>(a[k * n + row]) * static_cast<int>(x[column * n + k]);
        y[column * n + row] = static_cast<float>(sum % 7);
      }
    x = std::move(y);
  }
  return x;
}

int main() {
  constexpr int rounds = 100;
  const grosr::device device = grosr::device::best();
  std::vector<float> first(n * n), start(n * n), found(n * n);
  for (std::uint32_t i = 0; i < n * n; ++i) first[i] = static_cast<float>(i * i % 3);
  for (std::uint32_t i = 0; i < n * n; ++i) start[i] = static_cast<float>(i % 7);
  grosr::simt::buffer<float> a(device, grosr::simt::space::device, n * n);
  grosr::simt::buffer<float> x(device, grosr::simt::space::device, n * n);
  grosr::simt::buffer<float> y(device, grosr::simt::space::device, n * n);
  a.copy_from(first);
  x.copy_from(start);
  grosr::simt::stream stream(device);
  multiplier multiply(stream);
  multiply({a.data(), x.data(), y.data()});  // its kernel is loaded before a stream waits
  stream.wait();

  grosr::runtime<keep_small> runtime(device);
  for (int i = 0; i < rounds; ++i) {
    std::vector<keep_small> columns;
    for (std::uint32_t c = 0; c < n; ++c) columns.push_back({y.data() + c * n});
    // [chain]
    multiply({a.data(), x.data(), y.data()});             // in the stream
    auto ticket = runtime.submit_after(stream, columns);  // tasks, when the product is there
    ticket.record(stream);                                // the stream goes on after them
    // [chain]
    std::swap(x, y);
  }
  stream.wait();
  x.copy_to(found);
  const bool right = found == on_the_host(first, start, rounds);
  std::printf("%d products by %s, each followed by %u tasks: %s\n", rounds, multiply.name(), n,
              right ? "right" : "wrong");
  return right ? 0 : 1;
}
