#!/usr/bin/env python3
"""Does what a page of the guide tells its reader, in an empty folder that holds links to the models and to Firn.

    run_example.py ROOT PREFIX SCRATCH PAGE EXAMPLE [TOOL...]
    run_example.py ROOT PREFIX SCRATCH PAGE fragments

The first writes the files of the example and runs its commands in the order of the page, with Firn from the installation
PREFIX; a command has to succeed and to print what stands below it, where "..." stands for anything. An example without
commands is a project that is built. It is skipped if one of the tools is missing; the folder of a tool that is given by its
path comes first in PATH. The second puts every fragment of the page into its frame, builds these programs and runs them.
"""
import os
import re
import shutil
import subprocess
import sys

import pages

FRAMES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "frames")
MARK = "// THE FRAGMENT"


def fail(block, text):
    sys.exit(f"{block.page}:{block.line}: {text}")


def prepare(root, prefix, scratch, tools):
    """An empty folder, and the environment of its commands."""
    shutil.rmtree(scratch, ignore_errors=True)
    os.makedirs(scratch)
    os.symlink(os.path.join(root, "models"), os.path.join(scratch, "models"))
    os.makedirs(os.path.join(scratch, "third_party"))
    os.symlink(root, os.path.join(scratch, "third_party", "firn"))
    environment = dict(os.environ, CMAKE_GENERATOR="Ninja", CMAKE_PREFIX_PATH=prefix, FIRN_SOURCE=root, LC_ALL="C",
                       MANPAGER="cat")
    folders = [*(os.path.dirname(tool) for tool in tools if os.path.dirname(tool)), os.path.join(prefix, "bin")]
    environment["PATH"] = os.pathsep.join([*folders, os.environ["PATH"]])
    for name in ("CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS", "CLICOLOR_FORCE"):
        environment.pop(name, None)
    return environment


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def run_command(command, scratch, environment):
    done = subprocess.run(["bash", "-c", command], cwd=scratch, env=environment, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print(f"$ {command}\n{done.stdout}", end="")
    return done


def matches(expected, printed):
    pattern = ".*".join(re.escape(part) for part in re.split(r"\.\.\.", expected.strip()))
    return re.fullmatch(pattern, "\n".join(line.rstrip() for line in printed.strip().split("\n")), re.S)


def run_shell(block, scratch, environment):
    """Commands with a backslash at the end go on in the next line."""
    steps = re.split(r"^\$ ", block.text.replace("\\\n", ""), flags=re.M)
    if steps[0].strip() or len(steps) < 2:
        fail(block, "wanted commands after '$ '")
    for step in steps[1:]:
        command, _, expected = step.partition("\n")
        done = run_command(command, scratch, environment)
        if done.returncode != 0:
            fail(block, f"'{command}' failed with {done.returncode}")
        if expected.strip() and not matches(expected, done.stdout):
            fail(block, f"'{command}' printed something else than\n{expected}")


def run_example(blocks, scratch, environment):
    for block in blocks:
        if block.file == "shell":
            run_shell(block, scratch, environment)
        else:
            write(os.path.join(scratch, block.file), block.text)
    if not any(block.file == "shell" for block in blocks):
        for command in ("cmake -S . -B build", "cmake --build build"):
            if run_command(command, scratch, environment).returncode != 0:
                fail(blocks[0], f"'{command}' failed")


def run_fragments(blocks, scratch, environment):
    programs = []
    for block in blocks:
        suffix = {"cpp": "cpp", "c": "c"}[block.language]
        frame = open(os.path.join(FRAMES, f"{block.name}.{suffix}"), encoding="utf-8").read()
        if frame.count(MARK) != 1:
            fail(block, f"the frame {block.name} has no single mark")
        programs.append(f"{block.name}_{block.line}.{suffix}")
        write(os.path.join(scratch, "programs", programs[-1]),
              frame.replace(MARK, f'#line {block.line} "{block.page}"\n{block.text}'))
    for command in (f"cmake -S '{FRAMES}' -B build '-DPROGRAMS={';'.join(programs)}' -DFOLDER=$PWD/programs > log || ! cat log",
                    "cmake --build build --parallel 2 > log || ! cat log", "ctest --test-dir build --output-on-failure --no-tests=error"):
        if run_command(command, scratch, environment).returncode != 0:
            sys.exit(1)


def main():
    root, prefix, scratch, page, name, *tools = sys.argv[1:]
    missing = [tool for tool in tools if not shutil.which(tool)]
    if missing:
        print("SKIPPED: not found: " + ", ".join(missing))
        return
    is_fragments = name == "fragments"
    blocks = [block for block in pages.read_blocks(root, page)
              if (block.kind == "fragment" if is_fragments else block.kind == "example" and block.name == name)]
    if not blocks:
        sys.exit(f"{page} holds no {'fragment' if is_fragments else 'example ' + name}")
    environment = prepare(root, prefix, scratch, tools)
    (run_fragments if is_fragments else run_example)(blocks, scratch, environment)


main()
