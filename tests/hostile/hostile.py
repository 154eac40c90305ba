#!/usr/bin/env python3
"""Compiles more than 200 broken models and fails if one crashes, hangs, eats memory, or is refused without a message.

    hostile.py FIRN MODEL

Models are written byte by byte, or made from MODEL by cutting and flipping. Structural
breaks must end with exit code 1 or 3, or 2 where the model names a file that is not there; random damage may by luck leave a
valid model, so exit code 0 is allowed there.
"""
import os
import random
import struct
import subprocess
import sys
import tempfile

from model_writer import attribute, external, floats, graph, ints, model, msg, node, num, strings, tensor, value

SECONDS, MEMORY_KIB = 5, 1 << 20


X, Y = [value("x", [1, 3, 8, 8])], [value("y", [1, 3, 8, 8])]


def one(n, inits=(), inputs=X, **kw):
    return model(graph([n], inputs, Y, inits), **kw)


def structural():
    yield "empty", b""
    yield "text", b"this is not a model"
    yield "zeros", bytes(1000)
    yield "ones", b"\xff" * 1000
    yield "no_graph", num(1, 8)
    for ir in (0, 1, 2, 15, 99, 1 << 40):
        yield f"ir_{ir}", one(node("Relu", ["x"], ["y"]), ir=ir)
    for opset in (0, -1, 30, 1 << 40):
        yield f"opset_{opset}", one(node("Relu", ["x"], ["y"]), opset=opset)
    yield "unknown_op", one(node("Nope", ["x"], ["y"]))
    yield "unknown_domain", one(node("Relu", ["x"], ["y"], domain="com.acme"))
    yield "cycle", model(graph([node("Relu", ["b"], ["a"]), node("Relu", ["a"], ["b"]), node("Relu", ["a"], ["y"])], X, Y))
    yield "self_loop", model(graph([node("Relu", ["y"], ["y"])], X, Y))
    yield "missing_input", one(node("Relu", ["nowhere"], ["y"]))
    yield "missing_output", model(graph([node("Relu", ["x"], ["z"])], X, Y))
    yield "duplicate_value", model(graph([node("Relu", ["x"], ["y"]), node("Abs", ["x"], ["y"])], X, Y))
    yield "duplicate_input", model(graph([node("Relu", ["x"], ["y"])], X + X, Y))
    for op, many in (("Relu", 0), ("Relu", 3), ("Conv", 1), ("Conv", 9), ("Add", 1), ("Add", 5), ("Gemm", 1), ("Concat", 0), ("LSTM", 2)):
        yield f"arity_{op}_{many}", one(node(op, ["x"] * many, ["y"]))
    for kernel in ([], [0, 0], [-1, -1], [1 << 40, 1 << 40], [3], [3, 3, 3]):
        yield f"pool_{len(kernel)}_{sum(kernel)}", one(node("MaxPool", ["x"], ["y"], ints("kernel_shape", kernel)))
    for name, values in (("strides", [0, 0]), ("strides", [-1, 1]), ("dilations", [0, 1]), ("pads", [1, 2]), ("pads", [1 << 60] * 4), ("pads", [-9] * 4)):
        yield f"pool_{name}_{values[0]}_{len(values)}", one(node("AveragePool", ["x"], ["y"], ints("kernel_shape", [2, 2]), ints(name, values)))
    for dims in ([4, 3, 3], [4, 7, 3, 3], [0, 3, 3, 3], [4, 3, 9, 9], [-4, 3, 3, 3], [1 << 40, 3, 3, 3], [1 << 31, 1 << 31, 3, 3]):
        yield "filter_" + "_".join(map(str, dims)), one(node("Conv", ["x", "w"], ["y"]), [tensor("w", dims, bytes(64))])
    for group in (0, -1, 2, 1 << 40):
        yield f"group_{group}", one(node("Conv", ["x", "w"], ["y"], attribute("group", 2, num(3, group))), [tensor("w", [3, 3, 1, 1], bytes(36))])
    yield "short_data", one(node("Add", ["x", "w"], ["y"]), [tensor("w", [3, 8, 8], bytes(100))])
    yield "long_data", one(node("Add", ["x", "w"], ["y"]), [tensor("w", [1], bytes(100))])
    yield "no_data", one(node("Add", ["x", "w"], ["y"]), [tensor("w", [1 << 20, 1 << 20])])
    for dtype in (0, 8, 27, 99, -1):
        yield f"dtype_{dtype}", one(node("Add", ["x", "w"], ["y"]), [tensor("w", [1], bytes(4), dtype)])
        yield f"input_dtype_{dtype}", one(node("Relu", ["x"], ["y"]), inputs=[value("x", [1], dtype)])
    yield "mixed_dtypes", one(node("Add", ["x", "w"], ["y"]), [tensor("w", [1], bytes(8), 7)])
    for path in ("/etc/passwd", "../../etc/passwd", "a/../../../etc/passwd", "", ".", "missing.bin", "/dev/zero", "/proc/self/mem", "a\0b"):
        yield f"external_{abs(hash(path)) % 1000}", one(node("Add", ["x", "w"], ["y"]), [tensor("w", [1], extra=external(path))])
    for more in ({"offset": -1}, {"offset": 1 << 62}, {"length": -5}, {"length": 1 << 62}, {"offset": "abc"}):
        yield f"external_{list(more)[0]}_{list(more.values())[0]}", one(node("Add", ["x", "w"], ["y"]), [tensor("w", [1], extra=external("broken.onnx", **more))])
    for bad in ("a\nb", "a\tb", "a\x1b[31m", "a\x7f", "a\x9b"):
        code = ord(bad[1])
        yield f"control_{code}_input", one(node("Relu", [bad], ["y"]), inputs=[value(bad, [1])])
        yield f"control_{code}_output", model(graph([node("Relu", ["x"], [bad])], X, [value(bad, [1, 3, 8, 8])]))
        yield f"control_{code}_node", one(node("Relu", ["x"], ["y"], name=bad))
        yield f"control_{code}_dim", one(node("Relu", ["x"], ["y"]), inputs=[value("x", [bad])])
        yield f"control_{code}_external", one(node("Add", ["x", "w"], ["y"]), [tensor("w", [1], extra=external(bad))])
    for dims in ([-1, 3], [1 << 62, 4], [1 << 40, 1 << 40], [1 << 31] * 4, [1] * 100):
        yield f"input_dims_{len(dims)}_{dims[0]}", one(node("Relu", ["x"], ["y"]), inputs=[value("x", dims)])
    for to in ([-2], [0, 0, 0, 0, 0], [-1, -1], [1 << 62, 2], [7], [-1, 5]):
        data = struct.pack(f"<{len(to)}q", *to)
        yield f"reshape_{to[0]}_{len(to)}", one(node("Reshape", ["x", "s"], ["y"]), [tensor("s", [len(to)], data, 7)])
        yield f"expand_{to[0]}_{len(to)}", one(node("Expand", ["x", "s"], ["y"]), [tensor("s", [len(to)], data, 7)])
        if min(to) < 0 or max(to) > 1 << 40:
            yield f"fill_{to[0]}_{len(to)}", one(node("ConstantOfShape", ["s"], ["y"]), [tensor("s", [len(to)], data, 7)])
        yield f"tile_{to[0]}_{len(to)}", one(node("Tile", ["x", "s"], ["y"]), [tensor("s", [len(to)], data, 7)])
    for perm in ([0, 0, 1, 2], [0, 1], [4, 0, 1, 2]):
        yield f"perm_{perm[0]}_{len(perm)}", one(node("Transpose", ["x"], ["y"], ints("perm", perm)))
    for axis in (99, -99, 1 << 62):
        for op in ("Softmax", "Flatten", "ArgMax", "Concat", "Gather", "CumSum", "TopK"):
            yield f"axis_{op}_{axis}", one(node(op, ["x", "x"] if op in ("Gather", "Concat") else ["x"], ["y"], attribute("axis", 2, num(3, axis))))
    yield "wrong_attribute_kind", one(node("Softmax", ["x"], ["y"], attribute("axis", 3, msg(4, "one"))))
    nested = graph([node("Relu", ["x"], ["y"])], [], [value("y", [1])])
    for _ in range(300):
        nested = graph([node("If", ["c"], ["y"], attribute("then_branch", 5, msg(6, nested)), attribute("else_branch", 5, msg(6, nested[:0])))], [], [value("y", [1])])
        if len(nested) > 1 << 20:
            break
    yield "deep_if", model(nested)
    deep_type = num(1, 1)
    for _ in range(5000):
        deep_type = msg(4, msg(1, deep_type))
    yield "deep_type", model(graph([node("Relu", ["x"], ["y"])], [msg(1, "x") + msg(2, deep_type)], Y))
    recursion = msg(1, "f") + msg(4, "a") + msg(5, "b") + msg(7, node("f", ["a"], ["b"], domain="d")) + msg(10, "d")
    yield "recursive_function", model(graph([node("f", ["x"], ["y"], domain="d")], X, Y), extra=msg(25, recursion) + msg(8, msg(1, "d") + num(2, 1)))


