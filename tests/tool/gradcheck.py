#!/usr/bin/env python3
"""firn gradcheck agrees with what it derives, names what it cannot; declared gradients are entries that compile, run, verify and bench
take."""
import os
import struct

from tool import MODEL, check, expect, finish, temporary_folder

FIT = """module @fit {
  func @main(%x: f32[4,3], %w: f32[3]) -> (f32[4]) {
    %y = dot %x, %w {lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : f32[4]
    %z = tanh %y : f32[4]
    return %z
  }
  func @slope = gradient @main wrt w keeping 0
  func @vjp = gradient @main wrt w seedable
  func @curvature = gradient @slope wrt w seedable
}
"""
WRONG = """module @wrong {
  func @main(%x: f32[3]) -> (f32[3]) {
    %r = call %x {callee = "twice"} : f32[3]
    return %r
  }
  func @twice(%x: f32[3]) -> (f32[3]) by @rule {
    %r = add %x, %x : f32[3]
    return %r
  }
  func @rule(%x: f32[3], %y: f32[3], %seed: f32[3]) -> (f32[3]) {
    return %seed
  }
}
"""


def write(name, text):
    with open(name, "w", encoding="utf-8") as file:
        file.write(text)


def npy(dims, values):
    """Bytes of a .npy file of f32."""
    shape = "(" + "".join(f"{dim}, " for dim in dims) + ")"
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}"
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}f", *values)


def tensor(name, dims, values):
    """Bytes of a TensorProto of f32, all of whose lengths are below 128."""
    data = struct.pack(f"<{len(values)}f", *values)
    head = b"".join(bytes([8, dim]) for dim in dims) + bytes([16, 1, 66, len(name)]) + name.encode()
    return head + bytes([74, len(data)]) + data


def write_bytes(name, data):
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    with open(name, "wb") as file:
        file.write(data)


def check_entries():
    """At w = 0 the slope of tanh is 1: the gradient by w has the sums of x over its rows."""
    x, w, gradient = ([4, 3], range(12)), ([3], [0] * 3), ([3], [18, 22, 26])
    write_bytes("x.npy", npy(*x))
    write_bytes("w.npy", npy(*w))
    for engine in "object", "eval":
        expect(["run", "fit.hlo", "--entry", "slope", "--input", "x=x.npy", "--input", "w=w.npy", "--engine", engine], 0,
               "d_w: f32[3] = [18, 22, 26]\nresult0: f32[4] = [0, 0, 0, 0]\n")
    expect(["run", "fit.hlo", "--entry", "vjp", "--input", "x=x.npy", "--input", "w=w.npy"], 2,
           "input 'seed' (f32[4]) is not given: --input 'seed'=FILE")
    os.makedirs("case")
    write("case/model.hlo", FIT)
    for kind, number, name, literal in (("input", 0, "x", x), ("input", 1, "w", w), ("output", 0, "d_w", gradient),
                                        ("output", 1, "result0", ([4], [0] * 4))):
        write_bytes(f"case/test_data_set_0/{kind}_{number}.pb", tensor(name, *literal))
    for engine in "object", "eval":
        expect(["verify", "case", "--entry", "slope", "--engine", engine], 0, "1 pass")
    write_bytes("case/test_data_set_0/output_0.pb", tensor("d_w", [3], [18, 22, 27]))
    expect(["verify", "case", "--entry", "slope"], 1, "output 0: error")
    expect(["bench", "fit.hlo", "--entry", "slope", "--seconds", "0.01"], 0)


def main():
    with temporary_folder() as folder:
        os.chdir(folder)
        done = expect(["gradcheck", MODEL, "--samples=1"], 0)
        check(done.stdout.endswith(" derivatives checked, 0 wrong\n"), done.stdout)
        expect(["gradcheck", MODEL, "--wrt", "image", "--samples=2"], 0, "3 derivatives checked, 0 wrong")
        expect(["gradcheck", MODEL, "--wrt", "nothing"], 2, "--wrt names 'nothing', which is no float input")
        write("fit.hlo", FIT)
        expect(["gradcheck", "fit.hlo", "--samples=0"], 0, "2 derivatives checked, 0 wrong")
        write("wrong.hlo", WRONG)
        expect(["gradcheck", "wrong.hlo", "--samples=0"], 1, "d result 0 / d x, along a direction: ", "1 derivatives checked, 1 wrong")
        for entry, names in (("slope", ("d_w", "result0")), ("curvature", ("seed", "d_w"))):
            done = expect(["compile", "fit.hlo", "--entry", entry, "--emit=manifest"], 0)
            for name in names:
                check(f'"{name}"' in done.stdout, f"{entry} lacks {name}: {done.stdout[:600]}")
        expect(["compile", "fit.hlo", "-o", "fit"], 0)
        check_entries()
        expect(["compile", "fit.hlo", "--entry", "nothing"], 1, "no function @nothing")
        expect(["compile", "fit.hlo", "--entry", "slope", "--passes=none", "-o", "fit"], 2, "@slope is a declared gradient")
    finish()


main()
