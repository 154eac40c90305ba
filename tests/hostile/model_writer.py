"""ONNX models written byte by byte: a few lines of protobuf encoding, for tests without the onnx package."""
import struct


def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n >= 128:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def num(field, n):
    return varint(field << 3) + varint(n)


def msg(field, body):
    body = body.encode() if isinstance(body, str) else body
    return varint(field << 3 | 2) + varint(len(body)) + body


def shape(dims):
    return b"".join(msg(1, msg(2, d) if isinstance(d, str) else num(1, d)) for d in dims)


def value(name, dims, dtype=1):
    return msg(1, name) + msg(2, msg(1, num(1, dtype) + msg(2, shape(dims))))


def attribute(name, kind, body):
    return msg(1, name) + num(20, kind) + body


def ints(name, values):
    return attribute(name, 7, b"".join(num(8, v) for v in values))


def floats(name, values):
    return attribute(name, 6, b"".join(varint(7 << 3 | 5) + struct.pack("<f", v) for v in values))


def strings(name, values):
    return attribute(name, 8, b"".join(msg(9, v) for v in values))


def node(op, inputs, outputs, *attributes, domain="", name=""):
    return (b"".join(msg(1, i) for i in inputs) + b"".join(msg(2, o) for o in outputs) + msg(3, name or op.lower()) + msg(4, op)
            + b"".join(msg(5, a) for a in attributes) + msg(7, domain))


def tensor(name, dims, data=b"", dtype=1, extra=b""):
    return b"".join(num(1, d) for d in dims) + num(2, dtype) + msg(8, name) + (msg(9, data) if data else b"") + extra


def graph(nodes, inputs, outputs, initializers=()):
    return (b"".join(msg(1, n) for n in nodes) + msg(2, "g") + b"".join(msg(5, t) for t in initializers)
            + b"".join(msg(11, i) for i in inputs) + b"".join(msg(12, o) for o in outputs))


def model(body, ir=8, opset=15, extra=b""):
    return num(1, ir) + msg(7, body) + msg(8, msg(1, "") + num(2, opset)) + extra


def external(path, **more):
    entries = {"location": path, **more}
    return b"".join(msg(13, msg(1, k) + msg(2, str(v))) for k, v in entries.items()) + num(14, 1)
