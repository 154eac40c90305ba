#!/bin/sh
# cortex_m.sh FIRN MODEL: an object for Cortex-M4 refers to nothing but memcpy, memset, memmove and the Firn runtime.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1" compile "$2" -o "$work/net" --class t::Net -q --target thumbv7em-none-eabihf -mcpu=cortex-m4 -Os
bad=$(nm -u "$work/net.o" 2>/dev/null | awk '{print $NF}' | grep -vE '^(memcpy|memset|memmove|firn_rt2_.*)$' || true)
[ -z "$bad" ] || { echo "undefined symbols: $bad"; exit 1; }
