#!/usr/bin/env python3
"""Fails on an #include between folders that the layering does not allow.

EDGES says which compiler folders a folder may include directly; what those may include is allowed too. Protobuf is seen
by frontend/onnx alone; LLVM's IR and targets by codegen, and by target to ask for the host's CPU.
"""
import os
import re
import sys

EDGES = {
    "support": [],
    "target": ["support"],
    "graph": ["support"],
    "frontend/onnx": ["graph"],
    "plan": ["graph", "target"],
    "passes": ["graph", "plan", "target"],
    "kernel": ["support", "target"],
    "lower": ["graph", "kernel", "plan", "target"],
    "memory": ["graph", "kernel", "target"],
    "codegen": ["kernel", "target"],
    "artifact": ["graph", "memory", "plan"],
    "driver": ["artifact", "codegen", "frontend/onnx", "graph", "kernel", "lower", "memory", "passes", "plan", "support", "target"],
}
TOOLS = {"tools/firn": ["driver", "support"]}


def reachable(folder):
    found, todo = {folder}, list(EDGES.get(folder, TOOLS.get(folder, [])))
    while todo:
        at = todo.pop()
        if at not in found:
            found.add(at)
            # Tools see the driver's own interface, not what lies below it.
            todo += EDGES[at] if folder in EDGES else []
    return found


def folder_of(path):
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] == "frontend" else parts[0]


def violations(root):
    for folder in [*EDGES, *TOOLS]:
        base = os.path.join(root, folder if folder in TOOLS else "compiler/" + folder)
        allowed = reachable(folder)
        for name in sorted(os.listdir(base)):
            if not name.endswith((".h", ".cpp", ".def", ".in")):
                continue
            for number, line in enumerate(open(os.path.join(base, name), encoding="utf-8"), 1):
                match = re.match(r'\s*#\s*include\s+["<]([^">]+)[">]', line)
                if not match:
                    continue
                path, where = match[1], f"{os.path.relpath(os.path.join(base, name), root)}:{number}"
                if path.startswith("compiler/") and folder_of(path[9:]) not in allowed:
                    yield f"{where}: {folder} may not include {path}"
                if path.startswith("google/") and folder != "frontend/onnx":
                    yield f"{where}: only frontend/onnx sees protobuf"
                if re.match(r"llvm/(IR|Target|CodeGen|MC|Transforms|Passes)/", path) and folder not in ("codegen", "target"):
                    yield f"{where}: only codegen sees LLVM"
    runtime = os.path.join(root, "runtime")
    for name in sorted(os.listdir(runtime)):
        for number, line in enumerate(open(os.path.join(runtime, name), encoding="utf-8"), 1):
            match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if match and name.endswith((".h", ".cpp")) and not (match[1].startswith("firn/") or "/" not in match[1]):
                yield f"runtime/{name}:{number}: runtime includes only include/firn, found {match[1]}"


found = list(violations(sys.argv[1]))
print("\n".join(found) or "every include is allowed")
sys.exit(1 if found else 0)
