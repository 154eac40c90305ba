"""Models for the tests: the example networks, and graphs in text form."""
import os

import firn_compiler as firn

ROOT = os.environ["FIRN_SOURCE"]
STATES = {"past": "past_next", "power": "power_next", "noise": "noise_next", "tail": "tail_next"}


def path_of(name):
    return os.path.join(ROOT, "models", name, "model.onnx")


def graph(arguments, results, *body):
    lines = "".join(f"    {line}\n" for line in body)
    return f"module @small {{\n  func @main({arguments}) -> ({results}) {{\n{lines}  }}\n}}\n".encode()


def compiled(arguments, results, *body, **options):
    return firn.compile(graph(arguments, results, *body), name="small.hlo", **options)


def twice(type_name="f32[2,3]", **options):
    """y = x + x"""
    return compiled(f"%x: {type_name}", type_name, f"%y = add %x, %x : {type_name}", "return %y", **options)


def copy(type_name):
    return compiled(f"%x: {type_name}", type_name, f"%y = copy %x : {type_name}", "return %y")


def small_dot(seed=0):
    """A product with constants that differ from seed to seed."""
    numbers = ", ".join(f"{(i * 37 + seed * 101) % 17 - 8}.0" for i in range(64 * 8))
    return graph("%x: f32[1,64]", "f32[1,8]", f"%w = constant [{numbers}] : f32[64,8]",
                 "%y = dot %x, %w {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : f32[1,8]",
                 "%t = tanh %y : f32[1,8]", "return %t")


def slow_graph(layers=60):
    """Takes many seconds to compile: each of its products has a shape of its own."""
    body, before = [], "%x"
    for i in range(layers):
        rows, columns = 64 + i, 65 + i
        body.append(f"%w{i} = iota {{dim = 0}} : f32[{rows},{columns}]")
        body.append(f"%y{i} = dot {before}, %w{i} {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}} "
                    f": f32[33,{columns}]")
        body.append(f"%t{i} = tanh %y{i} : f32[33,{columns}]")
        before = f"%t{i}"
    return graph("%x: f32[33,64]", f"f32[33,{64 + layers}]", *body, f"return {before}")
