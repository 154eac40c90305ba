#!/usr/bin/env python3
"""Random quantised graphs on emulated microcontrollers, many in one program.

  quantised_graphs.py FIRN SOURCE CPU FIRST..END [--keep FOLDER]

Every seed of FIRST to END (not included) is a graph of layers between bytes, compiled for CPU (cortex-m0, cortex-m3, cortex-m4,
cortex-m33, cortex-m55 or rv32imc) at -O3 or -Os. A program holds some dozens of them with inputs, and results of the evaluator for
the graph that was planned. It runs each with painted words around the arena, and below the stack as deep as the manifest says: results
have to be equal, and no painted word may change. Where the CPU has floats, the last layer may be a function, whose results may be one
step off. Results of the model itself may differ by some steps from those of the graph that was planned, on average by two at most.
Failing graphs are written to FOLDER.
"""
import argparse
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

SOURCE = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else "."
sys.path[:0] = [os.path.join(SOURCE, "tests", "hostile"), os.path.join(SOURCE, "tools", "bench")]

from microcontroller import Board  # noqa: E402 (the path is set above)
from model_writer import attribute, graph, ints, model, msg, node, num, tensor, value  # noqa: E402

F32, U8, I8, I32, I64 = 1, 2, 3, 6, 7
FORMS = {F32: "f", U8: "B", I8: "b", I32: "i", I64: "q"}
RANGES = {U8: (0, 255), I8: (-128, 127)}
GRAPHS_IN_PROGRAM = 40
MOST_MEAN_STEPS = 2  # between the model and the graph that is planned: each rounding may give the neighbouring step
FLOATLESS = ("cortex-m0", "cortex-m3", "rv32imc")
RISCV = ["riscv64-linux-gnu-g++", "-march=rv32imc", "-mabi=ilp32", "-ffreestanding", "-nostdlib", "-static", "-fno-exceptions",
         "-fno-rtti", "-O1"]


def integer(name, number):
    return attribute(name, 2, num(3, number))


def size(dims):
    count = 1
    for dim in dims:
        count *= dim
    return count


class Value:
    """Quantised numbers: the name of what they are as floats, and how large these are."""

    def __init__(self, name, dims, scale):
        self.name, self.dims, self.scale = name, dims, scale


