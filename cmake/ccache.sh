#!/bin/sh
# Compiles through ccache: ccache.sh CCACHE COMPILER ARGUMENTS... It caches what includes precompiled headers only if it
# may trust their macros; they are large, and it hashes each once. Where a precompiled header exists already, ccache takes
# that for what the new one is made of and answers with an outdated one: the old file goes first.
export CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_INODECACHE=1
for argument; do
  case $previous,$argument in -o,*.gch | -o,*.pch) rm -f "$argument" ;; esac
  previous=$argument
done
exec "$@"
