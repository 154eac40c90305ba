#!/usr/bin/env python3
"""Milliseconds of a loss and its gradients by all trained parameters: Firn beside JAX and PyTorch, one thread each.

    gradients.py FIRN NETWORKS [--nets mlp,lstm] [--batches 1,8,32] [--rounds 3] [--seconds 0.3] [--shares]

NETWORKS is the file train_rivals.py of the benchmark data that comes beside the repository: it defines the networks. Firn
compiles the loss with a node Gradient, whose parameters are inputs as they are the rivals' arguments, for the machine's own
CPU, and a program runs it. Times are CPU time, which does not count that others use the machine. The engines take turns; a
line gives the median of the rounds' medians, and the median of Firn's times over the best rival's of the same round. The last
line is the geometric mean of the ratios. --shares prints Firn's kernels by their share of the time. A rival whose module is
not installed is left out.

Needs a C++ compiler ($CXX, or c++) and the repository's include folder beside this script.
"""
import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu",
              "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1", "NPROC": "1"}
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Prints the median of CPU seconds per run; FILL fills the inputs.
PROGRAM = r"""
#include "net.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

static double cpu_seconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

template <class Tensor> static void fill(Tensor tensor) {
  for (size_t i = 0; i < size_t(tensor.size()); ++i) tensor.data()[i] = float(int(i * 37 % 101) - 50) / 512;
}

int main(int, char** arguments) {
  static Net::Arena arena;
  static Net net(arena);
  FILL
  std::vector<double> times;
  const double begun = cpu_seconds();
  for (int i = 0; i < 5 || cpu_seconds() - begun < std::atof(arguments[1]); ++i) {
    const double before = cpu_seconds();
    if (!net.run()) return 1;
    if (i >= 2) times.push_back(cpu_seconds() - before);
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  std::printf("%.9g\n", times[times.size() / 2]);
}
"""


