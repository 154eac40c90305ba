// The promises of a training step's classes: parameters that several instances share, files of tensors, a
// training that goes on from files as if nothing had been, batches that are no numbers, equal bits on any
// number of threads, and memory that ends where it should.
#include "digits.h"
#include "drawn_digits.h"

#include <firn/thread_pool.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace {

constexpr std::size_t kBatch = 6; // an upper bound of the object's
using Bytes = std::vector<unsigned char>;

int failures = 0;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::printf("%s\n", what);
  ++failures;
}

// Memory of exactly those bytes in front of a page that nothing may touch, filled with a pattern.
class Guarded {
public:
  Guarded(std::size_t bytes, std::size_t alignment) : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    bytes = (bytes + alignment - 1) / alignment * alignment;
    size_ = (bytes + page_ - 1) / page_ * page_ + 2 * page_;
    all_ = static_cast<unsigned char*>(
        mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(all_, page_, PROT_NONE);
    mprotect(all_ + size_ - page_, page_, PROT_NONE);
    memory = all_ + size_ - page_ - bytes;
    std::memset(memory, 0xa5, bytes);
  }
  ~Guarded() { munmap(all_, size_); }
  Guarded(const Guarded&) = delete;
  unsigned char* memory;

private:
  std::size_t page_, size_;
  unsigned char* all_;
};

struct Training {
  Guarded block{sizeof(Digits::Parameters), alignof(Digits::Parameters)},
      arena{Digits::Trainer::arena_bytes, Digits::Trainer::arena_alignment};
  Digits::Parameters& parameters = *new (block.memory) Digits::Parameters;
  Digits::Trainer trainer{firn::ByteSpan(arena.memory, Digits::Trainer::arena_bytes), parameters};

  Training() {
    parameters.reset();
    trainer.learning_rate() = 0.01F;
    expect(static_cast<bool>(trainer.status()), trainer.status().message());
  }
  // Trains on batches that the number decides.
  void train(int first, int end, firn::Executor* executor = nullptr) {
    for (int i = first; i < end; ++i) {
      give_batch(i);
      const firn::Status done = executor ? trainer.step(*executor) : trainer.step();
      expect(static_cast<bool>(done), "a step is made");
    }
  }
  void give_batch(int number) {
    const std::size_t batch = static_cast<std::size_t>(number) * 5 % kBatch + 1;
    drawn_seed = static_cast<std::uint32_t>(number) * 977U + 5U;
    expect(static_cast<bool>(trainer.set_batch(static_cast<std::ptrdiff_t>(batch))), "the batch is set");
    for (std::size_t k = 0; k < batch; ++k) {
      const int digit = (number + static_cast<int>(k) * 3) % 10;
      trainer.labels().data()[k] = digit;
      draw(digit, trainer.image().data() + k * kSize * kSize);
    }
  }
  Bytes parameter_file() const {
    Bytes bytes(Digits::Parameters::saved_bytes);
    expect(static_cast<bool>(parameters.save(bytes)), "parameters are saved");
    return bytes;
  }
  Bytes state_file() const {
    Bytes bytes(Digits::Trainer::saved_state_bytes);
    expect(static_cast<bool>(trainer.save_state(bytes)), "states are saved");
    return bytes;
  }
};

void check_resume() {
  Training whole, first;
  const Bytes at_start = whole.parameter_file();
  whole.train(0, 9);
  first.train(0, 4);
  const Bytes parameters = first.parameter_file(), state = first.state_file();
  Training second;
  expect(second.parameter_file() == at_start, "reset() gives the values of the object");
  expect(second.parameters.load(parameters) && second.trainer.load_state(state), "files are loaded");
  expect(second.trainer.step_count() == 4, "the count is in the file");
  second.train(4, 9);
  expect(second.parameter_file() == whole.parameter_file(),
         "a resumed training ends with the same parameters");
  expect(second.state_file() == whole.state_file(), "a resumed training ends with the same states");
  expect(second.parameter_file() != at_start, "training changes the parameters");
  second.trainer.reset();
  expect(second.trainer.step_count() == 0 && second.parameter_file() == whole.parameter_file(),
         "reset() of the trainer leaves the parameters alone");
}

