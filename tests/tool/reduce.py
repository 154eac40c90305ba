#!/usr/bin/env python3
"""firn reduce finds the nodes that a failure needs, in graphs of more than a hundred, and says what is wrong with a check."""
import os
import sys

from tool import FIRN, MODEL, check, expect, finish, graph, model, msg, node, num, temporary_folder, tensor, value


def long_model(path, culprits):
    """Two chains of 60 nodes from x and from a product of x with weights, joined at the end; `culprits` are (place, operator, domain)."""
    nodes = [node("MatMul", ["x", "w"], ["b0"], name="product")]
    special = {place: (op, domain) for place, op, domain in culprits}
    at = {"a": "x", "b": "b0"}
    for i in range(60):
        for chain in "ab":
            op, domain = special.get(f"{chain}{i}", (("Relu", "Abs", "Neg", "Tanh")[i % 4], ""))
            made = node(op, [at[chain]], [f"{chain}_{i}"], domain=domain, name=f"{chain}_{i}")
            nodes.append(made)
            at[chain] = f"{chain}_{i}"
    nodes.append(node("Add", [at["a"], at["b"]], ["y"]))
    outputs = [value("y", [2, 8]), value("a_30", [2, 8])]  # one on the way
    weights = tensor("w", [8, 8], bytes(8 * 8 * 4))
    with open(path, "wb") as file:
        file.write(model(graph(nodes, [value("x", [2, 8])], outputs, [weights]), extra=msg(8, msg(1, "acme") + num(2, 1))))
    return path


def text_check(*words):
    """A check that ends with exit code 5 and says 'found' if the file holds all the words."""
    needed = ", ".join(repr(word.encode()) for word in words)
    return f'{sys.executable} -c "import sys; data = open(sys.argv[1], \'rb\').read(); bad = all(w in data for w in ({needed},)); ' \
           f'print(\'found\' if bad else \'fine\'); sys.exit(5 * bad)" {{}}'


def check_culprits(folder):
    out = os.path.join(folder, "out")
    path = long_model(os.path.join(folder, "unknown.onnx"), [("a40", "Frob", "acme")])
    done = expect(["reduce", path, "--check", f"{FIRN} compile {{}} -o {out}", "--message", "acme.Frob", "-o", os.path.join(folder, "frob.onnx")], 0,
                  "1 of 122 nodes", "a_40 (Frob, node 81)", "122 nodes, 2 outputs: the check fails with exit code 3")
    check(done.stdout.count("\n") == 2, f"more than one node is listed: {done.stdout}")
    expect(["compile", os.path.join(folder, "frob.onnx"), "-o", out], 3, "acme.Frob")

    # Two that are far apart; values between become inputs, of the types that they have.
    path = long_model(os.path.join(folder, "pair.onnx"), [("a20", "Sin", ""), ("b50", "Cos", "")])
    expect(["reduce", path, "-q", "--check", text_check("Sin", "Cos"), "--message", "found"], 0, "pair.reduced.onnx: 2 of 122 nodes", "(Sin, node 41)", "(Cos, node 102)")
    reduced = os.path.join(folder, "pair.reduced.onnx")
    expect(["inspect", reduced], 0, "a_19: f32[2,8]", "b_49: f32[2,8]", "it compiles")
    check(os.path.getsize(reduced) < 400, f"the reduced model has {os.path.getsize(reduced)} bytes")

    # One that needs its constant keeps it; one that does not gets an input.
    path = long_model(os.path.join(folder, "weights.onnx"), [])
    reduced = os.path.join(folder, "weights.reduced.onnx")
    for words, parameters in (("MatMul",), "0 (0 bytes)"), (("MatMul", "\0" * 256), "64 (256 bytes)"):
        expect(["reduce", path, "--check", text_check(*words)], 0, "1 of 122 nodes", "(MatMul, node 0)")
        expect(["inspect", reduced], 0, f"parameters    {parameters}")


def check_messages(folder):
    path = long_model(os.path.join(folder, "fine.onnx"), [])
    expect(["reduce", path, "--check", f"{FIRN} inspect {{}}"], 2, "fine.onnx: error: the check passes on the whole model")
    expect(["reduce", path, "--check", "true"], 2, "--check wants a command with {} in the place of the model, found 'true'")
    expect(["reduce", path], 2, "--check is required")
    expect(["reduce", path, "--check", "no_such_command {}"], 2, "the check cannot be run (exit code 127)", "no_such_command")
    expect(["reduce", path, "--check", text_check("Relu"), "--message", "lost"], 2, "the check does not print 'lost', but: found")
    expect(["reduce", "nowhere.onnx", "--check", "false {}"], 2, "nowhere.onnx: error: cannot open 'nowhere.onnx'")
    expect(["reduce", path, "--check", "false {}", "-o", os.path.join(folder, "no", "such", "folder.onnx")], 2)
    check(not os.path.exists(os.path.join(folder, "fine.reduced.onnx")), "a check that passes leaves a file behind")
    # A check that hangs fails by that.
    expect(["reduce", MODEL, "--timeout", "1", "--check", "sleep 60 # {}", "-o", os.path.join(folder, "slow.onnx")], 0, "exit code 137", "1 of 7 nodes")


with temporary_folder() as folder:
    check_culprits(folder)
    check_messages(folder)
finish()