def load(path):
    spec = importlib.util.spec_from_file_location("networks", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_model(networks, net, batch, path):
    """The loss, and its gradients by the trained parameters, which are inputs."""
    import onnx
    model = networks.to_onnx(net, batch, with_loss=True)
    graph = model.graph
    trained = [each for each in graph.initializer if each.name in net.weights() and networks.is_trained(net, each.name)]
    for tensor in trained:
        graph.initializer.remove(tensor)
        graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
        graph.output.append(onnx.helper.make_tensor_value_info("d_" + tensor.name, tensor.data_type, list(tensor.dims)))
    labels = next(each for each in graph.input if each.name == "labels")
    graph.input.remove(labels)
    graph.initializer.append(onnx.numpy_helper.from_array(networks.data(net, batch)[1], "labels"))
    names = [each.name for each in trained]
    graph.node.append(onnx.helper.make_node("Gradient", [*names, "x"], ["d_" + name for name in names], domain="ai.onnx.preview.training",
                                            xs=names, zs=["x"], y="loss"))
    model.opset_import.append(onnx.helper.make_opsetid("ai.onnx.preview.training", 1))
    onnx.save(model, path)


def median_of_calls(call, seconds):
    call(), call()
    times, begun = [], time.process_time()
    while len(times) < 3 or time.process_time() - begun < seconds:
        before = time.process_time()
        call()
        times.append(time.process_time() - before)
    return statistics.median(times)


def time_jax(networks, net, batch, seconds):
    rival = networks.Jax()
    jax = rival.jax
    loss, *_ = networks.jax_functions(net, rival)
    x, y = networks.data(net, batch)
    x = rival.image(x) if x.ndim == 4 else x
    trained, frozen = networks.split(net, rival)
    arguments = [jax.device_put(each) for each in (trained, frozen, x, y.astype("int32"))]
    function = jax.jit(jax.value_and_grad(loss))
    return median_of_calls(lambda: jax.block_until_ready(function(*arguments)), seconds)


def time_torch(networks, net, batch, seconds):
    rival = networks.Torch()
    torch = rival.t
    torch.set_num_threads(1)
    x, y = (torch.from_numpy(each) for each in networks.data(net, batch))
    trained, frozen = networks.split(net, rival)
    trained = {name: torch.from_numpy(value.copy()).requires_grad_() for name, value in trained.items()}
    frozen = {name: torch.from_numpy(value) for name, value in frozen.items()}

    def call():
        for value in trained.values():
            value.grad = None
        rival.loss(net.apply(rival, {**trained, **frozen}, x), y).backward()

    return median_of_calls(call, seconds)


def in_child(options, engine, name, batch):
    command = [sys.executable, os.path.abspath(__file__), options.firn, options.networks, "--nets", name, "--batches", str(batch),
               "--seconds", str(options.seconds), "--engine", engine]
    done = subprocess.run(command, env={**os.environ, **ONE_THREAD}, capture_output=True, text=True)
    return float(done.stdout) if done.returncode == 0 else None


def checked(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def build_firn(options, path, folder):
    """The program that runs the model, in a folder of its own."""
    stem, program = os.path.join(folder, "net"), os.path.join(folder, "time")
    checked([options.firn, "compile", path, "-q", "-mcpu=native", "-o", stem, "--class", "Net"])
    with open(stem + ".json") as file:
        fill = " ".join(f"fill(net.{each['identifier']}());" for each in json.load(file)["inputs"])
    with open(program + ".cpp", "w") as file:
        file.write(PROGRAM.replace("FILL", fill))
    runtime = [os.path.join(ROOT, "runtime", name) for name in ("status.cpp", "cpu_features.cpp")]
    checked([os.environ.get("CXX", "c++"), "-std=c++17", "-O2", "-I", ROOT, "-I", os.path.join(ROOT, "include"), program + ".cpp",
             *runtime, stem + ".o", "-o", program])
    return program


def print_shares(options, words):
    """Kernels of what `firn bench` is told to run, by their share of the time."""
    command = [options.firn, "bench", "--json", "-mcpu=native", "--seconds", str(options.seconds), *words]
    kernels = json.loads(checked(command))["kernels"]
    total = sum(kernel["seconds"] for kernel in kernels)
    for kernel in sorted(kernels, key=lambda each: -each["seconds"])[:6]:
        print(f"    {100 * kernel['seconds'] / total:4.1f} % {kernel['name']}", flush=True)


def print_mean(ratios):
    known = [ratio for ratio in ratios if ratio]
    if known:
        print(f"geometric mean {statistics.geometric_mean(known):.3f}, largest {max(known):.2f}")


def add_options(parser, rounds, seconds):
    """Those of every comparison with the engines of NETWORKS."""
    parser.add_argument("firn")
    parser.add_argument("networks")
    parser.add_argument("--nets")
    parser.add_argument("--batches", default="1,8,32")
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--seconds", type=float, default=seconds)


def time_network(options, networks, name, batch, folder):
    path = os.path.join(folder, f"{name}_{batch}.onnx")
    write_model(networks, networks.NETS[name], batch, path)
    program = build_firn(options, path, folder)
    times = {"Firn": [], "JAX": [], "PyTorch": []}
    for _ in range(options.rounds):
        times["Firn"].append(float(checked([program, str(options.seconds)])))
        for engine in ("JAX", "PyTorch"):
            seconds = in_child(options, engine, name, batch)
            if seconds:
                times[engine].append(seconds)
    shown = [f"{statistics.median(each) * 1e3:.3f}" if each else "" for each in times.values()]
    rivals = [min(pair) for pair in zip(*(each for engine, each in times.items() if engine != "Firn" and each))]
    ratio = statistics.median(own / best for own, best in zip(times["Firn"], rivals)) if rivals else None
    print(f"| {name} | {batch} | {' | '.join(shown)} | {f'{ratio:.2f}' if ratio else ''} |", flush=True)
    if options.shares:
        print_shares(options, [path])
    return ratio


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser, rounds=3, seconds=0.3)
    parser.add_argument("--shares", action="store_true")
    parser.add_argument("--engine", help=argparse.SUPPRESS)  # what a child times
    options = parser.parse_args()
    networks = load(options.networks)
    names = options.nets.split(",") if options.nets else list(networks.NETS)
    batches = [int(each) for each in options.batches.split(",")]
    if options.engine:
        time_rival = time_jax if options.engine == "JAX" else time_torch
        print(time_rival(networks, networks.NETS[names[0]], batches[0], options.seconds))
        return
    print("| network | batch | Firn, ms | JAX, ms | PyTorch, ms | Firn over the best |\n|---|---|---|---|---|---|", flush=True)
    ratios = []
    for name in names:
        for batch in batches:
            with tempfile.TemporaryDirectory() as folder:
                ratios.append(time_network(options, networks, name, batch, folder))
    print_mean(ratios)


if __name__ == "__main__":
    main()
