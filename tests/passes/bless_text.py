#!/usr/bin/env python3
"""bless_text.py FILECHECK ARGUMENT...: takes the place of FileCheck and makes the expected text in a file agree with its input.

Lines of a prefix that is WHOLE, or ends in _WHOLE, are the whole input, line by line; they are written anew where the first
of them stands, or at the file's end. A line of any other prefix that the input contradicts is repaired: its patterns and
variables stay, and the words between them become those of the line that FileCheck names as the likely match. What cannot be
repaired so (a NOT that matches, a line without a likely match) fails as FileCheck does, with its message."""
import argparse
import difflib
import re
import subprocess
import sys

PATTERN = re.compile(r"(\{\{.*?\}\}|\[\[.*?\]\](?!\]))")
MAX_REPAIRS = 200


def parse_arguments(words):
    """The file and the prefixes that a call of FileCheck names."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    for name in ("prefix", "prefixes"):
        parser.add_argument(f"-check-{name}", f"--check-{name}", action="append", default=[])
    known, _ = parser.parse_known_args(words)
    prefixes = [each for given in known.check_prefix + known.check_prefixes for each in given.split(",")]
    return known.file, prefixes or ["CHECK"]


def check(filecheck, words, text):
    return subprocess.run([filecheck, "--dump-input=never", "--color=0", *words], input=text, capture_output=True, text=True,
                          check=False)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read().split("\n")


def write(path, lines):
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))


def escape(line):
    """The line as a pattern of FileCheck that matches it alone."""
    return line.replace("[[", r"{{\[\[}}")


def whole_text(prefix, text):
    """The directives that hold every line of the text."""
    first, *others = text.rstrip("\n").split("\n")
    return [f"// {prefix}: {escape(first)}"] + [
        f"// {prefix}-NEXT: {escape(line)}" if line.strip() else f"// {prefix}-EMPTY:" for line in others]


def bless_whole(path, prefix, text):
    """Writes the lines of a prefix anew."""
    is_of_prefix = re.compile(rf"\s*// {re.escape(prefix)}(-NEXT|-EMPTY)?:").match
    lines = read(path)
    kept = [line for line in lines if not is_of_prefix(line)]
    first = next((at for at, line in enumerate(lines) if is_of_prefix(line)), None)
    if first is None:
        first = len(kept) - 1 if kept and not kept[-1] else len(kept)
    write(path, kept[:first] + whole_text(prefix, text) + kept[first:])


def words_of(text):
    return re.findall(r"\w+|\s+|.", text)


def nearest(literal, line):
    """The part of a line that stands for a literal, which its words tell that both have in order. Returns its begin and
    end, or None if they have little in common."""
    at = line.find(literal)
    if at >= 0:
        return at, at + len(literal)
    wanted, found = words_of(literal), words_of(line)
    blocks = difflib.SequenceMatcher(None, wanted, found, autojunk=False).get_matching_blocks()[:-1]
    in_common = [word for block in blocks for word in wanted[block.a:block.a + block.size] if word.strip()]
    if not blocks or 2 * len(in_common) < len(literal.split()):
        return None
    first, last = blocks[0], blocks[-1]
    begin = max(0, first.b - first.a)
    end = last.b + len(wanted) - last.a
    return len("".join(found[:begin])), len("".join(found[:end]))


def repair(pattern, line):
    """The pattern with the words of a line between its regular expressions and variables, or None."""
    repaired = ""
    for piece in PATTERN.split(pattern):
        if PATTERN.fullmatch(piece) or not piece.strip():
            repaired += piece
            continue
        found = nearest(piece, line)
        if found is None:
            return None
        repaired += escape(line[found[0]:found[1]])
        line = line[found[1]:]
    return repaired


def repair_once(path, message, text):
    """Repairs the directive of the first error in FileCheck's message. Returns whether a line changed."""
    error = re.search(r"^(.*?):(\d+):\d+: error: .*expected string not found", message, re.M)
    likely = re.search(r"^<stdin>:(\d+):\d+: note: possible intended match here", message, re.M)
    if not error or not likely:
        return False
    lines, at = read(path), int(error.group(2)) - 1
    head, directive, pattern = re.match(r"(.*?)(\w[\w-]*:\s*)(.*)", lines[at]).groups()
    repaired = repair(pattern, text.split("\n")[int(likely.group(1)) - 1])
    if repaired is None or repaired == pattern:
        return False
    lines[at] = head + directive + repaired
    write(path, lines)
    return True


def main():
    filecheck, words = sys.argv[1], sys.argv[2:]
    path, prefixes = parse_arguments(words)
    text = sys.stdin.read()
    result = check(filecheck, words, text)
    for prefix in prefixes:
        if result.returncode and text.strip() and re.fullmatch(r"(.*_)?WHOLE", prefix):
            bless_whole(path, prefix, text)
            result = check(filecheck, words, text)
    for _ in range(MAX_REPAIRS):
        if not result.returncode or not repair_once(path, result.stderr, text):
            break
        result = check(filecheck, words, text)
    sys.stderr.write(result.stderr)
    return result.returncode


if __name__ == "__main__":
    sys.exit(main())
