// SHA-256 against the standard's examples and every padding case.
#include "compiler/support/sha256.h"

#include "compiler/support/file_digest.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <vector>

namespace firn {
namespace {

std::string hash(const std::string& text) {
  return sha256_hex(std::as_bytes(std::span(text)));
}

TEST_CASE("sha256 of the standard's examples") {
  CHECK(hash("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(hash("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(hash(std::string(1000000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("sha256 around the lengths where padding takes another block") {
  CHECK(hash(std::string(55, 'a')) == "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
  CHECK(hash(std::string(56, 'a')) == "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
  CHECK(hash(std::string(64, 'a')) == "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
}

TEST_CASE("sha256 of pieces is that of the whole") {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(i * 7);
  const auto bytes = std::as_bytes(std::span(text));
  for (size_t piece : {size_t{1}, size_t{3}, size_t{63}, size_t{64}, size_t{65}, size_t{129}, size_t{1000}})
    for (size_t size : {0u, 1u, 55u, 64u, 200u, 1000u}) {
      Sha256 sha;
      for (size_t at = 0; at < size; at += piece) sha.add(bytes.subspan(at, std::min(piece, size - at)));
      CHECK(sha.hex() == sha256_hex(bytes.first(size)));
    }
}

TEST_CASE("the tree of digests sees every byte and the length") {
  std::vector<std::byte> bytes(size_t{9} << 20);
  auto tree = [&](size_t size) { return sha256_tree_hex(std::span(bytes).first(size)); };
  const std::string zeros = tree(bytes.size());
  CHECK(tree(bytes.size()) == zeros);
  CHECK(tree(bytes.size() - 1) != zeros);
  CHECK(tree(0) != tree(1));
  for (size_t at : {size_t{0}, size_t{4} << 20, bytes.size() - 1}) {
    bytes[at] = std::byte{1};
    CHECK(tree(bytes.size()) != zeros);
    bytes[at] = std::byte{0};
  }
}

TEST_CASE("the digest of a file is that of its bytes") {
  for (size_t size : {size_t{0}, size_t{100}, (size_t{4} << 20) + 3, size_t{9} << 20}) {
    std::string bytes(size, 'x');
    const std::string expected = hash(bytes);
    FileDigest digest(MappedFile::from_bytes("file", std::move(bytes)));
    const FileDigest copy = digest;
    digest = FileDigest();
    CHECK(copy.hex() == expected);
    CHECK(digest.hex().empty());
  }
  CHECK(FileDigest("known").hex() == "known");
}

} // namespace
} // namespace firn
