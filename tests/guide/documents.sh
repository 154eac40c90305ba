#!/bin/bash
# documents.sh FIRN: the manual page has no warning; completions are read by their shells, as far as these are installed,
# and offer every verb and every option that --help prints.
set -eu
firn=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$*"; exit 1; }

"$firn" documents man > "$work/firn.1"
if command -v mandoc > /dev/null; then
  mandoc -T lint -W warning "$work/firn.1" || fail "mandoc has warnings"
fi
if command -v groff > /dev/null; then
  [ -z "$(groff -man -ww -z "$work/firn.1" 2>&1)" ] || fail "groff has warnings: $(groff -man -ww -z "$work/firn.1" 2>&1)"
fi
for shell in bash zsh fish; do
  "$firn" documents $shell > "$work/$shell"
  ! command -v $shell > /dev/null || $shell -n "$work/$shell" || fail "$shell does not read its completion"
done

# What bash offers for a line whose last word is $1's last.
source "$work/bash"
offers() {
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _firn
  printf '%s\n' "${COMPREPLY[@]}"
}
# Verbs, and options at the start of a line of help.
verbs=$("$firn" --help | sed -n '/^Subcommands:/,/^[^ S]/s/^  \([a-z]*\) .*/\1/p')
[ "$(echo "$verbs" | wc -w)" -ge 7 ] || fail "no verbs in --help"
for verb in $verbs; do
  grep -qx "$verb" <(offers firn "") || fail "bash does not offer $verb"
  grep -q "'$verb:" "$work/zsh" || fail "zsh does not offer $verb"
  grep -q -- "-a $verb " "$work/fish" || fail "fish does not offer $verb"
  grep -q "^\.SS firn $verb$" "$work/firn.1" || fail "the manual page lacks $verb"
  for option in $("$firn" "$verb" --help | sed -n 's/^  \(-[-a-zA-Z,]*\).*/\1/p' | tr ',' ' '); do
    grep -qx -- "$option" <(offers firn "$verb" -) || fail "bash does not offer $verb $option"
    sed -n "/^  $verb)/,/;;/p" "$work/zsh" | grep -q -- "'\*$option\[" || fail "zsh does not offer $verb $option"
    short=${option#-}
    case $option in --*) fish="-l ${option#--} " ;; -?) fish="-s $short " ;; *) fish="-o $short " ;; esac
    grep -q -- "from $verb'.* $fish" "$work/fish" || fail "fish does not offer $verb $option"
    escaped=$(echo "$option" | sed 's/-/\\\\-/g')
    sed -n "/^\.SS firn $verb$/,/^\.SS/p" "$work/firn.1" | grep -q -- "fB$escaped.f" || fail "the manual page lacks $verb $option"
  done
done
if command -v fish > /dev/null; then
  HOME=$work fish -c "source $work/fish; complete -C 'firn compile --no-win'" | grep -q '^--no-winograd' || fail "fish completes nothing"
fi
[ -z "$(offers firn compile mod | grep -v '^$')" ] || fail "bash offers options for a file's name"
