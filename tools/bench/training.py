#!/usr/bin/env python3
"""Milliseconds of a training step - forward, backward and update - of Firn beside JAX (jit) and PyTorch (eager, torch.compile).

    training.py FIRN NETWORKS [--nets mlp,lstm] [--batches 1,8,32] [--optimizers sgd,adam] [--engines jax,torch,compile]
                [--rounds 3] [--seconds 0.3] [--shares]

NETWORKS is the file train_rivals.py of the benchmark data that comes beside the repository: it defines the networks. Firn
compiles a step for the machine's own CPU, with the loss as an output of the model, and a program runs it on the data that
the rivals have; the trained tensors start from the same values. Everybody has one thread, and times are CPU time, which does
not count that others use the machine. The engines take turns: a line gives the median of the rounds' medians, and the median
of Firn's times over the best rival's of the same round. The last line is the geometric mean of the ratios. --shares prints
Firn's kernels by their share of the time. A rival whose module is not installed, or that fails, is left out.

Needs a C++ compiler ($CXX, or c++) and the repository's include folder beside this script.
"""
import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

from gradients import ONE_THREAD, ROOT, add_options, checked, load, print_mean, print_shares

RATE = 1e-3
ENGINES = {"jax": "JAX", "torch": "PyTorch", "compile": "torch.compile"}

# Reads x and labels, trains, and prints the median of CPU seconds per step and the first and the last loss.
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

template <class Tensor> static bool fill(const char* path, Tensor tensor) {
  FILE* file = std::fopen(path, "rb");
  bool is_read = file && std::fread(tensor.data(), sizeof *tensor.data(), tensor.size(), file) == tensor.size();
  if (file) std::fclose(file);
  return is_read;
}

