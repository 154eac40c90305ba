// Stands in for libFuzzer where there is none: runs the target on every file beneath the folders that are
// named, and on the start of each, cut at 64 places.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv) {
  size_t files = 0;
  for (int i = 1; i < argc; ++i) {
    if (argv[i][0] == '-') continue; // libFuzzer's options
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      std::string bytes{std::istreambuf_iterator<char>(file), {}};
      for (size_t cut = 1; cut <= 64; ++cut)
        LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size() * cut / 64);
      ++files;
    }
  }
  std::printf("%zu files\n", files);
  return files > 0 ? 0 : 1;
}
