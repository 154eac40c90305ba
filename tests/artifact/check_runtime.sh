#!/bin/sh
# The runtime stays under 28 kB of text, and refers to nothing but memory functions and the auxiliary vector; the pool of
# threads, which is linked only when it is used, to the system's threads as well.
# usage: check_runtime.sh LIBRARY
set -eu
text=$(size -t "$1" | awk '/TOTALS/ {print $1}')
echo "runtime: $text bytes"
test "$text" -gt 0 -a "$text" -lt 28672
memory='memcpy|memset|memmove|memcmp|getauxval|__getauxval|_GLOBAL_OFFSET_TABLE_|firn_rt2_.*'
threads='malloc|free|posix_memalign|sysconf|pthread_.*|sched_getaffinity|__sched_cpucount|__tls_get_addr'
refers() { nm -A -u "$1" | awk '$(NF - 1) == "U" {print $1, $NF}'; }
foreign=$(refers "$1" | grep -v 'thread_pool' | awk '{print $2}' | grep -vxE "$memory" || true)
foreign="$foreign$(refers "$1" | grep 'thread_pool' | awk '{print $2}' | grep -vxE "$memory|$threads" || true)"
if [ -n "$foreign" ]; then
  echo "the runtime refers to: $foreign"
  exit 1
fi
