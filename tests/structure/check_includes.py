#!/usr/bin/env python3
"""Fails on an #include between folders that the layering does not allow.

    check_includes.py ROOT

EDGES says which compiler folders a folder may include directly; what those may include is allowed too, and subfolders
belong to their folder. Subfolders of one folder must not include each other in a circle. Protobuf is seen by
frontend/onnx and by quantize, which edits models; LLVM's IR and targets by codegen, and by target to ask for the host's CPU;
its linker for code in memory by load.
"""
import os
import re
import sys

EDGES = {
    "support": [],
    "load": ["support"],
    "ptx": ["support"],
    "target": ["support"],
    "graph": ["support"],
    "training": ["graph"],
    "frontend/onnx": ["graph", "training"],
    "plan": ["graph", "target"],
    "passes": ["graph", "target", "plan"],
    "kernel": ["support", "target"],
    "memory": ["graph", "kernel", "plan"],
    "lower": ["graph", "kernel", "memory", "target", "plan"],
    "codegen": ["kernel", "target"],
    "artifact": ["graph", "memory", "plan"],
    "quantize": ["frontend/onnx", "graph", "support"],
    "driver": ["artifact", "codegen", "frontend/onnx", "graph", "kernel", "load", "lower", "memory", "passes", "plan", "ptx", "quantize", "support", "target", "training"],
}
# Tools see the driver's own interface, not what lies below it.
TOOLS = {"tools/firn": ["driver", "support"], "tools/jit": ["driver", "support"]}
SOURCES = (".h", ".cpp", ".def", ".in")


def reachable(folder):
    if folder in TOOLS:
        return {folder, *TOOLS[folder]}
    found, todo = set(), [folder]
    while todo:
        at = todo.pop()
        if at not in found:
            found.add(at)
            todo += EDGES[at]
    return found


def folder_of(path):
    """The row of EDGES that a path below compiler/ belongs to; the first folder of the path if there is none."""
    return next((folder for folder in EDGES if path.startswith(folder + "/")), path.split("/")[0])


def includes(root, base):
    """(file, line number, included path) of every #include below a folder."""
    for where, folders, names in os.walk(os.path.join(root, base)):
        folders.sort()
        for name in sorted(names):
            if not name.endswith(SOURCES):
                continue
            path = os.path.join(where, name)
            with open(path, encoding="utf-8") as file:
                lines = file.readlines()
            for number, line in enumerate(lines, 1):
                if match := re.match(r'\s*#\s*include\s+(["<])([^">]+)[">]', line):
                    yield os.path.relpath(path, root), number, match[2], match[1] == '"'


def edge_violations(root, folder, base):
    allowed = reachable(folder)
    for file, number, path, _ in includes(root, base):
        where = f"{file}:{number}"
        if path.startswith("compiler/") and folder_of(path[len("compiler/"):]) not in allowed:
            yield f"{where}: {folder} may not include {path}"
        if path.startswith("google/") and folder not in ("frontend/onnx", "quantize"):
            yield f"{where}: only frontend/onnx and quantize see protobuf"
        if re.match(r"llvm/(IR|Target|CodeGen|MC|Transforms|Passes)/", path) and folder not in ("codegen", "target"):
            yield f"{where}: only codegen sees LLVM"
        if path.startswith("llvm/ExecutionEngine/") and folder != "load":
            yield f"{where}: only load sees LLVM's linker"


def circle(root, base):
    """Subfolders of a folder that include each other in a circle, in order; none if there is none."""
    edges = {}
    for file, _, path, _ in includes(root, base):
        below = [os.path.relpath(name, base).split(os.sep) for name in (file, path) if name.startswith(base + "/")]
        if len(below) == 2 and all(len(parts) > 1 for parts in below) and below[0][0] != below[1][0]:
            edges.setdefault(below[0][0], set()).add(below[1][0])
    done = set()

    def visit(at, path):
        if at in path:
            return path[path.index(at):] + [at]
        if at in done:
            return None
        found = next(filter(None, (visit(to, path + [at]) for to in sorted(edges.get(at, ())))), None)
        done.add(at)
        return found

    return next(filter(None, (visit(at, []) for at in sorted(edges))), None)


def violations(root):
    top = {folder.split("/")[0] for folder in EDGES}
    for name in sorted(os.listdir(os.path.join(root, "compiler"))):
        if os.path.isdir(os.path.join(root, "compiler", name)) and name not in top:
            yield f"compiler/{name}: no row of EDGES says what it may include"
    for folder in [*EDGES, *TOOLS]:
        base = folder if folder in TOOLS else "compiler/" + folder
        yield from edge_violations(root, folder, base)
        if found := circle(root, base):
            yield f"{base}: subfolders include each other in a circle: {' -> '.join(found)}"
    for file, number, path, quoted in includes(root, "runtime"):
        if quoted and not path.startswith("firn/") and "/" in path:
            yield f"{file}:{number}: runtime includes only include/firn, found {path}"


if __name__ == "__main__":
    found = list(violations(sys.argv[1]))
    print("\n".join(found) or "every include is allowed")
    sys.exit(1 if found else 0)