int main(int, char** arguments) {
  static Net::Parameters parameters;
  static Net::Trainer::Arena arena;
  parameters.reset();
  Net::Trainer trainer(arena, parameters);
  if (!fill(arguments[1], trainer.x()) || !fill(arguments[2], trainer.labels())) return 1;
  trainer.learning_rate() = 1e-3f;
  const double seconds = std::atof(arguments[3]);
  for (int i = 0; i < 3; ++i)
    if (!trainer.step()) return 2;
  double first = double(trainer.loss()), begun = cpu_seconds();
  if (!trainer.step()) return 2;
  const int count = std::max(1, int(1e-3 / std::max(cpu_seconds() - begun, 1e-7)));
  std::vector<double> times;
  begun = cpu_seconds();
  while (times.size() < 5 || cpu_seconds() - begun < seconds) {
    double before = cpu_seconds();
    for (int i = 0; i < count; ++i)
      if (!trainer.step()) return 2;
    times.push_back((cpu_seconds() - before) / count);
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  std::printf("%.9g %g %g\n", times[times.size() / 2], first, double(trainer.loss()));
}
"""


def median_of_calls(call, seconds):
    """The median CPU seconds of a call, by groups of calls that last a millisecond."""
    for _ in range(3):
        call()
    begun = time.process_time()
    call()
    count = max(1, int(1e-3 / max(time.process_time() - begun, 1e-7)))
    times, begun = [], time.process_time()
    while len(times) < 5 or time.process_time() - begun < seconds:
        before = time.process_time()
        for _ in range(count):
            call()
        times.append((time.process_time() - before) / count)
    return statistics.median(times)


def jax_step(networks, net, batch, optimizer):
    rival = networks.Jax()
    jax = rival.jax
    _, sgd, adam = networks.jax_functions(net, rival)
    x, y = networks.data(net, batch)
    x = rival.image(x) if x.ndim == 4 else x
    data = [jax.device_put(x), jax.device_put(y.astype("int32"))]
    trained, frozen = (jax.device_put(each) for each in networks.split(net, rival))
    state = [trained]
    if optimizer == "adam":
        zeros = jax.tree.map(rival.np.zeros_like, trained)
        state += [zeros, jax.tree.map(rival.np.copy, zeros), rival.np.float32(0)]
    donated = tuple(range(min(3, len(state))))
    step = jax.jit(adam if optimizer == "adam" else sgd, donate_argnums=donated)

    def call():
        results = step(*state, frozen, *data)
        state[:] = results[1:]
        jax.block_until_ready(state[0])

    return call


def torch_step(networks, net, batch, optimizer, compiled):
    rival = networks.Torch()
    torch = rival.t
    torch.set_num_threads(1)
    x, y = (torch.from_numpy(each) for each in networks.data(net, batch))
    trained, frozen = networks.split(net, rival)
    trained = {name: torch.from_numpy(value.copy()).requires_grad_() for name, value in trained.items()}
    frozen = {name: torch.from_numpy(value) for name, value in frozen.items()}

    def loss(trained, x, y):
        return rival.loss(net.apply(rival, {**trained, **frozen}, x), y)

    if compiled:
        torch._dynamo.reset()
        loss = torch.compile(loss, dynamic=False)
    update = (torch.optim.Adam if optimizer == "adam" else torch.optim.SGD)(trained.values(), RATE)

    def call():
        update.zero_grad(set_to_none=True)
        loss(trained, x, y).backward()
        update.step()

    return call


def serve(options, networks):
    """The child's side of Rival: a line of network, batch and optimizer is answered by seconds, or by a word."""
    known, call = None, None
    for line in sys.stdin:
        try:
            if line != known:
                name, batch, optimizer = line.split()
                words = networks, networks.NETS[name], int(batch), optimizer
                call = jax_step(*words) if options.engine == "jax" else torch_step(*words, options.engine == "compile")
                known = line
            print(median_of_calls(call, options.seconds), flush=True)
        except Exception as error:
            known = None
            print("none", flush=True)
            print(f"    {ENGINES[options.engine]}: {str(error).splitlines()[0][:160]}", file=sys.stderr, flush=True)


class Rival:
    """A process in which one engine keeps the step that it was last asked for."""

    def __init__(self, options, engine):
        command = [sys.executable, os.path.abspath(__file__), options.firn, options.networks, "--engine", engine, "--seconds",
                   str(options.seconds)]
        self.process = subprocess.Popen(command, env={**os.environ, **ONE_THREAD}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def seconds(self, name, batch, optimizer):
        if self.process.poll() is None:
            print(name, batch, optimizer, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().strip()
        return float(answer) if answer not in ("", "none") else None


class FirnStep:
    """The program that trains one network, in a folder of its own."""

    def __init__(self, options, networks, name, batch, optimizer, folder):
        import onnx
        net = networks.NETS[name]
        self.options, self.folder = options, os.path.join(folder, f"{name}_{batch}_{optimizer}")
        os.makedirs(self.folder)
        onnx.save(networks.to_onnx(net, batch, with_loss=True), self.path("net.onnx"))
        x, y = networks.data(net, batch)
        x.tofile(self.path("x")), y.astype("int64").tofile(self.path("labels"))
        self.words = [self.path("net.onnx"), "--train", f"loss=output:loss,optimizer={optimizer}"]
        for tensor in net.weights():
            if networks.is_trained(net, tensor):
                self.words += ["--trainable", tensor]
        checked([options.firn, "compile", *self.words, "-q", "-mcpu=native", "-o", self.path("net"), "--class", "Net"])
        with open(self.path("train.cpp"), "w") as file:
            file.write(PROGRAM)
        runtime = [os.path.join(ROOT, "runtime", name) for name in ("status.cpp", "cpu_features.cpp", "saved_tensors.cpp")]
        checked([os.environ.get("CXX", "c++"), "-std=c++17", "-O2", "-I", ROOT, "-I", os.path.join(ROOT, "include"),
                 self.path("train.cpp"), *runtime, self.path("net.o"), "-o", self.path("train")])

    def path(self, name):
        return os.path.join(self.folder, name)

    def seconds(self):
        words = checked([self.path("train"), self.path("x"), self.path("labels"), str(self.options.seconds)]).split()
        if not math.isfinite(float(words[2])):
            print(f"    the loss went from {words[1]} to {words[2]}", flush=True)
        return float(words[0])


def time_network(options, networks, rivals, key, folder):
    """Prints a line, and gives Firn's time over the best rival's."""
    step = FirnStep(options, networks, *key, folder)
    own, times, ratios = [], {engine: [] for engine in rivals}, []
    for _ in range(options.rounds):
        own.append(step.seconds())
        found = {engine: rival.seconds(*key) for engine, rival in rivals.items()}
        for engine, seconds in found.items():
            if seconds:
                times[engine].append(seconds)
        best = min((seconds for seconds in found.values() if seconds), default=None)
        if best:
            ratios.append(own[-1] / best)
    shown = [f"{statistics.median(each) * 1e3:.3f}" if each else "" for each in [own, *times.values()]]
    ratio = statistics.median(ratios) if ratios else None
    print(f"| {' | '.join(map(str, key))} | {' | '.join(shown)} | {f'{ratio:.2f}' if ratio else ''} |", flush=True)
    if options.shares:
        print_shares(options, step.words)
    return ratio


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser, rounds=3, seconds=0.3)
    parser.add_argument("--optimizers", default="sgd,adam")
    parser.add_argument("--engines", default="jax,torch,compile")
    parser.add_argument("--shares", action="store_true")
    parser.add_argument("--engine", help=argparse.SUPPRESS)  # what a child times
    options = parser.parse_args()
    networks = load(options.networks)
    if options.engine:
        return serve(options, networks)
    names = options.nets.split(",") if options.nets else list(networks.NETS)
    rivals = {engine: Rival(options, engine) for engine in options.engines.split(",") if engine}
    titles = ["Firn, ms", *(f"{ENGINES[engine]}, ms" for engine in rivals)]
    print(f"| network | batch | optimizer | {' | '.join(titles)} | Firn over the best |")
    print("|---" * (len(titles) + 4) + "|", flush=True)
    ratios = []
    for name in names:
        for batch in options.batches.split(","):
            for optimizer in options.optimizers.split(","):
                with tempfile.TemporaryDirectory() as folder:
                    ratios.append(time_network(options, networks, rivals, (name, int(batch), optimizer), folder))
    print_mean(ratios)


if __name__ == "__main__":
    main()
