"""ONNX's messages in protobuf's wire format, as far as tests look into them without a library: fields, and stored tensors.

The numbers of fields and types are those of onnx.proto; messages that the tests read come from ONNX's own data, so that a broken
one may end in an exception.
"""
import collections

# By TensorProto's number of the type: bytes of an element, and how Python's struct reads it.
TYPES = {1: (4, "f"), 2: (1, "B"), 3: (1, "b"), 4: (2, "H"), 5: (2, "h"), 6: (4, "i"), 7: (8, "q"), 9: (1, "?"), 10: (2, "e"),
         11: (8, "d"), 12: (4, "I"), 13: (8, "Q")}

# raw: the elements' bytes; None: their type is not one of TYPES.
Tensor = collections.namedtuple("Tensor", "name dims type raw")


def varint(data, at):
    """The unsigned number at `at`, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """The fields of a message: (number, value), where that is an integer, or the bytes of a message, text or packed numbers."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = varint(data, at)
            yield tag >> 3, value
            continue
        size, at = varint(data, at) if kind == 2 else (8 if kind == 1 else 4, at)
        yield tag >> 3, data[at:at + size]
        at += size


def integers(value):
    """Those of a repeated field of integers, one of which a field holds, or all, packed."""
    at = 0
    if isinstance(value, int):
        yield value
        return
    while at < len(value):
        number, at = varint(value, at)
        yield number


def read_tensor(path):
    """A stored TensorProto; None: what is stored is none, such as a sequence or an optional."""
    with open(path, "rb") as file:
        data = file.read()
    name, dims, kind, raw, numbers = "", [], None, None, []
    for field, value in fields(data):
        if field == 3:  # where sequences and optionals keep what they hold, and tensors nothing
            return None
        if field == 1:
            dims.extend(integers(value))
        elif field == 2:
            kind = value
        elif field in (4, 9, 10):  # floats, raw bytes and doubles lie as they are
            raw = value
        elif field in (5, 7, 11):
            numbers.extend(integers(value))
        elif field == 8:
            name = value.decode()
    if kind in TYPES and raw is None:
        size = TYPES[kind][0]  # halves are stored as their bits
        raw = b"".join((number & ((1 << 8 * size) - 1)).to_bytes(size, "little") for number in numbers)
    return Tensor(name, dims, kind, raw if kind in TYPES else None)
