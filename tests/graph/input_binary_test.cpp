// The binary format lies byte for byte as documented, and what lies about itself is refused.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "input_files.hpp"

namespace grosr::graphs {
namespace {

/// A binary file to be changed, its checksums made right again.
class binary_file {
 public:
  explicit binary_file(const csr_graph& g) {
    write_binary(g, folder_.at("g"));
    bytes_ = folder_.content("g");
  }

  std::string& bytes() { return bytes_; }

  template <class T>
  T get(std::size_t at) const {
    T value;
    std::memcpy(&value, bytes_.data() + at, sizeof value);
    return value;
  }
  template <class T>
  binary_file& set(std::size_t at, T value) {
    std::memcpy(bytes_.data() + at, &value, sizeof value);
    return *this;
  }
  binary_file& seal() {
    set<std::uint64_t>(40, crc(64, bytes_.size() - 64));
    return set<std::uint64_t>(48, crc(0, 48));
  }

  /// What load() says of it, plain and compressed.
  std::string refused() const {
    const std::string plain = says(bytes_), compressed = says(gzipped(bytes_));
    return plain == compressed ? plain : plain + "\n" + compressed;
  }
  std::string says(const std::string& content) const {
    const std::string path = folder_.write("bad", content);
    const std::string text =
        refusal([&] { load(path, {}, in_small_chunks(1 << 20, 4)); }, path + ":");
    return text.starts_with(" ") ? text.substr(1) : text;
  }

 private:
  std::uint64_t crc(std::size_t first, std::size_t n) const {
    return crc32(0, reinterpret_cast<const Bytef*>(bytes_.data()) + first, static_cast<uInt>(n));
  }

  folder folder_;
  std::string bytes_;
};

// Rows begin at 64, columns at 128, weights at 192.
csr_graph some(bool directed) {
  return make_graph(4, {{0, 1, 2}, {0, 2, 3}, {1, 2, 4}, {2, 3, 5}}, directed, weights::any);
}

TEST(graph_binary, lies_as_documented) {
  csr_graph g = some(true);
  g.first = 1;
  binary_file file(g);
  EXPECT_EQ(file.bytes().size(), 256u);
  EXPECT_EQ(file.bytes().substr(0, 8), "GROSRCSR");
  EXPECT_EQ(file.get<std::uint32_t>(8), 1u);
  EXPECT_EQ(file.get<std::uint32_t>(12), 3u);
  EXPECT_EQ(file.get<std::uint64_t>(16), 4u);
  EXPECT_EQ(file.get<std::uint64_t>(24), 4u);
  EXPECT_EQ(file.get<std::uint32_t>(32), 1u);
  EXPECT_EQ(file.get<std::uint32_t>(64 + 4), 2u);
  EXPECT_EQ(file.get<std::uint32_t>(128), 1u);
  EXPECT_EQ(file.get<float>(192), 2.0f);
  const std::string before = file.bytes();
  EXPECT_EQ(file.seal().bytes(), before);
}

TEST(graph_binary, every_byte_that_differs_is_noticed) {
  binary_file file(some(false));
  for (std::size_t i = 0; i < file.bytes().size(); ++i) {
    file.bytes()[i] ^= 0x10;
    EXPECT_NE(file.refused(), "nothing") << i;
    file.bytes()[i] ^= 0x10;
  }
  for (std::size_t n = 8; n < file.bytes().size(); ++n)
    EXPECT_NE(file.says(file.bytes().substr(0, n)), "nothing") << n;
  EXPECT_NE(file.says(file.bytes() + "\n"), "nothing");
  EXPECT_NE(file.says(gzipped(file.bytes() + "\n")).find("more bytes"), std::string::npos);
}

TEST(graph_binary, headers_that_lie_are_refused) {
  const auto says = [&](auto&& change) {
    binary_file file(some(true));
    change(file);
    return file.seal().refused();
  };
  const auto plain = [&](auto&& change) {
    binary_file file(some(true));
    change(file);
    return file.seal().says(file.bytes());
  };
  EXPECT_EQ(says([](auto& f) { f.template set<std::uint32_t>(8, 2); }),
            "version 2 of the binary format; this program reads version 1");
  EXPECT_NE(says([](auto& f) { f.template set<std::uint32_t>(12, 8); }).find("fields that"),
            std::string::npos);
  EXPECT_NE(says([](auto& f) { f.template set<std::uint64_t>(56, 1); }).find("fields that"),
            std::string::npos);
  EXPECT_EQ(plain([](auto& f) { f.template set<std::uint64_t>(24, 40); }),
            "4 vertices and 40 entries make 512 bytes, but the file has 256; write it again with "
            "graph convert");
  EXPECT_NE(
      says([](auto& f) { f.template set<std::uint64_t>(16, 1ull << 40); }).find("vertices; a"),
      std::string::npos);
  EXPECT_NE(says([](auto& f) { f.template set<std::uint64_t>(24, ~0ull); }).find("edges; a graph"),
            std::string::npos);
  EXPECT_NE(says([](auto& f) { f.template set<std::uint64_t>(16, 4'000'000'000); }).find("16.0 GB"),
            std::string::npos);
  EXPECT_NE(says([](auto& f) { f.template set<std::uint64_t>(16, 5); }), "nothing");
  EXPECT_NE(says([](auto& f) { f.template set<std::uint32_t>(12, 1); }), "nothing");  // no weights
}

TEST(graph_binary, rows_columns_and_weights_that_lie_are_refused) {
  const auto says = [](bool directed, std::size_t at, auto value) {
    binary_file file(some(directed));
    return file.set(at, value).seal().refused();
  };
  const std::string again = "; write it again with graph convert";
  EXPECT_EQ(says(true, 64, 1u), "its rows do not have as many entries as there are" + again);
  EXPECT_EQ(says(true, 64 + 16, 5u), "its rows do not have as many entries as there are" + again);
  EXPECT_EQ(says(true, 64 + 4, 9u), "the row of vertex 1 ends before it begins" + again);
  EXPECT_EQ(says(true, 128, 9u), "vertex 0 has an edge to 9, which is none" + again);
  EXPECT_EQ(says(true, 128, 0u), "vertex 0 has an edge to itself" + again);
  EXPECT_EQ(says(true, 128, 2u), "the edges of vertex 0 are not in ascending order" + again);
  EXPECT_EQ(says(true, 128, 3u), "the edges of vertex 0 are not in ascending order" + again);
  for (const float bad : {-1.0f, -0.0f, std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()})
    EXPECT_NE(says(true, 192, bad).find("the edge from 0 to 1 has weight"), std::string::npos);
  EXPECT_EQ(says(false, 192, 7.0f),
            "it is undirected, but not every edge has its other direction" + again);
  EXPECT_EQ(says(true, 12, 2u),
            "it is undirected, but not every edge has its other direction" + again);
}

TEST(graph_binary, files_that_cannot_be_written_are_not_left_behind) {
  const folder f;
  const csr_graph g = some(true);
  const auto says = [&](const std::string& path) {
    return refusal([&] { write_binary(g, path); }, path + ": ");
  };
  EXPECT_EQ(says(f.at("none/g")).substr(0, 44), "cannot be written: No such file or directory");
  EXPECT_EQ(says(f.at("")).substr(0, 33), "cannot be written: Is a directory");
  if (std::filesystem::exists("/dev/full")) {
    EXPECT_EQ(says("/dev/full").substr(0, 42), "writing it failed: No space left on device");
  }
  write_binary(g, "/dev/null");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

}  // namespace
}  // namespace grosr::graphs
