#!/usr/bin/env python3
"""Graphs in text form: `firn compile` takes them with their constants and makes of them what it makes of the model they
came from; `firn opt` runs passes as for a target, a level and rules for floats. What is wrong with a text is said with
the place in it."""
import os
import re

from tool import MODEL, check, expect, finish, firn, temporary_folder

LINE = """module @line {
  func @main(%x: f32[8]) -> (f32[8]) outputs ["y"] {
    %scale = constant [2, 2, 2, 2, 2, 2, 2, 2] : f32[8]
    %y = multiply %x, %scale : f32[8]
    return %y
  }
}
"""


def write(path, text):
    with open(path, "w") as file:
        file.write(text)
    return path


def kernels_of(*arguments):
    """The planned program, without what the model and its buffers are called."""
    done = expect([*arguments, "--emit=kernel"], 0)
    return re.sub(r'^( *)(program|buffer) "[^"]*"', r"\1\2", done.stdout, flags=re.M)


def check_graph_of_a_model():
    """The graph that --emit=graph prints compiles to what the model compiles to: after the passes without running them
    again, before them with the default ones."""
    direct = kernels_of("compile", MODEL)
    check("kernel" in direct, "no kernels are printed")
    for made, run in (("default", "none"), ("none", "default")):
        expect(["compile", MODEL, "--emit=graph", f"--passes={made}", "-o", "graph.hlo", "--weights-out", "graph.weights"], 0)
        again = kernels_of("compile", "graph.hlo", "--weights-in", "graph.weights", f"--passes={run}")
        check(again == direct, f"the graph after --passes={made} compiles to other kernels than the model")
    expect(["compile", "graph.hlo", "--weights-in", "graph.weights", "-o", "text/net", "--depfile", "net.d"], 0, "text/net.o")
    for suffix in (".o", ".h", ".json"):
        check(os.path.exists("text/net" + suffix), f"text/net{suffix} was not written")
    check("graph.weights" in open("net.d").read(), "the dependency file lacks the constants")


def check_object_of_a_text():
    symbolic = "module @m {\n  symbol n in [1, 4]\n  func @main(%x: f32[n]) -> (f32[n]) {\n    %y = negate %x : f32[n]\n    return %y\n  }\n}\n"
    expect(["compile", write("symbolic.hlo", symbolic)], 0, "n=1..4")
    check("set_n(" in open("symbolic.h").read(), "symbolic.h lacks set_n")
    expect(["compile", write("line.hlo", LINE), "-o", "line", "--class", "ns::Line"], 0, "line.o")
    header = open("line.h").read()
    check("class Line" in header and "float, 8> x()" in header and "const float, 8> y()" in header, f"line.h lacks x, y or the class: {header[:400]}")


def check_refusals():
    expect(["compile", "graph.hlo"], 2, "graph.hlo: error: constant %", "has no bytes", "--weights-in FILE")
    expect(["compile", MODEL, "--weights-in", "graph.weights"], 2, "--weights-in goes with a graph in text form")
    expect(["compile", "line.hlo", "--dim", "n=1"], 2, "line.hlo: error: --dim goes with an ONNX model")
    expect(["compile", "line.hlo", "--external", "zz"], 2, "no input or output 'zz'; it has 'x', 'y'")
    expect(["compile", write("nowhere.hlo", LINE.replace("@main", "@helper"))], 1, "nowhere.hlo: error: the graph has no function @main")
    for verb in (["compile"], ["opt"]):
        expect([*verb, write("broken.hlo", LINE.replace("multiply", "frobnicate"))], 1, "broken.hlo:4:", ": error: ")
        expect([*verb, write("wrong.hlo", LINE.replace("[2, 2, 2, 2, 2, 2, 2, 2] : f32[8]", "[2, 2, 2, 2] : f32[4]"))], 1, "wrong.hlo: error: @main: ")
    check(not os.path.exists("wrong.o") and not os.path.exists("broken.o"), "an object was written of a wrong text")


def check_opt():
    zero = LINE.replace("2, ", "0, ").replace("2]", "0]").replace("multiply", "add")
    write("zero.hlo", zero)
    check("add" not in firn("opt", "--passes=simplify-algebra", "zero.hlo").stdout, "x + 0 stays by default")
    check("add" in firn("opt", "--passes=simplify-algebra", "--math=strict", "zero.hlo").stdout, "x + 0 goes with strict maths: -0 + 0 is 0")
    image = "module @m {\n  func @main(%x: f32[1,16,8,8], %w: f32[16,16,3,3]) -> (f32[1,16,8,8]) {\n    %y = convolution %x, %w {window = 3x3 pad 1_1x1_1} : f32[1,16,8,8]\n    return %y\n  }\n}\n"
    write("image.hlo", image)
    for cpu, block in (("x86-64-v3", "1x8}"), ("x86-64-v4", "1x16}")):
        check(block in expect(["opt", "--passes=assign-layouts", f"-mcpu={cpu}", "image.hlo"], 0).stdout, f"{cpu} gives no blocks of {block}")
    expect(["opt", "--passes=assign-layouts", "-mattr=+avx2", "image.hlo"], 0)
    strided = "module @m {\n  func @main(%x: f32[1,16,8,9], %w: f32[512,16,1,1]) -> (f32[1,512,4,5]) {\n    %y = convolution %x, %w {window = 1x1 stride 2x2} : f32[1,512,4,5]\n    return %y\n  }\n}\n"
    write("strided.hlo", strided)
    for level in "0123sz":
        text = expect(["opt", "--passes=slice-strided-inputs", "-mcpu=x86-64-v3", "-O" + level, "strided.hlo"], 0).stdout
        check(("slice" in text) == (level in "0123"), f"-O{level}: {text}")


with temporary_folder() as folder:
    os.chdir(folder)
    os.mkdir("text")
    check_graph_of_a_model()
    check_object_of_a_text()
    check_refusals()
    check_opt()
finish()
