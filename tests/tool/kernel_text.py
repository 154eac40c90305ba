#!/usr/bin/env python3
"""Kernels in text form: what --emit=kernel prints and --weights-out writes compiles to the kernels that the model
compiles to, and runs with its results: networks, control flow, dims that vary, states, threads, checked indices. What is
wrong with a text or its weights is said with the file, and what was found and wanted."""
import os
import re
import sys

from tool import BOOL, F32, IMAGE, MODEL, SOURCE, check, expect, finish, temporary_folder, write_npy

sys.path.insert(0, os.path.join(SOURCE, "tools", "bench"))
from same_objects import measure_object  # noqa: E402 (the path is set above)

# A loop with a branch in it: x is halved or doubled until its first element is out of (1, 8).
CONTROL = """module @control {
  func @main(%x: f32[4], %down: bool[]) -> (f32[4], i64[]) inputs ["x", "down"] outputs ["y", "rounds"] {
    %zero = constant [0] : i64[]
    %one = constant [1] : i64[]
    %limit = constant [5] : i64[]
    %half = constant [0.5, 0.5, 0.5, 0.5] : f32[4]
    %loop:2 = while %zero, %x region(%i: i64[], %v: f32[4]) {
      %more = compare %i, %limit {direction = lt} : bool[]
      return %more
    }, region(%j: i64[], %w: f32[4]) {
      %next = add %j, %one : i64[]
      %moved = if %down region() {
        %less = multiply %w, %half : f32[4]
        return %less
      }, region() {
        %twice = add %w, %w : f32[4]
        return %twice
      } : f32[4]
      return %next, %moved
    } : (i64[], f32[4])
    return %loop#1, %loop#0
  }
}
"""
# Rows and columns vary, and a state adds them up.
VARYING = """module @varying {
  symbol n in [0, 9]
  func @main(%x: f32[n,6], %past: f32[6]) -> (f32[n,6], f32[6]) inputs ["x", "past"] outputs ["y", "present"] aliases [-1, 1] {
    %scale = constant [1, 2, 3, 4, 5, 6] : f32[6]
    %wide = broadcast_in_dim %scale {dims = [1]} : f32[n,6]
    %y = multiply %x, %wide : f32[n,6]
    %zero = constant [0] : f32[]
    %sum = reduce %y, %zero {dims = [0]} region(%a: f32[], %b: f32[]) {
      %c = add %a, %b : f32[]
      return %c
    } : f32[6]
    %present = add %past, %sum : f32[6]
    return %y, %present
  }
}
"""


def write(path, text):
    with open(path, "w") as file:
        file.write(text)
    return path


def read(path):
    with open(path) as file:
        return file.read()


def printed(name, model, *flags):
    """The text and the weights of a model's kernels; the arguments that compile them."""
    expect(["compile", model, "--emit=kernel", "-o", name + ".kir", "--weights-out", name + ".weights", *flags], 0)
    return [name + ".kir", "--weights-in", name + ".weights"]


def interface_of(header):
    """What a header declares, without what names the object."""
    lines = [line for line in read(header).splitlines() if not line.lstrip().startswith("//")]
    return re.sub(r"[0-9A-Fa-f]{12,64}", "HASH", "\n".join(lines))


def check_round_trip(name, model, model_flags=(), flags=(), inputs=()):
    """Kernels, weights and header of the object are the model's, and so is what a run gives."""
    kernels = printed(name, model, *model_flags, *flags)
    text = expect(["compile", *kernels, "--emit=kernel", *flags], 0).stdout
    check(text == read(name + ".kir"), f"{name}.kir does not print as it is written")
    expect(["compile", model, "-o", name + "_model", "--class", "Net", *model_flags, *flags], 0)
    expect(["compile", *kernels, "-o", name + "_text", "--class", "Net", *flags], 0, name + "_text.o")
    if failed_to_compile(name):
        return
    wanted, got = (measure_object(f"{name}{made}.o") for made in ("_model", "_text"))
    check(wanted["kernels"], f"{name}: the object of the model has no kernels")
    check(got["kernels"] == wanted["kernels"], f"{name}: kernels of the text differ from the model's")
    check(got["constants"] == wanted["constants"], f"{name}: weights of the text differ from the model's")
    wanted, got = (interface_of(f"{name}{made}.h") for made in ("_model", "_text"))
    check(got == wanted, f"{name}: the headers differ: {difference(wanted, got)}")
    if not inputs:
        return
    given = [word for name_, file in inputs for word in ("--input", f"{name_}={file}")]
    wanted = expect(["run", model, *model_flags, *flags, *given], 0).stdout
    check(wanted != "" and expect(["run", *kernels, *flags, *given], 0).stdout == wanted, f"{name}: a run of the text gives other results")


