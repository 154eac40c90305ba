// Mapping of files, and that external data never comes from outside the model's folder.
#include "compiler/support/mapped_file.h"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace firn {
namespace {

namespace fs = std::filesystem;

// A folder `model` with files in it and a file `secret` beside it, removed at the end.
class Folders {
public:
  Folders() {
    std::string pattern = (fs::temp_directory_path() / "firn_mapped_file_XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    root_ = pattern;
    fs::create_directories(root_ / "model" / "deep");
    fs::create_directories(root_ / "model_of_another");
    write("secret", "secret");
    write("model/weights.bin", "weights");
    write("model/deep/more.bin", "more");
    write("model/empty.bin", "");
    write("model_of_another/weights.bin", "theirs");
  }
  ~Folders() { fs::remove_all(root_); }
  std::string model() const { return (root_ / "model").string(); }
  const fs::path& root() const { return root_; }

private:
  void write(const std::string& path, const std::string& content) { std::ofstream(root_ / path) << content; }
  fs::path root_;
};

std::string content(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

std::string refusal(const Folders& folders, const std::string& relative, Fault fault = Fault::Model) {
  auto file = MappedFile::open_beneath(folders.model(), relative);
  REQUIRE_FALSE(file);
  CHECK(file.error().fault == fault);
  return file.error().message;
}

TEST_CASE("files map with their content") {
  Folders folders;
  auto file = MappedFile::open(folders.model() + "/weights.bin");
  REQUIRE(file);
  CHECK(content(**file) == "weights");
  auto empty = MappedFile::open(folders.model() + "/empty.bin");
  REQUIRE(empty);
  CHECK((*empty)->bytes().empty());
  CHECK(content(*MappedFile::from_bytes("text", "abc")) == "abc");
}

TEST_CASE("missing files and folders are usage errors that name the path") {
  Folders folders;
  auto missing = MappedFile::open(folders.model() + "/absent.onnx");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().fault == Fault::Usage);
  CHECK(missing.error().message.find("absent.onnx") != std::string::npos);
  CHECK_FALSE(MappedFile::open(folders.model()));
}

TEST_CASE("external data opens beneath the folder") {
  Folders folders;
  for (const char* path : {"weights.bin", "./weights.bin", "deep/../weights.bin", "deep//../weights.bin"}) {
    auto file = MappedFile::open_beneath(folders.model(), path);
    REQUIRE(file);
    CHECK(content(**file) == "weights");
  }
  CHECK(content(**MappedFile::open_beneath(folders.model() + "/", "deep/more.bin")) == "more");
}

TEST_CASE("a link that stays beneath the folder is followed") {
  Folders folders;
  fs::create_symlink("deep/more.bin", folders.root() / "model" / "inner");
  CHECK(content(**MappedFile::open_beneath(folders.model(), "inner")) == "more");
}

TEST_CASE("external data never leaves the folder") {
  Folders folders;
  CHECK(refusal(folders, "../secret").find("leaves the model's folder") != std::string::npos);
  CHECK(refusal(folders, "deep/../../secret").find("leaves the model's folder") != std::string::npos);
  CHECK(refusal(folders, "absent/../../secret").find("leaves the model's folder") != std::string::npos);
  // A sibling whose name begins like the folder's is outside.
  CHECK(refusal(folders, "../model_of_another/weights.bin").find("leaves") != std::string::npos);
  CHECK(refusal(folders, (folders.root() / "model/weights.bin").string()).find("absolute") !=
        std::string::npos);
  CHECK(refusal(folders, "/etc/passwd").find("absolute") != std::string::npos);
  CHECK(refusal(folders, "").find("empty") != std::string::npos);
  CHECK(refusal(folders, std::string("weights.bin\0x", 13)).find("broken") != std::string::npos);
  CHECK(refusal(folders, "absent.bin", Fault::Usage).find("absent.bin") != std::string::npos);
}

TEST_CASE("links that leave the folder are refused") {
  Folders folders;
  fs::path model = folders.root() / "model";
  fs::create_symlink("../secret", model / "link");
  fs::create_directory_symlink("..", model / "up");
  fs::create_symlink("/etc/passwd", model / "passwd");
  fs::create_symlink("link", model / "link_to_link");
  fs::create_symlink("self", model / "self");
  for (const char* path : {"link", "up/secret", "passwd", "link_to_link"})
    CHECK(refusal(folders, path).find("leaves the model's folder") != std::string::npos);
  CHECK(refusal(folders, "self").find("self") != std::string::npos);
}

TEST_CASE("only regular files are external data") {
  Folders folders;
  REQUIRE(::mkfifo((folders.root() / "model" / "pipe").c_str(), 0600) == 0);
  CHECK(refusal(folders, "pipe").find("not a regular file") != std::string::npos);
  CHECK(refusal(folders, "deep").find("not a regular file") != std::string::npos);
  refusal(folders, ".");
}

TEST_CASE("released pages read the same again") {
  Folders folders;
  std::string path = folders.model() + "/large.bin";
  std::string pages(1 << 16, 'x');
  std::ofstream(path) << pages;
  auto file = MappedFile::open(path);
  REQUIRE(file);
  (*file)->release(100, pages.size() - 200);
  (*file)->release(0, 1);
  CHECK(content(**file) == pages);
}

} // namespace
} // namespace firn