ROWS = [value("x", [4, 2])]


def trees(**changes):
    """A regressor with one tree of a root and two leaves, some lists of its attributes replaced."""
    lists = {"nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0, 0, 0], "nodes_truenodeids": [1, 0, 0],
             "nodes_falsenodeids": [2, 0, 0], "target_treeids": [0, 0], "target_nodeids": [1, 2], "target_ids": [0, 0], "n_targets": 1,
             "nodes_values": [0.5, 0.0, 0.0], "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "target_weights": [1.0, 2.0], **changes}
    def encode(name, given):
        if isinstance(given, int):
            return attribute(name, 2, num(3, given))
        kind = strings if given and isinstance(given[0], str) else floats if given and isinstance(given[0], float) else ints
        return kind(name, given)
    made = node("TreeEnsembleRegressor", ["x"], ["y"], *(encode(*each) for each in lists.items()), domain="ai.onnx.ml")
    return model(graph([made], ROWS, Y), extra=msg(8, msg(1, "ai.onnx.ml") + num(2, 3)))


def hostile_attributes():
    yield "tree_cycle", trees(nodes_modes=["BRANCH_LEQ"] * 3, nodes_truenodeids=[1, 1, 1], nodes_falsenodeids=[2, 2, 2])
    yield "tree_without_root", trees(nodes_modes=["BRANCH_LEQ"] * 3, nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0])
    for far in (3, -1, 1 << 31, -1 << 63):
        for name in ("nodes_truenodeids", "nodes_falsenodeids", "nodes_featureids"):
            yield f"tree_{name}_{far}", trees(**{name: [far, 0, 0]})
        yield f"tree_votes_{far}", trees(target_nodeids=[1, far])
        yield f"tree_targets_{far}", trees(target_ids=[0, far])
    for targets in (0, -1, 1 << 40):
        yield f"tree_n_targets_{targets}", trees(n_targets=targets)
    yield "tree_many_targets", trees(n_targets=(1 << 31) - 1, target_ids=[0, 7])
    yield "tree_twice", trees(nodes_nodeids=[0, 1, 1])
    yield "tree_modes", trees(nodes_modes=["BRANCH_LEQ", "LEAF", "TWIG"])
    for name in ("nodes_treeids", "nodes_values", "target_weights"):
        yield f"tree_empty_{name}", trees(**{name: []})
    count = 100000
    yield "tree_chain_without_end", trees(nodes_treeids=[0] * count, nodes_nodeids=list(range(count)), nodes_featureids=[0] * count, nodes_values=[0.5] * count,
        nodes_modes=["BRANCH_LEQ"] * count, nodes_truenodeids=[(i + 1) % count for i in range(count)], nodes_falsenodeids=[(i + 2) % count for i in range(count)])
    for heads in (0, -1, 3, 1 << 40):
        for op in ("MultiHeadAttention", "GroupQueryAttention", "Attention"):
            numbers = [attribute(name, 2, num(3, heads)) for name in ("num_heads", "kv_num_heads") if op[0] == "G" or name == "num_heads"]
            made = node(op, ["x"] * (2 if op == "Attention" else 3) + (["", "", "n", "n"] if op[0] == "G" else []), ["y"], *numbers, domain="com.microsoft")
            yield f"heads_{op}_{heads}", model(graph([made], [value("x", [1, 2, 8])], Y, [tensor("n", [1], bytes(4), 6)]), extra=msg(8, msg(1, "com.microsoft") + num(2, 1)))
    for name, values in (("min_gram_length", -1), ("max_gram_length", 1 << 40), ("max_skip_count", 1 << 30)):
        numbers = {"min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 1, name: values}
        lists = [ints("ngram_counts", [0, 1]), ints("ngram_indexes", [0, 1]), ints("pool_int64s", [1, 2, 3]), attribute("mode", 3, msg(4, "TF"))]
        yield f"grams_{name}", one(node("TfIdfVectorizer", ["x"], ["y"], *lists, *(attribute(k, 2, num(3, v)) for k, v in numbers.items())), inputs=[value("x", [4, 9], 7)])


def damaged(whole):
    rng = random.Random(5)
    for i in range(60):
        yield f"cut_{i}", whole[:len(whole) * i // 60]
    for i in range(60):
        data = bytearray(whole)
        for _ in range(rng.choice([1, 1, 2, 8, 64])):
            at = rng.randrange(min(len(data), 1500) if i % 2 else len(data))
            data[at] ^= 1 << rng.randrange(8)
        yield f"flip_{i}", bytes(data)
    tail = whole[-900:]
    for i in range(40):
        data = bytearray(tail)
        for _ in range(rng.choice([1, 3, 9])):
            data[rng.randrange(len(data))] = rng.randrange(256)
        yield f"tail_{i}", whole[:-900] + bytes(data)


def check(firn, folder, name, data, may_succeed):
    path = os.path.join(folder, "broken.onnx")
    with open(path, "wb") as file:
        file.write(data)
    process = subprocess.Popen([firn, "compile", path, "-o", os.path.join(folder, "out"), "-q"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        text = process.communicate(timeout=SECONDS * SLOWDOWN)[0].decode(errors="replace")
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return f"{name}: no end within {SECONDS} s"
    lacks_file = "cannot open external data" in text
    if process.returncode not in ((2,) if lacks_file else (0, 1, 3) if may_succeed else (1, 3)):
        return f"{name}: exit code {process.returncode}: {text[-400:]}"
    if process.returncode != 0 and not text.strip():
        return f"{name}: refused without a message"
    return None


def main():
    firn, source = sys.argv[1:]
    global SLOWDOWN
    SLOWDOWN = 4 if os.environ.get("CI") else 2  # several tests share the cores
    failures, count = [], 0
    with tempfile.TemporaryDirectory() as folder, open(source, "rb") as file:
        whole = file.read()
        for cases, may_succeed in ((structural(), False), (hostile_attributes(), False), (damaged(whole), True)):
            for name, data in cases:
                count += 1
                failure = check(firn, folder, name, data, may_succeed)
                if failure:
                    failures.append(failure)
    import resource
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    if peak > MEMORY_KIB and "asan" not in firn:
        failures.append(f"a compilation took {peak >> 10} MiB")
    print("\n".join(failures))
    print(f"{count} broken models, {len(failures)} failures, peak {peak >> 10} MiB")
    sys.exit(1 if failures or count < 200 else 0)


if __name__ == "__main__":
    main()