def failed_to_compile(name):
    return not all(os.path.exists(name + made) for made in ("_model.o", "_text.o"))


def difference(wanted, got):
    return next((f"'{b}', wanted '{a}'" for a, b in zip(wanted.splitlines(), got.splitlines()) if a != b), "their lengths")


def check_round_trips():
    check_round_trip("digits", MODEL, inputs=[("image", IMAGE)])
    check_round_trip("wide", MODEL, flags=("-mcpu=znver4", "--threads=4"))
    check_round_trip("small", MODEL, flags=("-mcpu=cortex-m4", "--target=thumbv7em-none-eabihf", "-Os"))
    write_npy("x.npy", F32, [4], [3, 4, 5, 6])
    write_npy("down.npy", BOOL, [], [1])
    check_round_trip("control", write("control.hlo", CONTROL), inputs=[("x", "x.npy"), ("down", "down.npy")])
    write_npy("rows.npy", F32, [2, 6], list(range(12)))
    write_npy("past.npy", F32, [6], [100] * 6)
    check_round_trip("varying", write("varying.hlo", VARYING), inputs=[("x", "rows.npy"), ("past", "past.npy")])
    shared = os.path.join(SOURCE, "tests", "artifact", "programs", "shared.hlo")
    check_round_trip("shared", shared, flags=("--threads=8",))
    models = os.path.join(SOURCE, "models")
    denoiser = os.path.join(models, "denoiser", "model.onnx")
    states = [word for pair in ("past", "power", "noise", "tail") for word in ("--state", f"{pair}={pair}_next")]
    check_round_trip("denoiser", denoiser, model_flags=states)
    encoder = os.path.join(models, "text_encoder", "model.onnx")
    check_round_trip("encoder", encoder, model_flags=("--dim", "batch=1..4", "--check-indices"))


def check_own_text():
    """A program written by hand, without the steps that begin and check a run."""
    text = """program "scale" arena 0 lower_bound 0 weights 256 {
  extent n [1, 8] dim "rows" multiple 2
  input "x" f32[2*n]
  output "y" f32[2*n]
  buffer "x" input 0 bytes 64 align 4
  buffer "w" weights bytes 64 align 64 offset 192
  buffer "y" output 0 bytes 64 align 4
  constant 1
  call 0 (0, 1, 2) extents (n)
}
kernel "scale" {
  parameter "x" f32[16] align 4
  parameter "w" f32[16] align 64
  parameter "y" f32[16] align 4 written
  extent n [1, 8]
  parallel p [0, 15] count (2*n)
  %0: f32 = load b0[p]
  %1: f32 = load b1[p]
  %2: f32 = fmul %0 %1
  store %2 b2[p]
}
"""
    write("own.kir", text)
    weights = bytearray(256)
    for i in range(16):
        weights[192 + 4 * i:196 + 4 * i] = bytes.fromhex("00000040")  # 2
    with open("own.weights", "wb") as file:
        file.write(weights)
    write_npy("four.npy", F32, [4], [1, 2, 3, 4])
    own = ["own.kir", "--weights-in", "own.weights"]
    expect(["run", *own, "--input", "x=four.npy"], 0, "y: f32[4] = [2, 4, 6, 8]")
    expect(["compile", *own, "--depfile", "own.d"], 0, "n=2..16:2")
    check("own.weights" in read("own.d"), "the dependency file lacks the weights")
    header = read("own.h")
    check("set_rows(" in header and "bind_x(" in header and " y()" in header, "own.h lacks rows, x or y")
    done = expect(["compile", *own, "--emit=kernel"], 0)
    check("  require\n  call 0 (0, 1, 2) extents (n) count (2*n)\n" in done.stdout, "the entry is not made: " + done.stdout[:600])
    with open("own.kir") as file:
        expect(["compile", "-", "--weights-in", "own.weights", "--emit=header"], 0, "class Model", stdin=file)
    return text


