// Texts of status codes, kept in static storage so that reporting an error needs neither memory nor
// formatting.
#include "firn/abi.h"
#include "firn/cpu_features.h"

namespace {

#if defined(__x86_64__) || defined(_M_X64)
#define FIRN_FEATURE_MESSAGE(number, name, llvm, text, leaf, reg, bit, state)                                \
  case number:                                                                                               \
    return "the model needs " text ", which this CPU or operating system lacks";
#define FIRN_FEATURE_MESSAGES FIRN_X86_64_FEATURES(FIRN_FEATURE_MESSAGE)
#elif defined(__aarch64__) || defined(_M_ARM64)
#define FIRN_FEATURE_MESSAGE(number, name, llvm, text, word, bit)                                            \
  case number:                                                                                               \
    return "the model needs " text ", which this CPU or operating system lacks";
#define FIRN_FEATURE_MESSAGES FIRN_AARCH64_FEATURES(FIRN_FEATURE_MESSAGE)
#elif defined(__arm__) || defined(_M_ARM)
#define FIRN_FEATURE_MESSAGE(number, name, llvm, text, word, bit)                                            \
  case number:                                                                                               \
    return "the model needs " text ", which this CPU or operating system lacks";
#define FIRN_FEATURE_MESSAGES FIRN_ARM_FEATURES(FIRN_FEATURE_MESSAGE)
#else
#define FIRN_FEATURE_MESSAGES
#endif

const char* missing_feature(int number) noexcept {
  // This is no case below: its number is so far from the others that the jump table would be longer.
  if (number == 0xfe) return "the object has no code for the CPU that was asked for";
  switch (number) {
    FIRN_FEATURE_MESSAGES
  default: return "the model was compiled for another CPU";
  }
}

const char* out_of_range(int what) noexcept {
  switch (what) {
  case 1: return "a dim was to be set to a value that the model was not compiled for: refusal() says which";
  case 2: return "the strings of a run take more bytes than the model was compiled for (--text-bytes)";
  case 3: return "a string has more pieces than the model was compiled for (--text-pieces)";
  case 4: return "a string that the model casts to a number is none";
  case 5: return "the run came to a branch that does not fit the shapes the model was compiled for";
  default: return "an index or size is beyond its bound";
  }
}

} // namespace

extern "C" const char* firn_rt2_status_message(firn_status status) FIRN_NOEXCEPT {
  switch (status & 0xff) {
  case FIRN_STATUS_OK: return "ok";
  case FIRN_STATUS_NOT_INITIALISED: return "the model was not initialised or has been moved from";
  case FIRN_STATUS_UNSUPPORTED_CPU: return missing_feature((status >> 8) & 0xff);
  case FIRN_STATUS_ARENA_TOO_SMALL: return "the arena is smaller than the model's arena_bytes";
  case FIRN_STATUS_ARENA_MISALIGNED: return "the arena is not aligned and has no room for aligning it";
  case FIRN_STATUS_WEIGHTS_SIZE: return "the bound weights are not weight_bytes long";
  case FIRN_STATUS_WEIGHTS_MISALIGNED: return "the bound weights are not aligned to 64 bytes";
  case FIRN_STATUS_NOT_BOUND: return "an external input or output is not bound to a buffer";
  case FIRN_STATUS_NO_MEMORY: return "the model got no memory for its arena";
  case FIRN_STATUS_OUT_OF_RANGE: return out_of_range((status >> 8) & 0xff);
  case FIRN_STATUS_CUSTOM_OP: return "an operator that the program computes itself failed";
  case FIRN_STATUS_NO_WEIGHTS: return "the model embeds no weights and none were bound";
  case FIRN_STATUS_WEIGHTS_UNFIT:
    return "the raw weights differ from the object's own in tensors that its code depends on";
  case FIRN_STATUS_NOT_FINITE: return "the loss is infinite or no number: the step changed nothing";
  case FIRN_STATUS_TENSORS_UNFIT:
    return "saved tensors are not those of the model, or the memory for them has another size";
  case FIRN_STATUS_NO_TILES: return "the operating system grants the process no AMX registers";
  default: return "unknown status";
  }
}
