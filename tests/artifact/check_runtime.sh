#!/bin/sh
# The runtime stays under 16 kB of text, and refers to nothing but memory functions and the auxiliary vector.
# usage: check_runtime.sh LIBRARY
set -eu
text=$(size -t "$1" | awk '/TOTALS/ {print $1}')
echo "runtime: $text bytes"
test "$text" -gt 0 -a "$text" -lt 16384
foreign=$(nm -u "$1" | awk '$1 == "U" {print $2}' | grep -vE '^(memcpy|memset|memmove|getauxval|__getauxval|_GLOBAL_OFFSET_TABLE_|firn_rt1_.*)$' || true)
if [ -n "$foreign" ]; then
  echo "the runtime refers to: $foreign"
  exit 1
fi
