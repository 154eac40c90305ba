#!/bin/sh
# Models whose tensors are called as every macro and keyword that the compilers at hand know, and as Firn's own names: their
# headers compile behind all standard headers, as C and C++ of every age. Functions of C do not meet those of its libraries.
# usage: check_names.sh NAME_HEADERS INCLUDE
set -eu
tool=$1
include=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
c_headers="aio arpa/inet assert complex cpio ctype dirent dlfcn errno fcntl fenv float fmtmsg fnmatch ftw glob grp iconv
  inttypes iso646 langinfo libgen limits locale math monetary mqueue net/if netdb netinet/in netinet/tcp nl_types poll
  pthread pwd regex sched search semaphore setjmp signal spawn stdalign stdarg stdbit stdbool stdckdint stddef stdint
  stdio stdlib stdnoreturn string strings sys/ioctl sys/ipc sys/mman sys/msg sys/param sys/resource sys/select sys/sem
  sys/shm sys/socket sys/stat sys/statvfs sys/time sys/times sys/types sys/uio sys/un sys/utsname sys/wait syslog tar
  termios time uchar ulimit unistd utime utmpx wchar wctype wordexp"
c_only_headers="stdatomic tgmath threads"
cpp_headers="algorithm any array atomic bitset charconv chrono complex condition_variable csignal cstdlib deque exception
  filesystem functional future iostream iterator limits locale memory mutex new numeric optional random ratio regex
  scoped_allocator shared_mutex stdexcept string string_view system_error thread tuple type_traits typeindex typeinfo
  unordered_map utility valarray variant vector"
words="alignas alignof and asm auto bitand bool break case catch char char8_t class co_await concept const consteval
  constexpr constinit continue contract_assert decltype default delete do double dynamic_cast else enum explicit export
  extern false final float for friend goto if import inline int long module mutable namespace new noexcept not nullptr
  operator or override private protected public reflexpr register requires restrict return short signed sizeof static
  static_assert static_cast struct switch synchronized template this thread_local throw true try typedef typeid typename
  typeof typeof_unqual union unsigned using virtual void volatile wchar_t while xor _Bool _Complex __attribute__ __func__
  _Atomic std firn main names Net net NET nEt ARENA Arena aRENA arena_bytes FIRN_ABI FIRN_INLINE FIRN_HIDDEN firn_status
  firn_rt2_check_cpu FIRN_STATUS_OK FIRN_names firn_executor memcpy memset run RUN run_with reset status info init prepare
  bind_input bind_output input output inputs outputs states data model Facts Weights weights WEIGHTS Inputs instance_
  embedded Status View Executor x X bind_x x_dim0 names_Net names_net_run INPUT__0 x__0 __x _X"

includes() { # HEADERS...
  for header in "$@"; do
    echo "#if __has_include(<$header>)
#include <$header>
#endif"
  done
}
in_c=$(for header in $c_headers; do echo "$header.h"; done)
in_c_only=$(for header in $c_only_headers; do echo "$header.h"; done)
includes $in_c $in_c_only >"$scratch/all_c.h"
includes $cpp_headers $in_c >"$scratch/all_cpp.h"

compilers=
for compiler in gcc clang; do
  command -v $compiler >/dev/null 2>&1 && compilers="$compilers $compiler"
done
test -n "$compilers"
for compiler in $compilers; do
  $compiler -D_GNU_SOURCE -x c -dM -E "$scratch/all_c.h"
  $compiler -D_GNU_SOURCE -std=gnu++17 -x c++ -dM -E "$scratch/all_cpp.h"
done | sed -n 's/^#define \([A-Za-z0-9_]*\).*/\1/p' >"$scratch/macros"
{
  grep '^[^_]' "$scratch/macros"
  for word in $words; do echo "$word"; done
} | sort -u >"$scratch/names"
"$tool" headers <"$scratch/names" >"$scratch/names.h"

echo '#include "all_c.h"
#include "names.h"
int main(void) { return NAMES_NET0_ARENA_BYTES == 64 + 63 ? 0 : 1; }' >"$scratch/use.c"
echo '#include "all_cpp.h"
#include "names.h"
#include <firn/owned.h>
int main() { return firn::Owned<names::Net0>().status() ? 0 : 1; }' >"$scratch/use.cpp"
for compiler in $compilers; do
  for standard in c99 c11 c17 c2x; do
    $compiler -std=$standard -D_GNU_SOURCE -Werror "-I$include" -fsyntax-only "$scratch/use.c"
  done
  for standard in c++17 c++20; do
    $compiler -std=$standard -Werror "-I$include" -fsyntax-only "$scratch/use.cpp"
  done
done
echo "$(wc -l <"$scratch/names") names compile with:$compilers"

# What the headers of C and POSIX declare: functions, types and tags. In preprocessed text all else starts with '_'.
first=${compilers# }
first=${first%% *}
$first -std=c11 -D_XOPEN_SOURCE=700 -x c -E "$scratch/all_c.h" | grep -v '^#' | tr '\n' ' ' >"$scratch/declarations"
{
  grep -oE '[^A-Za-z0-9_][a-z][a-z0-9_]* ?\(' "$scratch/declarations" | tr -d ' (*'
  grep -oE '(struct|union|enum) [a-z][a-z0-9_]*' "$scratch/declarations" | sed 's/.* //'
  grep -oE 'typedef[^;{]* [a-z][a-z0-9_]*;' "$scratch/declarations" | sed 's/.* //; s/;//'
  $first -std=c11 -D_XOPEN_SOURCE=700 -x c -dM -E "$scratch/all_c.h" | sed -n 's/^#define \([a-z][a-z0-9_]*\).*/\1/p'
} | grep -E '^[a-z][a-z0-9_]*$' | sort -u >"$scratch/library"
"$tool" prefixes <"$scratch/library"
