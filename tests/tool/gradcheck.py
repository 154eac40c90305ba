#!/usr/bin/env python3
"""firn gradcheck agrees with what it derives, names what it cannot; firn compile --entry compiles declared gradients."""
import os

from tool import MODEL, check, expect, finish, temporary_folder

FIT = """module @fit {
  func @main(%x: f32[4,3], %w: f32[3]) -> (f32[4]) {
    %y = dot %x, %w {lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : f32[4]
    %z = tanh %y : f32[4]
    return %z
  }
  func @slope = gradient @main wrt w keeping 0
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
        expect(["compile", "fit.hlo", "--entry", "nothing"], 1, "no function @nothing")
        expect(["compile", "fit.hlo", "--entry", "slope", "--passes=none", "-o", "fit"], 2, "@slope is a declared gradient")
    finish()


main()
