#!/usr/bin/env python3
"""Writes text_encoder/model.onnx: text of up to 128 bytes to a unit vector; texts that share spellings are near each other.

    make_text_encoder.py [OUT_DIR]       default: the folder of this script

Nothing in it is trained. Every three bytes in a row, letters without their case, are mapped to random Fourier features,
whose mean over the text is the vector: the product of two vectors measures how many such triples the texts share, and
near misses count in part. Spaces, punctuation and the zeros after a shorter text are alike and end words. The script checks
that each of some misspelt questions is nearest to its own sentence, and stores one text with the float64 vector as
test_data_set_0. Needs numpy and onnx.
"""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LENGTH, CHANNELS, FEATURES = 128, 8, 256
SHARPNESS = 2.5  # the larger, the less do triples count that differ in one letter


def weights():
    rng = np.random.default_rng(11)
    alphabet = rng.normal(0, 1, (256, CHANNELS))
    alphabet /= np.linalg.norm(alphabet, axis=1, keepdims=True)
    for code in range(128):
        character = chr(code)
        if not character.isalnum():
            alphabet[code] = 0
        elif character.isupper():
            alphabet[code] = alphabet[ord(character.lower())]
    return {"alphabet": alphabet, "frequencies": SHARPNESS * rng.normal(0, 1, (FEATURES, CHANNELS, 3)),
            "phases": rng.uniform(0, 2 * np.pi, FEATURES), "tiny": np.array([1e-12])}


def encode(text, w):
    """The vector in float64; `text` is u8[1, LENGTH]."""
    letters = np.pad(w["alphabet"][text[0]], ((1, 1), (0, 0)))
    triples = np.stack([letters[i:i + LENGTH] for i in range(3)], 2)
    features = np.cos(np.einsum("tec,fec->tf", triples, w["frequencies"]) + w["phases"])
    total = (features * (text[0] > 0)[:, None]).sum(0, keepdims=True)
    return total / np.sqrt((total ** 2).sum() + 1e-12)


def bytes_of(text):
    return np.frombuffer(text.encode().ljust(LENGTH, b"\0"), np.uint8)[None]


def to_onnx(w):
    nodes = [helper.make_node("Cast", ["text"], ["codes"], name="codes", to=TensorProto.INT32),
             helper.make_node("Gather", ["alphabet", "codes"], ["letters"], name="letters", axis=0),
             helper.make_node("Transpose", ["letters"], ["channels"], name="channels", perm=[0, 2, 1]),
             helper.make_node("Conv", ["channels", "frequencies", "phases"], ["angles"], name="angles", kernel_shape=[3], pads=[1, 1]),
             helper.make_node("Cos", ["angles"], ["features"], name="features"),
             helper.make_node("Cast", ["text"], ["numbers"], name="numbers", to=TensorProto.FLOAT),
             helper.make_node("Clip", ["numbers", "", "one"], ["present"], name="present"),
             helper.make_node("Unsqueeze", ["present", "axis"], ["mask"], name="mask"),
             helper.make_node("Mul", ["features", "mask"], ["kept"], name="kept"),
             helper.make_node("ReduceSum", ["kept", "last"], ["total"], name="total", keepdims=0),
             helper.make_node("ReduceSumSquare", ["total"], ["squares"], name="squares", axes=[1], keepdims=1),
             helper.make_node("Add", ["squares", "tiny"], ["positive"], name="positive"),
             helper.make_node("Sqrt", ["positive"], ["length"], name="length"),
             helper.make_node("Div", ["total", "length"], ["embedding"], name="embedding")]
    initializers = [numpy_helper.from_array(value.astype(np.float32), name) for name, value in w.items()]
    initializers += [numpy_helper.from_array(np.float32(1), "one"), numpy_helper.from_array(np.array([1]), "axis"),
                     numpy_helper.from_array(np.array([2]), "last")]
    graph = helper.make_graph(nodes, "text_encoder",
                              [helper.make_tensor_value_info("text", TensorProto.UINT8, ["batch", LENGTH])],
                              [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["batch", FEATURES])], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8,
                             producer_name="make_text_encoder.py")


SENTENCES = ["the cat sat on the mat", "compile the network ahead of time", "a quick brown fox jumps over the lazy dog",
             "the arena holds everything that a run needs", "weights are shared by all instances"]
QUESTIONS = ["THE CAT SITS ON A MAT", "compiling networks ahead of time", "quikc brown foxes jump over lazy dogs",
             "what does the arena hold?", "do instances share weights"]


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    w = {name: value.astype(np.float32).astype(np.float64) for name, value in weights().items()}
    vectors = np.concatenate([encode(bytes_of(text), w) for text in SENTENCES])
    for index, question in enumerate(QUESTIONS):
        products = vectors @ encode(bytes_of(question), w)[0]
        print(f"{question}: " + " ".join(f"{p:.2f}" for p in products))
        if products.argmax() != index or np.sort(products)[-2] > products[index] - .15:
            sys.exit(f"'{question}' is not nearest to its sentence: nothing written")
    folder = os.path.join(out, "text_encoder", "test_data_set_0")
    os.makedirs(folder, exist_ok=True)
    model = to_onnx(w)
    onnx.checker.check_model(model)
    onnx.save(model, os.path.join(out, "text_encoder", "model.onnx"))
    text = bytes_of(SENTENCES[0])
    for kind, name, value in (("input", "text", text), ("output", "embedding", encode(text, w).astype(np.float32))):
        with open(os.path.join(folder, f"{kind}_0.pb"), "wb") as file:
            file.write(numpy_helper.from_array(value, name).SerializeToString())


main()