def check_refusals(text):
    own = ["--weights-in", "own.weights"]
    for verb in ("compile", "run"):
        expect([verb, "own.kir"], 2, "own.kir: error: the text holds no weights", "read 256 bytes", "--weights-in FILE")
        expect([verb, "own.kir", "--weights-in", "own.kir"], 2, f"--weights-in own.kir has {len(text)} bytes", "the text wants 256")
        expect([verb, "own.kir", "--weights-in", "nowhere"], 2, "nowhere")
    broken = {
        "syntax": (text.replace("fmul", "frobnicate"), ":19:23: error: ", "frobnicate"),
        "two": (text + text, ":22:1:", "several CPUs"),
        "wrong": (text.replace("count (2*n)\n", "count (3*n)\n"), ": error: ", "parallel count is beyond its symbol's bounds"),
        "interface": (text.replace('  output "y" f32[2*n]\n', ""), ": error: buffer 'y' is output 0, of which the program names 0"),
        "size": (text.replace('"x" f32[2*n]', '"x" f64[2*n]'), ": error: buffer 'x' has 64 bytes, and tensor 'x', f64[2*n], takes 128"),
        "element": (text.replace('"x" f32[2*n]', '"x" f33[2*n]'), ": error: tensor 'x' has elements of 'f33'"),
        "place": (text.replace("offset 192", "offset 256"), ": error: buffer 'w' ends at 320 of the weights, which has 256"),
        "unplaced": (text.replace(" offset 192", ""), ": error: buffer 'w' has no offset in the weights"),
    }
    for name, (wrong, *wanted) in broken.items():
        write(name + ".kir", wrong)
        for verb in ("compile", "run"):
            expect([verb, name + ".kir", *own], 1, f"{name}.kir{wanted[0]}", *wanted[1:])
        check(not os.path.exists(name + ".o"), f"an object was written of {name}.kir")
    for option in ("--dim=n=1", "--state=x=y", "--weights=init", "--multiversion=x86-64-v3,znver4", "--external=x", "--passes=none",
                   "--entry=f", "--emit=graph"):
        expect(["compile", "own.kir", *own, option], 2, "own.kir: error: " + option.split("=n")[0].split("=x")[0].split("=none")[0].split("=f")[0],
               "kernels in text form are made already")
    expect(["run", "own.kir", *own, "--engine=eval", "--input", "x=four.npy"], 2, "kernels in text form have no graph")
    expect(["run", "own.kir", *own], 2, "input 'x' (f32[2*n]) is not given")
    write_npy("odd.npy", F32, [3], [1, 2, 3])
    expect(["run", "own.kir", *own, "--input", "x=odd.npy"], 2, "rows")
    expect(["compile", MODEL, "--emit=kernel", "--multiversion=x86-64-v3,znver4", "--weights-out", "w", "-o", "two.kir"], 2, "is for one program")
    tiles = os.path.join(SOURCE, "tests", "artifact", "programs", "tiles.hlo")
    made = printed("tiles", tiles, "-mcpu=sapphirerapids", "--precision=bf16")
    expect(["compile", *made, "-mcpu=znver4"], 3, "multiplies tile matrices, which znver4")
    expect(["compile", MODEL, "--emit=kernel", "--gpu=cuda", "--weights-out", "gpu.weights", "-o", "gpu.kir"], 0)
    threads = ["gpu.kir", "--weights-in", "gpu.weights"]
    for command in (["compile", *threads], ["run", *threads, "--input", f"image={IMAGE}"]):
        expect(command, 3, "is of a GPU's threads, which x86-64-v3 does not have")
    expect(["compile", *threads, "--gpu=cuda", "--emit=ptx"], 0, ".visible .entry")
    expect(["compile", "own.kir", *own, "--gpu=cuda", "--emit=ptx"], 3, "is of a CPU, and sm_80 runs kernels of threads")


with temporary_folder() as folder:
    os.chdir(folder)
    check_round_trips()
    check_refusals(check_own_text())
finish()