class Graph:
    """Layers drawn one after the other, each of which is quantised again."""

    def __init__(self, seed, has_floats):
        self.random, self.has_floats = random.Random(seed), has_floats
        self.nodes, self.initializers, self.inputs, self.values = [], [], [], []
        self.rounded = []  # names, dims and types of bytes that layers gave
        self.is_exact = True

    def constant(self, dims, numbers, dtype):
        name = f"c{len(self.initializers)}"
        self.initializers.append(tensor(name, dims, struct.pack(f"<{len(numbers)}{FORMS[dtype]}", *numbers), dtype))
        return name

    def op(self, kind, operands, *attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(node(kind, operands, [name], *attributes, name=name))
        return name

    def parameters(self, scale, dtype):
        low, high = RANGES[dtype]
        zero = self.random.choice((0, low, self.random.randint(low, high)))
        return [self.constant([], [scale], F32), self.constant([], [zero], dtype)]

    def input(self, dims):
        dtype, scale = self.random.choice((U8, I8)), self.random.uniform(0.01, 0.1)
        name = f"x{len(self.inputs)}"
        self.inputs.append((name, dims, dtype))
        self.values.append(Value(self.op("DequantizeLinear", [name, *self.parameters(scale, dtype)]), dims, scale))
        return self.values[-1]

    def quantise(self, name, dims, scale):
        """Rounds floats to bytes whose steps are about `scale`."""
        scale *= self.random.uniform(0.6, 1.5)
        dtype = self.random.choice((U8, I8))
        parameters = self.parameters(scale, dtype)
        rounded = self.op("QuantizeLinear", [name, *parameters])
        self.rounded.append((rounded, dims, dtype))
        self.values.append(Value(self.op("DequantizeLinear", [rounded, *parameters]), dims, scale))
        return self.values[-1]

    def weights(self, dims, channels, axis):
        scales = [self.random.uniform(0.002, 0.02) for _ in range(channels if self.random.random() < 0.7 else 1)]
        numbers = [self.random.randint(-127, 127) for _ in range(size(dims))]
        operands = [self.constant(dims, numbers, I8), self.constant([len(scales)] if len(scales) > 1 else [], scales, F32)]
        spread = [integer("axis", axis)] if len(scales) > 1 else []
        return self.op("DequantizeLinear", operands, *spread), sum(scales) / len(scales), scales

    def bounded(self, name):
        kind = self.random.choice(("", "", "Relu", "Clip"))
        if kind == "Clip":
            return self.op("Clip", [name, self.constant([], [0.0], F32), self.constant([], [6.0], F32)])
        return self.op("Relu", [name]) if kind else name

    # Layers: each returns the floats, their dims and a scale; None: it does not fit.

    def convolution(self, x):
        if len(x.dims) != 4:
            return None
        channels, spatial = x.dims[1], x.dims[2:]
        is_depthwise = self.random.random() < 0.4
        outputs = channels * self.random.choice((1, 1, 2)) if is_depthwise else self.random.choice((1, 3, 4, 8, 10, 16))
        window = [self.random.choice([k for k in (1, 2, 3, 5) if k <= s]) for s in spatial]
        strides, pads = [self.random.choice((1, 1, 2)) for _ in spatial], [self.random.randint(0, k // 2) for k in window * 2]
        filters = [outputs, 1 if is_depthwise else channels, *window]
        dims = [x.dims[0], outputs, *((s + pads[i] + pads[i + 2] - window[i]) // strides[i] + 1 for i, s in enumerate(spatial))]
        if size(dims) > 4000 or size(dims) * size(filters[1:]) > 200_000:
            return None
        weights, scale, scales = self.weights(filters, outputs, 0)
        operands = [x.name, weights]
        if self.random.random() < 0.7:
            operands.append(self.constant([outputs], self.biases(outputs, scales, x), F32))
        name = self.op("Conv", operands, ints("pads", pads), ints("strides", strides), ints("kernel_shape", window),
                       integer("group", channels if is_depthwise else 1))
        return self.bounded(name), dims, x.scale * scale * 60 * size(filters[1:])**0.5

    def biases(self, channels, scales, x):
        scales = scales * (channels if len(scales) == 1 else 1)
        return [self.random.randint(-2000, 2000) * s * x.scale for s in scales]

    def dense(self, x):
        rows, steps = x.dims[0], size(x.dims[1:])
        outputs = self.random.choice((1, 3, 10, 16, 33))
        if steps > 2000:
            return None
        if len(x.dims) != 2:
            x = Value(self.op("Flatten", [x.name]), [rows, steps], x.scale)
        weights, scale, scales = self.weights([steps, outputs], outputs, 1)
        name = self.op("MatMul", [x.name, weights])
        if self.random.random() < 0.7:
            name = self.op("Add", [name, self.constant([outputs], self.biases(outputs, scales, x), F32)])
        return self.bounded(name), [rows, outputs], x.scale * scale * 60 * steps**0.5

    def other_like(self, x):
        same = [v for v in self.values if v.dims == x.dims and v is not x]
        return self.random.choice(same) if same and self.random.random() < 0.8 else self.input(x.dims)

    def sum(self, x):
        y = self.other_like(x)
        return self.bounded(self.op(self.random.choice(("Add", "Sub")), [x.name, y.name])), x.dims, x.scale + y.scale

    def product(self, x):
        y = self.input([x.dims[0], x.dims[1], 1, 1]) if len(x.dims) == 4 and self.random.random() < 0.5 else self.other_like(x)
        return self.op("Mul", [x.name, y.name]), x.dims, x.scale * y.scale * 80

    def maximum(self, x):
        y = self.other_like(x)
        return self.op(self.random.choice(("Max", "Min")), [x.name, y.name]), x.dims, max(x.scale, y.scale)

    def pooling(self, x):
        if len(x.dims) != 4:
            return None
        window = [self.random.randint(1, min(3, s)) for s in x.dims[2:]]
        dims = x.dims[:2] + [s // k for s, k in zip(x.dims[2:], window)]
        name = self.op(self.random.choice(("MaxPool", "AveragePool")), [x.name], ints("kernel_shape", window), ints("strides", window))
        return name, dims, x.scale

    def mean(self, x):
        return (self.op("GlobalAveragePool", [x.name]), x.dims[:2] + [1, 1], x.scale / 2) if len(x.dims) == 4 else None

    def joined(self, x):
        y = self.other_like(x)
        return self.op("Concat", [x.name, y.name], integer("axis", 1)), [x.dims[0], 2 * x.dims[1], *x.dims[2:]], max(x.scale, y.scale)

    def moved(self, x):
        rank = len(x.dims)
        kind = self.random.choice(("Transpose", "Slice", "Pad", "Resize"))
        if kind == "Transpose":
            order = list(range(rank))
            self.random.shuffle(order)
            return self.op(kind, [x.name], ints("perm", order)), [x.dims[d] for d in order], x.scale
        if kind == "Slice":
            d = self.random.randrange(rank)
            start, step = self.random.randrange(x.dims[d]), self.random.choice((1, 1, 2))
            words = [self.constant([1], [n], I64) for n in (start, x.dims[d], d, step)]
            dims = list(x.dims)
            dims[d] = (x.dims[d] - start + step - 1) // step
            return self.op(kind, [x.name, *words]), dims, x.scale
        if rank != 4 or size(x.dims) > 600:
            return None
        if kind == "Pad":
            pads = [0, 0, *(self.random.randint(0, 2) for _ in range(2)), 0, 0, *(self.random.randint(0, 2) for _ in range(2))]
            dims = x.dims[:2] + [s + pads[2 + i] + pads[6 + i] for i, s in enumerate(x.dims[2:])]
            return self.op(kind, [x.name, self.constant([8], pads, I64)]), dims, x.scale
        name = self.op(kind, [x.name, "", self.constant([4], [1.0, 1.0, 2.0, 2.0], F32)], attribute("mode", 3, msg(4, b"nearest")),
                       attribute("coordinate_transformation_mode", 3, msg(4, b"asymmetric")),
                       attribute("nearest_mode", 3, msg(4, b"floor")))
        return name, x.dims[:2] + [2 * s for s in x.dims[2:]], x.scale

    def function(self, x):
        kind = self.random.choice(("Sigmoid", "Tanh", "LeakyRelu", "HardSwish", "Elu", "Softmax", "LayerNormalization", "PRelu"))
        self.is_exact = False
        if kind == "Softmax":
            return self.op(kind, [x.name], integer("axis", self.random.choice((1, len(x.dims) - 1)))), x.dims, 1 / 256
        if kind == "LayerNormalization":
            width = x.dims[-1]
            operands = [x.name] + [self.constant([width], [self.random.uniform(-1.5, 1.5) for _ in range(width)], F32) for _ in range(2)]
            return self.op(kind, operands), x.dims, 0.03
        if kind == "PRelu":
            slopes = [x.dims[1]] + [1] * (len(x.dims) - 2)
            return self.op(kind, [x.name, self.constant(slopes, [self.random.uniform(0, 1) for _ in range(size(slopes))], F32)]), \
                x.dims, x.scale
        return self.op(kind, [x.name]), x.dims, {"Sigmoid": 1 / 256, "Tanh": 1 / 128}.get(kind, x.scale)

    def grow(self):
        dims = [1, self.random.choice((1, 2, 3, 4, 5, 8, 16, 17)), self.random.randint(2, 9), self.random.randint(2, 9)]
        if self.random.random() < 0.2:
            dims = [self.random.randint(1, 4), self.random.choice((3, 16, 24, 40, 65))]
        x = self.input(dims)
        layers = [self.convolution] * 5 + [self.dense] * 2 + [self.sum, self.product, self.pooling, self.mean, self.joined, self.moved,
                                                              self.maximum]
        for _ in range(self.random.randint(1, 6)):
            self.layer(self.random.choice(layers + ([] if self.has_floats else [self.function] * 2)), x)
            x = self.values[-1] if self.random.random() < 0.8 else self.random.choice(self.values)
        if not self.rounded or self.random.random() < 0.3:
            self.layer(self.function, x)
        last = self.rounded[-1]
        others = [v for v in self.rounded[:-1] if self.random.random() < 0.2]
        outputs = [*others, last]
        return model(graph(self.nodes, [value(*x) for x in self.inputs], [value(*y) for y in outputs], self.initializers), opset=18)

    def layer(self, layer, x):
        made = layer(x)
        if made:
            self.quantise(*made)


HARNESS = r"""
#include <firn/abi.h>
#include <stdint.h>
struct graph_case {
  const char* name;
  firn_status (*run)(const firn_rt2_call*);
  const unsigned char* (*weights)(void);
  uint32_t arena_bytes, stack_bytes, inputs, tensors, tolerance;
  const uint32_t (*places)[3];   // offset in the arena, bytes, whether they are signed
  const unsigned char* numbers;  // of inputs, then of outputs
};
extern "C" const graph_case cases[];
extern "C" const uint32_t num_cases;
extern "C" void print(const char*);
enum : uint32_t { kGuard = 64, kPainted = 4096 };
static uint64_t memory[(ARENA_BYTES + 2 * kGuard + 64) / 8];
static void print_number(const char* name, uint32_t number) {
  char digits[12], *first = digits + 11;
  *first = 0;
  do *--first = static_cast<char>('0' + number % 10);
  while ((number /= 10) > 0);
  print(name);
  print(first);
}
// Runs, and says how deep the stack was.
__attribute__((noinline)) static uint32_t run_painted(const graph_case& test, const firn_rt2_call& call, firn_status* status) {
  volatile unsigned char* end;
  READ_SP(end);
  for (volatile unsigned char* at = end - test.stack_bytes - kPainted; at < end; ++at) *at = 0xa5;
  *status = test.run(&call);
  volatile unsigned char* low = end - test.stack_bytes - kPainted;
  while (low < end && *low == 0xa5) ++low;
  return static_cast<uint32_t>(end - low);
}
static const char* check(const graph_case& test) {
  auto* arena = reinterpret_cast<unsigned char*>(((reinterpret_cast<uintptr_t>(memory) + 15) & ~uintptr_t{15}) + kGuard);
  for (unsigned char* at = arena - kGuard; at < arena + test.arena_bytes + kGuard; ++at) *at = 0xa5;
  void* places[16];
  const unsigned char* numbers = test.numbers;
  for (uint32_t i = 0; i < test.tensors; ++i) places[i] = arena + test.places[i][0];
  for (uint32_t i = 0; i < test.inputs; ++i)
    for (uint32_t k = 0; k < test.places[i][1]; ++k) static_cast<unsigned char*>(places[i])[k] = *numbers++;
  firn_rt2_call call = {};
  call.size = sizeof call;
  call.arena = arena;
  call.weights = test.weights();
  call.inputs = places;
  call.outputs = places + test.inputs;
  firn_status status;
  const uint32_t depth = run_painted(test, call, &status);
  if (status != FIRN_STATUS_OK) return " ended with a status";
  if (depth > test.stack_bytes + STACK_MARGIN) {
    print_number(" stack ", depth);
    print_number(" of ", test.stack_bytes);
    return " is deeper than the manifest says";
  }
  for (uint32_t i = 0; i < kGuard; ++i)
    if (arena[test.arena_bytes + i] != 0xa5 || *(arena - 1 - i) != 0xa5) return " wrote outside of the arena";
  for (uint32_t t = test.inputs; t < test.tensors; ++t) {
    const auto* got = static_cast<const unsigned char*>(places[t]);
    for (uint32_t k = 0; k < test.places[t][1]; ++k) {
      int a = got[k], b = *numbers++;
      if (test.places[t][2] != 0) a = static_cast<signed char>(a), b = static_cast<signed char>(b);
      if (static_cast<uint32_t>(a < b ? b - a : a - b) <= test.tolerance) continue;
      print_number(" output ", t - test.inputs);
      print_number(" element ", k);
      print_number(" is ", static_cast<uint32_t>(got[k]));
      return " and no such number was expected";
    }
  }
  return " ok";
}
extern "C" int main() {
  for (uint32_t i = 0; i < num_cases; ++i) {
    print(cases[i].name);
    print(check(cases[i]));
    print("\n");
  }
  return 0;
}
"""
READ_SP = {"arm": '__asm__ volatile("mov %0, sp" : "=r"(place))', "riscv": '__asm__ volatile("mv %0, sp" : "=r"(place))'}

# A program of Linux, without a C library.
RISCV_START = r"""
#include <stddef.h>
extern "C" int main();
static long call_linux(long number, long a, const void* b, size_t c) {
  register long a0 asm("a0") = a;
  register long a1 asm("a1") = reinterpret_cast<long>(b);
  register long a2 asm("a2") = static_cast<long>(c);
  register long a7 asm("a7") = number;
  asm volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a7) : "memory");
  return a0;
}
extern "C" void print(const char* text) {
  size_t count = 0;
  while (text[count] != 0) ++count;
  call_linux(64, 1, text, count);
}
extern "C" void* memset(void* to, int value, size_t count) {
  volatile char* p = static_cast<char*>(to);
  for (size_t i = 0; i < count; ++i) p[i] = static_cast<char>(value);
  return to;
}
extern "C" void* memmove(void* to, const void* from, size_t count) {
  volatile char* p = static_cast<char*>(to);
  const volatile char* q = static_cast<const char*>(from);
  for (size_t i = 0; i < count; ++i) p <= q ? (void)(p[i] = q[i]) : (void)(p[count - 1 - i] = q[count - 1 - i]);
  return to;
}
extern "C" void* memcpy(void* to, const void* from, size_t count) { return memmove(to, from, count); }
extern "C" void start() { call_linux(93, main(), nullptr, 0); }
asm(".globl _start\n_start:\n.option push\n.option norelax\nla gp, __global_pointer$\n.option pop\nandi sp, sp, -16\ncall start");
"""


def run(command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout[-2000:]}")
    return done.stdout


def read_npy(path):
    with open(path, "rb") as file:
        data = file.read()
    return data[10 + struct.unpack("<H", data[8:10])[0]:]


def mean_difference(left, right, dtype):
    form = "b" if dtype == "i8" else "B"
    pairs = zip(struct.unpack(f"{len(left)}{form}", left), struct.unpack(f"{len(right)}{form}", right))
    return sum(abs(x - y) for x, y in pairs) / max(len(left), 1)


def c_bytes(data):
    return ",".join(map(str, data))


class Machine:
    """Compiles graphs for a CPU, and runs programs of them."""

    def __init__(self, firn, cpu, folder):
        self.firn, self.cpu, self.folder = firn, cpu, folder
        self.has_floats = cpu not in FLOATLESS
        if cpu == "rv32imc":
            self.flags = ["--target", "riscv32-unknown-elf", "-mattr=+m,+c,-f,-d"]
        else:
            self.board = Board(cpu, folder)
            self.flags = ["--target", self.board.target, f"-mcpu={cpu}"]

    def compile(self, seed):
        """C code of the case, or why there is none."""
        drawn, name = Graph(seed, self.has_floats), f"g{seed}"
        made = drawn.grow()
        base = os.path.join(self.folder, name)
        os.makedirs(base)
        path = os.path.join(base, "model.onnx")
        with open(path, "wb") as file:
            file.write(made)
        flags = [*self.flags, drawn.random.choice(("-O3", "-Os"))]
        run([self.firn, "compile", path, "-o", base, "-q", *flags])
        planned, weights = os.path.join(base, "planned.hlo"), os.path.join(base, "weights")
        run([self.firn, "compile", path, "-q", *flags, "--emit=graph", "--weights-out", weights, "-o", planned])
        arguments, numbers = [], b""
        for word, dims, dtype in drawn.inputs:
            low, high = RANGES[dtype]
            data = bytes(drawn.random.choice((low, high, *[drawn.random.randint(low, high)] * 6)) & 255 for _ in range(size(dims)))
            numbers += data
            file_name = os.path.join(base, word + ".pb")
            with open(file_name, "wb") as file:
                file.write(tensor(word, dims, data, dtype))
            arguments += ["--input", f"{word}={file_name}"]
        run([self.firn, "run", planned, "--weights-in", weights, "--engine", "eval", "--output-dir", base, *arguments])
        model_results = os.path.join(base, "model")
        run([self.firn, "run", path, "--engine", "eval", "--output-dir", model_results, *arguments])
        with open(base + ".json", encoding="utf-8") as file:
            manifest = json.load(file)
        places = []
        for kind in ("inputs", "outputs"):
            for each in manifest[kind]:
                places.append((each["arena_offset"], each["bytes"], int(each["dtype"] == "i8")))
                if kind == "outputs":
                    results = read_npy(os.path.join(base, each["name"] + ".npy"))
                    wanted = read_npy(os.path.join(model_results, each["name"] + ".npy"))
                    if mean_difference(results, wanted, each["dtype"]) > MOST_MEAN_STEPS:
                        raise RuntimeError(f"the planned graph's output {each['name']} is not the model's")
                    numbers += results
        sizes = manifest["sizes"]
        self.arena = max(self.arena, sizes["arena_bytes"])
        rows = ",".join("{%d,%d,%d}" % place for place in places)
        return f"""extern "C" firn_status {manifest["run_symbol"]}(const firn_rt2_call*);
extern "C" const unsigned char* {manifest["weights_symbol"]}(void);
static const uint32_t places_{seed}[][3] = {{{rows}}};
static const unsigned char numbers_{seed}[] = {{{c_bytes(numbers)}}};
""", f"""{{"{seed}", {manifest["run_symbol"]}, {manifest["weights_symbol"]}, {sizes["arena_bytes"]}, {sizes["stack_bytes"]},
  {len(manifest["inputs"])}, {len(places)}, {int(self.has_floats and not drawn.is_exact)}, places_{seed}, numbers_{seed}}}""", base + ".o"

    def check(self, seeds):
        """What each seed came to: "ok", or what is wrong."""
        self.arena, parts, outcomes = 16, [], {}
        for seed in seeds:
            try:
                parts.append(self.compile(seed))
            except (RuntimeError, OSError) as error:
                outcomes[seed] = str(error)
        if not parts:
            return outcomes
        text = HARNESS.replace("ARENA_BYTES", str(self.arena)).replace("STACK_MARGIN", "0")
        read_sp = READ_SP["riscv" if self.cpu == "rv32imc" else "arm"]
        source = os.path.join(self.folder, "harness.cpp")
        with open(source, "w", encoding="utf-8") as file:
            file.write(f"#define READ_SP(place) {read_sp}\n{text}\n" + "".join(part[0] for part in parts))
            file.write('extern "C" const graph_case cases[] = {' + ",\n".join(part[1] for part in parts) + "};\n")
            file.write(f'extern "C" const uint32_t num_cases = {len(parts)};\n')
        said = self.execute(source, [part[2] for part in parts])
        for line in said.splitlines():
            word, _, what = line.partition(" ")
            outcomes[int(word)] = what
        for seed in seeds:
            outcomes.setdefault(seed, "did not end")
        return outcomes

    def execute(self, source, objects):
        include = os.path.join(SOURCE, "include")
        if self.cpu == "rv32imc":
            start, elf = os.path.join(self.folder, "start.cpp"), os.path.join(self.folder, "program")
            with open(start, "w", encoding="utf-8") as file:
                file.write(RISCV_START)
            run([*RISCV, "-I", include, start, source, *objects, "-o", elf])
            command = ["qemu-riscv32", "-cpu", "rv32,f=false,d=false", elf]
        else:
            self.board.program = source
            elf = self.board.link("program", objects, [include])
            command = ["qemu-system-arm", "-M", self.board.machine, "-nographic", "-monitor", "none", "-serial", "null",
                       "-semihosting-config", "enable=on,target=native", "-kernel", elf]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
        return "\n".join(line for line in done.stdout.splitlines() if re.match(r"\d+ ", line))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("firn")
    parser.add_argument("source")
    parser.add_argument("cpu")
    parser.add_argument("seeds")
    parser.add_argument("--keep", default="")
    wanted = parser.parse_args()
    first, end = (int(word) for word in wanted.seeds.split(".."))
    batches = [range(at, min(at + GRAPHS_IN_PROGRAM, end)) for at in range(first, end, GRAPHS_IN_PROGRAM)]

    def check(batch):
        with tempfile.TemporaryDirectory() as folder:
            outcomes = Machine(wanted.firn, wanted.cpu, folder).check(batch)
            for seed, what in outcomes.items():
                if what != "ok" and wanted.keep:
                    shutil.copytree(os.path.join(folder, f"g{seed}"), os.path.join(wanted.keep, f"g{seed}"), dirs_exist_ok=True)
            return outcomes

    with ThreadPoolExecutor(2) as pool:
        outcomes = {seed: what for batch in pool.map(check, batches) for seed, what in batch.items()}
    wrong = {seed: what for seed, what in outcomes.items() if what != "ok"}
    for seed, what in sorted(wrong.items()):
        print(f"seed {seed}: {what}")
    print(f"{wanted.cpu}: {len(outcomes) - len(wrong)} graphs as the evaluator says, {len(wrong)} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
