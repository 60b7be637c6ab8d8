// Bad input is one line that says where it is, what was found and what to do.
#include <gtest/gtest.h>

#include <cstring>

#include "input_files.hpp"

namespace grosr::graphs {
namespace {

constexpr const char* general = "%%MatrixMarket matrix coordinate real general\n";
constexpr const char* pattern = "%%MatrixMarket matrix coordinate pattern symmetric\n";

struct bad_file {
  std::string content, says;  ///< after the name of the file
};

void expect_refused(const folder& f, const bad_file& bad) {
  for (const std::size_t chunk : {3, 1 << 20})
    for (const unsigned threads : {1u, 4u})
      for (const std::string& content : {bad.content, gzipped(bad.content)}) {
        const std::string path = f.write("bad", content);
        const std::string says =
            refusal([&] { load(path, {}, in_small_chunks(chunk, threads)); }, path);
        EXPECT_EQ(says.substr(0, bad.says.size()), bad.says) << says << "\nof " << bad.content;
      }
}

TEST(graph_errors, of_edge_lists_name_the_line) {
  const folder f;
  const std::vector<bad_file> files{
      {"0 1\n2 x\n", ":2: \"x\" is no vertex; a line is FROM TO or FROM TO WEIGHT"},
      {"0 1\n-2 3\n", ":2: \"-2\" is no vertex"},
      {"0 1\n2\n", ":2: ends too early"},
      {"0 1\n\n# c\n2 3 4\n", ":4: \"4\" is a weight, but line 1 has none"},
      {"#\n0 1 2\n2 3\n", ":3: has no weight, but line 2 has one"},
      {"0 1 2 3\n", ":1: \"3\" is too much"},
      {"0 1 -2\n", ":1: weight \"-2\" is negative"},
      {"0 1 1\n1 2 nan\n", ":2: weight \"nan\" is no finite"},
      {"0 1 1\n1 2 inf\n", ":2: weight \"inf\" is no finite"},
      {"0 1 1\n1 2 1e39\n", ":2: weight \"1e39\" is no finite"},
      {"0 1 1\n1 2 -1e39\n", ":2: weight \"-1e39\" is no finite"},
      {"0 1 1\n1 2 0x10\n", ":2: \"x10\" is too much"},
      {"0 1 1\n1 2 heavy\n", ":2: \"heavy\" is no weight"},
      {"0 1\n0 4294967294\n",
       ":2: vertex 4294967294 is out of range; they count from 0 to "
       "4294967293"},
      {"0 1\n0 99999999999999999999999\n", ":2: vertex 99999999999999999999999 is out of range"},
      {"0,,1\n", ":1: \",1\" is no vertex"},
      {"0 1,\n", ":1: \",\" is too much"},
      {",0 1\n", ":1: \",0\" is no vertex"},
      {"0 1.5\n", ":1: \".5\" is too much"},
      {"0;1\n", ":1: \";1\" is too much"},
      {"0 1\n\x01\x02\n", ":2: \"??\" is no vertex"},
      {"<html>\n", ":1: \"<html>\" begins no graph"},
      {std::string("PK\3\4\0\0", 6), ":1: \"PK????\" begins no graph"},
      {std::string("0 1\n2 3\0 4\n", 11), ":2: \"?\" is too much"},
  };
  for (const bad_file& bad : files) expect_refused(f, bad);
}

TEST(graph_errors, of_matrices_name_the_line) {
  const folder f;
  const auto banner = [](const char* words) {
    return std::string("%%MatrixMarket ") + words + "\n1 1 0\n";
  };
  const std::vector<bad_file> files{
      {banner("matrix array real general"), ":1: a matrix that is \"array\""},
      {banner("matrix coordinate complex general"), ":1: a matrix that is \"complex\""},
      {banner("matrix coordinate real hermitian"), ":1: a matrix that is \"hermitian\""},
      {banner("matrix coordinate real skew-symmetric"), ":1: a matrix that is \"skew-symmetric\""},
      {banner("matrix coordinate real"), ":1: no banner of a matrix"},
      {banner("vector coordinate real general"), ":1: no banner of a matrix"},
      {"%%MatrixMarket", ":1: no banner of a matrix"},
      {"%%matrixmarket\n", ":1: no banner of a matrix"},
      {general, ":1: the file ends before the line of sizes"},
      {std::string(general) + "% c\n\n", ":3: the file ends before the line of sizes"},
      {std::string(general) + "3 4 1\n1 1 1\n", ":2: 3 rows and 4 columns"},
      {std::string(general) + "3 3\n", ":2: 2 numbers; the line of sizes"},
      {std::string(general) + "3 3 -1\n", ":2: \"-1\" is no size"},
      {std::string(general) + "3 3 99999999999999999999\n",
       ":2: \"99999999999999999999\" is no size"},
      {std::string(general) + "4294967295 4294967295 0\n", ":2: 4,294,967,295 vertices"},
      {std::string(general) + "3 3 5000000000\n", ":2: 5,000,000,000 edges; a graph has"},
      {std::string(pattern) + "3 3 3000000000\n", ":2: 3,000,000,000 undirected edges"},
      {std::string(general) + "4294967294 4294967294 1\n1 1 1\n",
       ":2: 4,294,967,294 vertices and 1 edges need 34.4 GB of memory"},
      {std::string(general) + "%\n3 3 2\n1 2 1\n4 1 1\n",
       ":5: vertex 4 is out of range; the size in line 3 says there are 3"},
      {std::string(general) + "3 3 2\n1 2 1\n0 1 1\n",
       ":4: vertex 0 is out of range; they count from 1"},
      {std::string(general) + "3 3 3\n1 2 1\n2 1 1\n",
       ":4: the file ends after 2 of the 3 edges that line 2"},
      {std::string(general) + "3 3 1\n1 2 1\n%\n2 1 1\n3 1 1\n",
       ":5: one edge more than the 1 that line 2"},
      {std::string(general) + "3 3 1\n1 2\n", ":3: has no value; the banner says \"real\""},
      {std::string(pattern) + "3 3 1\n1 2 1\n",
       ":3: \"1\" is too much; the banner says \"pattern\""},
      {std::string(general) + "3 3 1\n1,2,1\n", ":3: \",2,1\" is too much"},
  };
  for (const bad_file& bad : files) expect_refused(f, bad);
}

TEST(graph_errors, of_dimacs_files_name_the_line) {
  const folder f;
  const std::vector<bad_file> files{
      {"c only\n", ":1: the file ends before its line \"p sp VERTICES ARCS\""},
      {"c\na 1 2 3\n", ":2: begins with \"a\" where no \"p sp\" came before"},
      {"p max 3 3\n", ":1: is no problem of shortest paths"},
      {"p sp 3\n", ":1: is no problem of shortest paths"},
      {"p sp 3 x\n", ":1: \"x\" is no size"},
      {"p sp 3 1\nc\na 1 4 2\n",
       ":3: vertex 4 is out of range; \"p sp\" in line 1 says there are 3"},
      {"p sp 3 1\na 1 0 2\n", ":2: vertex 0 is out of range; they count from 1"},
      {"p sp 3 1\na 1 2\n", ":2: has no weight"},
      {"p sp 3 1\na 1 2 -4\n", ":2: weight \"-4\" is negative"},
      {"p sp 3 1\na 1 2 4 5\n", ":2: \"5\" is too much"},
      {"p sp 3 1\na1 2 4\n", ":2: \"a1\" is no line of a graph"},
      {"p sp 3 1\np sp 3 1\na 1 2 4\n", ":2: \"p\" is no line of a graph"},
      {"p sp 3 2\na 1 2 4\n", ":2: the file ends after 1 of the 2 edges that line 1 announces"},
      {"p sp 3 1\na 1 2 4\na 1 2 5", ":3: one edge more than the 1 that line 1 announces"},
      {"p sp 0 1\na 1 1 1\n", ":2: vertex 1 is out of range; \"p sp\" in line 1 says there are 0"},
  };
  for (const bad_file& bad : files) expect_refused(f, bad);
}

TEST(graph_errors, the_first_line_that_is_wrong_is_named) {
  const folder f;
  std::string text = "p sp 10 1000\n";
  for (int i = 0; i < 700; ++i) text += i % 100 == 57 ? "a 1 11 1\n" : "a 1 2 1\n";
  expect_refused(f, {text, ":59: vertex 11"});
  std::string lines;
  for (int i = 0; i < 1000; ++i) lines += "1 2\n";
  expect_refused(f, {lines + "1 2 3\n" + lines + "x\n", ":1001: \"3\" is a weight"});
}

TEST(graph_errors, of_files_that_cannot_be_read) {
  const folder f;
  const auto says = [&](const std::string& path) {
    return refusal([&] { load(path, {.threads = 1}); }, path);
  };
  EXPECT_EQ(says(f.at("none")).substr(0, 37), ": No such file or directory; give a f");
  EXPECT_EQ(says(f.at("")), ": is a directory; give a file with a graph");
  EXPECT_EQ(says(f.write("empty", "")), ": is empty; give a file with a graph");
  EXPECT_EQ(says(f.write("empty.gz", gzipped(""))), ": is empty; give a file with a graph");
  EXPECT_EQ(says("/dev/null"), ": is empty; give a file with a graph");
  EXPECT_EQ(refusal([] { load("a\nb", {.threads = 1}); }).substr(0, 5), "a?b: ");
  const std::string broken = gzipped("0 1\n1 2\n2 3\n4 5\n");
  for (std::size_t n = 2; n + 1 < broken.size(); ++n) {
    const std::string text = says(f.write("cut.gz", broken.substr(0, n)));
    EXPECT_NE(text.find("the gzip stream is cut off"), std::string::npos) << n << text;
  }
  std::string flipped = broken;
  flipped[flipped.size() - 6] ^= 1;  // of the checksum
  EXPECT_NE(says(f.write("flipped.gz", flipped)).find("is damaged (incorrect data check)"),
            std::string::npos);
  EXPECT_NE(says(f.write("more.gz", broken + "more")).find("is damaged"), std::string::npos);
}

TEST(graph_errors, lines_without_end_are_refused) {
  const folder f;
  const std::string path = f.write("long", "1 2\n#" + std::string(1'200'000, 'x'));
  EXPECT_EQ(refusal([&] { load(path, {}, in_small_chunks(1000, 4)); }, path),
            ":2: a line of more than 1,048,576 bytes; is this a file of text?");
}

TEST(graph_errors, lists_of_few_edges_with_huge_numbers_are_refused) {
  const folder f;
  const auto says = [&](const std::string& text) {
    const std::string path = f.write("list", text);
    return refusal([&] { load(path, {}, reading()); }, path);
  };
  const std::string advice =
      "; number its vertices from 0 on without gaps, or give a format that says how many there "
      "are, such as Matrix Market";
  EXPECT_EQ(says("0 1\n0 2147483648\n"), ": 2 edges, and vertices up to 2,147,483,648" + advice);
  EXPECT_EQ(says("16777216 3\n"), ": 1 edges, and vertices up to 16,777,216" + advice);
  EXPECT_EQ(says("16777215 3\n"), "nothing");
}

TEST(graph_errors, graphs_larger_than_memory_are_refused_before_they_are_allocated) {
  const folder f;
  const auto says = [](const std::string& name, std::uint64_t memory) {
    reading how;
    how.memory = memory;
    return refusal([&] { load(name, {}, how); }, name);
  };
  const std::string many = f.write("many", "0 1\n1 99999999\n");
  EXPECT_EQ(says(many, 1 << 20),
            ":2: 100,000,000 vertices and 2 edges need 800 MB of memory, of which 1.05 MB is free; "
            "take a smaller graph, or a machine with more");
  EXPECT_NE(says("kronecker:26", 1 << 20).find("need 17.7 GB of memory"), std::string::npos)
      << says("kronecker:26", 1 << 20);
  EXPECT_NE(says("chain:1000000", 1 << 20).find("need 12.0 MB of memory"), std::string::npos);
  write_binary(load("chain:1000000").g, f.at("chain"));
  EXPECT_NE(says(f.at("chain"), 1 << 20).find("need 12.0 MB of memory"), std::string::npos);
  EXPECT_EQ(says(f.at("chain"), 1 << 24), "nothing");
}

}  // namespace
}  // namespace grosr::graphs
