// run() and step() make no heap call, take no lock and enter the kernel not once: allocator and mutex are
// interposed, and a child runs the models under seccomp's strict mode, which kills at any system call but
// read, write and exit.
#include "affine.h"
#include "doubler.h"
#include "trained.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_watching = false;
static int calls = 0;

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);

static void note() {
  calls += is_watching ? 1 : 0;
}
void* malloc(size_t size) {
  return note(), __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  return note(), __libc_calloc(count, size);
}
void* realloc(void* block, size_t size) {
  return note(), __libc_realloc(block, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  return note(), __libc_memalign(alignment, size);
}
void free(void* block) {
  return note(), __libc_free(block);
}
int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  note();
  using Function = int (*)(pthread_mutex_t*);
  static const Function real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  return real(mutex);
}
}

static demo::Affine::Arena affine_arena;
static Doubler::Arena doubler_arena;

static demo::Trained::Parameters parameters;
static demo::Trained::Trainer::Arena trainer_arena;

static bool runs(demo::Affine& affine, Doubler& doubler, demo::Trained::Trainer& trainer) {
  return affine.run() && doubler.run() && trainer.step() && trainer.evaluate();
}

static bool runs_without_calls(demo::Affine& affine, Doubler& doubler, demo::Trained::Trainer& trainer) {
  is_watching = true;
  const bool ran = runs(affine, doubler, trainer);
  is_watching = false;
  return ran && calls == 0;
}

// In a child, so that a kill can be seen.
static int run_confined(demo::Affine& affine, Doubler& doubler, demo::Trained::Trainer& trainer) {
  const pid_t child = fork();
  if (child == 0) {
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) _exit(2);
    const bool ran = runs(affine, doubler, trainer);
    syscall(SYS_exit, ran ? 0 : 1);
  }
  int result = 0;
  if (child < 0 || waitpid(child, &result, 0) != child) return 3;
  if (WIFSIGNALED(result))
    return std::printf("killed by signal %d: a run made a system call\n", WTERMSIG(result)), 4;
  return WEXITSTATUS(result);
}

int main() {
  demo::Affine affine(affine_arena);
  Doubler doubler(doubler_arena);
  parameters.reset();
  demo::Trained::Trainer trainer(trainer_arena, parameters);
  trainer.learning_rate() = 0.01F;
  for (float& each : trainer.image()) each = 0.5F;
  *trainer.labels().data() = 3;
  is_watching = true;
  free(malloc(1));
  is_watching = false;
  if (calls != 2) return std::printf("the allocator is not interposed\n"), 5;
  calls = 0;
  if (!runs_without_calls(affine, doubler, trainer))
    return std::printf("a run failed or made %d calls\n", calls), 6;
  return run_confined(affine, doubler, trainer);
}