void check_refusals() {
  Training training;
  training.train(0, 2);
  const Bytes before = training.parameter_file(), state = training.state_file();
  auto refuses = [&](Bytes file, const char* what) {
    expect(training.parameters.load(file).code() == FIRN_STATUS_TENSORS_UNFIT, what);
    expect(training.parameter_file() == before, "a file that is refused changes nothing");
  };
  refuses({}, "no bytes are refused");
  refuses(state, "states are no parameters");
  Bytes changed = before;
  changed.pop_back();
  refuses(changed, "a file that is cut short is refused");
  changed = before;
  changed.push_back(0);
  refuses(changed, "a file that goes on is refused");
  for (const char* word : {"F32", "conv1.weight", "[10", "shape", "\"firn\":\"1"}) {
    changed = before;
    const std::size_t length = std::strlen(word);
    for (std::size_t i = 8; i + length < changed.size(); ++i)
      if (std::memcmp(&changed[i], word, length) == 0) {
        changed[i + length - 1] ^= 1;
        break;
      }
    expect(changed != before, word);
    refuses(changed, "a header with another word is refused");
  }
  changed = before;
  changed[7] = 0x7f;
  refuses(changed, "a header of endless length is refused");
  Bytes small(Digits::Parameters::saved_bytes - 1, 7);
  expect(training.parameters.save(small).code() == FIRN_STATUS_TENSORS_UNFIT &&
             small == Bytes(small.size(), 7),
         "too little memory is refused");
  expect(training.trainer.load_state(before).code() == FIRN_STATUS_TENSORS_UNFIT &&
             training.state_file() == state,
         "parameters are no states");
}

// Metadata of other programs, or none, as other libraries write them.
void check_foreign_metadata() {
  Training training;
  training.train(0, 2);
  const Bytes own = training.parameter_file();
  const std::string metadata = "\"__metadata__\":{\"firn\":\"1\"},";
  const std::string text(own.begin() + 8, own.end());
  const std::size_t data = own.size() - 8 - (own[0] + 256U * own[1]);
  expect(data < own.size() && text.compare(1, metadata.size(), metadata) == 0,
         "the header begins with metadata");
  for (std::string other :
       {"", "\"__metadata__\":{\"format\":\"pt\"},", "\"__metadata__\":{\"a\":\"}\\\"}\",\"firn\":\"1\"},"}) {
    std::string header =
        "{" + other + text.substr(1 + metadata.size(), text.size() - data - 1 - metadata.size());
    while (header.size() % 8 != 0) header += ' ';
    Bytes file(8, 0);
    file[0] = static_cast<unsigned char>(header.size() & 0xff);
    file[1] = static_cast<unsigned char>(header.size() >> 8);
    file.insert(file.end(), header.begin(), header.end());
    file.insert(file.end(), own.end() - static_cast<std::ptrdiff_t>(data), own.end());
    Training loaded;
    expect(static_cast<bool>(loaded.parameters.load(file)), "a file with other metadata is loaded");
    expect(loaded.parameter_file() == own, "its tensors are read");
  }
}

// Inference between steps reads what was just trained, and disturbs nothing.
void check_inference_between() {
  Training alone, shared;
  alone.train(0, 6);
  Guarded memory(Digits::arena_bytes, Digits::arena_alignment);
  Digits digits(firn::ByteSpan(memory.memory, Digits::arena_bytes), shared.parameters);
  expect(static_cast<bool>(digits.status()) && static_cast<bool>(digits.set_batch(1)), "the model is ready");
  drawn_seed = 99;
  draw(4, digits.image().data());
  float before = -1;
  for (int i = 0; i < 6; ++i) {
    shared.train(i, i + 1);
    expect(static_cast<bool>(digits.run()), "the model runs");
    expect(digits.probabilities().data()[4] != before, "the model reads what was trained");
    before = digits.probabilities().data()[4];
    expect(static_cast<bool>(shared.trainer.evaluate()), "a loss is computed");
  }
  expect(shared.parameter_file() == alone.parameter_file() && shared.state_file() == alone.state_file(),
         "runs between steps change nothing");
  Digits::Parameters copy = shared.parameters;
  shared.train(6, 7);
  Bytes bytes(Digits::Parameters::saved_bytes);
  expect(copy.save(bytes) && bytes == alone.parameter_file(), "a copy of parameters is independent");
  const Digits::Parameters& read = copy;
  expect(read.dense_bias().data()[0] == copy.dense_bias().data()[0], "constant parameters have views");
}

