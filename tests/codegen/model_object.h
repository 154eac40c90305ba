// Compiles programs to objects, links them into shared libraries and calls them in this process.
#pragma once

#include "compiler/codegen/codegen.h"
#include "compiler/kernel/builder.h"
#include "include/firn/abi.h"

#include <string>
#include <vector>

namespace firn::test {

// The target that this machine can run: the host's own CPU.
Machine host_target();
Machine target_of(const std::string& triple, const std::string& cpu, const std::string& features = "");
codegen::CodegenOptions options_for(const Machine& target);

// A program of one kernel whose parameters, in order, are inputs (read) and outputs (written) of the program.
kernel::Program program_of(std::unique_ptr<kernel::Kernel> kernel);

// A folder for files of one test, removed at the end.
class TemporaryFolder {
public:
  TemporaryFolder();
  ~TemporaryFolder();
  std::string file(const std::string& name) const { return path_ + "/" + name; }

private:
  std::string path_;
};

// An object linked and loaded.
class LoadedObject {
public:
  LoadedObject(const kernel::Program& program, const codegen::CodegenOptions& options);
  ~LoadedObject();
  LoadedObject(const LoadedObject&) = delete;
  // Without `weights` those that the object holds.
  int run(const std::vector<const void*>& inputs, const std::vector<void*>& outputs, void* arena = nullptr,
          const unsigned char* weights = nullptr, const std::vector<size_t>& extents = {},
          const firn_executor* executor = nullptr) const;
  const unsigned char* weights() const;
  // Calls the function that prepares the weights, which CodegenOptions::prepare_symbol names "model_prepare".
  int prepare(void* packed) const;
  const codegen::ObjectFacts& facts() const { return facts_; }
  std::string disassembly() const;
  std::string path() const { return folder_.file("model.o"); }

private:
  TemporaryFolder folder_;
  codegen::ObjectFacts facts_;
  void* library_ = nullptr;
  void* run_ = nullptr;
  void* weights_ = nullptr;
};

// An object of another architecture, linked with freestanding_driver.c and run by an emulator.
class EmulatedObject {
public:
  EmulatedObject(const kernel::Program& program, const codegen::CodegenOptions& options);
  // Whether this machine has the emulator and compiler for that target.
  static bool available(const Machine& target);
  // Sizes of `outputs` are those of the vectors on entry.
  void run(const std::vector<std::vector<char>>& inputs, std::vector<std::vector<char>>& outputs) const;

private:
  TemporaryFolder folder_;
  std::string emulator_;
  bool is_board_ = false; // it reads and writes files in place of streams
};

// The output of a shell command; fails the test when the command fails.
std::string shell(const std::string& command);

} // namespace firn::test