void check_no_number() {
  Training training;
  training.train(0, 3);
  const Bytes parameters = training.parameter_file(), state = training.state_file();
  for (float wrong : {NAN, INFINITY}) {
    training.give_batch(3);
    training.trainer.image().data()[5] = wrong;
    const firn::Status done = training.trainer.step();
    expect(done.code() == FIRN_STATUS_NOT_FINITE && std::strstr(done.message(), "loss"),
           "a loss that is no number is told");
    unsigned bits = 0;
    const float loss = training.trainer.loss();
    std::memcpy(&bits, &loss, sizeof bits);
    expect((bits & 0x7f800000U) == 0x7f800000U, "the loss is no number");
    expect(training.parameter_file() == parameters && training.state_file() == state,
           "such a step changes no byte");
    expect(static_cast<bool>(training.trainer.evaluate()), "@evaluate tells the loss as it is");
  }
  training.train(3, 4);
  expect(training.parameter_file() != parameters, "training goes on");
}

void check_threads() {
  Training alone;
  alone.train(0, 5);
  for (std::size_t threads : {1, 2, 3, 5}) {
    firn::ThreadPool pool(threads);
    firn::Executor executor(pool);
    Training shared;
    shared.train(0, 5, &executor);
    expect(shared.parameter_file() == alone.parameter_file() && shared.state_file() == alone.state_file(),
           "steps of several threads have equal bits");
  }
}

void check_life() {
  Training training;
  training.train(0, 1);
  Digits::Trainer moved(static_cast<Digits::Trainer&&>(training.trainer));
  Digits::Trainer& gone = training.trainer;
  expect(gone.step().code() == FIRN_STATUS_NOT_INITIALISED &&
             gone.evaluate().code() == FIRN_STATUS_NOT_INITIALISED,
         "a trainer that is moved from does nothing");
  gone.learning_rate() = 1;
  gone.reset();
  Bytes bytes(Digits::Trainer::saved_state_bytes);
  expect(gone.loss() == 0 && gone.step_count() == 0 && !gone.save_state(bytes) && !gone.load_state(bytes) &&
             !gone.image().data() && !gone.labels().data(),
         "it has no tensors");
  expect(moved.step_count() == 1 && moved.step() && moved.step_count() == 2, "the other one goes on");
  expect(moved.learning_rate() == 0.01F, "with its learning rate");
  unsigned char little[64];
  Digits::Trainer small(firn::ByteSpan(little, sizeof little), training.parameters);
  expect(small.step().code() == FIRN_STATUS_ARENA_TOO_SMALL &&
             small.status().code() == FIRN_STATUS_ARENA_TOO_SMALL,
         "little memory is told");
  const Bytes parameters = training.parameter_file();
  static Digits::Trainer::Arena arena;
  Digits::Trainer fresh(arena, training.parameters);
  static Digits::Arena other;
  Digits digits(other, training.parameters);
  expect(training.parameter_file() == parameters, "constructors leave parameters alone");
  expect(fresh.step_count() == 0 && fresh.learning_rate() == 0 && fresh.loss() == 0, "a trainer begins at 0");
  static_assert(sizeof(Digits::Parameters) == Digits::parameter_bytes);
  static_assert(Digits::arena_bytes < Digits::Trainer::arena_bytes);
  static_assert(Digits::Trainer::moment_bytes >= 2 * 8650 * 4 && Digits::Trainer::tape_bytes > 0);
  static_assert(Digits::Trainer::step_flops > 2 * Digits::Trainer::evaluate_flops);
}

} // namespace

int main() {
  check_resume();
  check_refusals();
  check_foreign_metadata();
  check_inference_between();
  check_no_number();
  check_threads();
  check_life();
  if (failures == 0) std::printf("ok\n");
  return failures != 0;
}
