#!/usr/bin/env python3
"""Writes network_losses.txt: losses of PyTorch in f64, and how far PyTorch's own in f32 are from them.

    make_network_losses.py > network_losses.txt

Every case is a line of the network, the options of `firn compile --train`, the learning rate, the draw, the largest distance
of PyTorch's losses in f32 to those in f64, and the largest over five orders of sums: rows, inputs and channels as they are
and in four permutations. The 100 losses in f64 follow. Weights and batches are numbers of 24 bits, so that both begin with
equal ones, and learning rates are powers of two. The networks are a perceptron 784-256-10 and the convolutions of digits;
network_losses_test.cpp has them as well. Everything runs in one thread.

A ReLU or a pooling whose operands lie nearer to where it changes over than f32 tells apart goes the other way or not by
chance, and so does the sign of a gradient that is all but zero, by which Adam and RMSProp go: losses after it are another
trajectory's. A case therefore takes the first draw in which no ReLU or pooling of the f64 run is nearer than MARGIN and the
distances of PyTorch's five orders lie within a factor of SPREAD.
"""
import itertools

import torch

from make_references import mix, optimizer_of, print_case

ROWS, BATCHES, STEPS, CLASSES = 5, 8, 100, 10
MARGIN, SPREAD, ORDERS = 3e-7, 3, 5
OPTIMIZERS = {"sgd": 2**-5, "momentum": 2**-8, "nesterov": 2**-8, "adam": 2**-10, "adamw": 2**-10, "adagrad": 2**-8,
              "rmsprop": 2**-12}
# Tensors by name: dims, and the number that their numbers stay below.
NETWORKS = {
    "mlp": {"x": ([ROWS, 784], 1), "fc1.weight": ([784, 256], 2**-4), "fc1.bias": ([256], 2**-4),
            "fc2.weight": ([256, CLASSES], 2**-3), "fc2.bias": ([CLASSES], 2**-4)},
    "digits": {"x": ([ROWS, 1, 28, 28], 1), "conv1.weight": ([8, 1, 3, 3], 2**-1), "conv1.bias": ([8], 2**-4),
               "conv2.weight": ([16, 8, 3, 3], 2**-2), "conv2.bias": ([16], 2**-4),
               "fc.weight": ([784, CLASSES], 2**-4), "fc.bias": ([CLASSES], 2**-4)},
}


def drawn(dims, bound, stream):
    """Numbers from -bound to bound; stream is a number of its own for each tensor."""
    count = 1
    for dim in dims:
        count *= dim
    values = [((mix(i + (stream << 20) & 0xFFFFFFFF) >> 8) / 2**23 - 1) * bound for i in range(count)]
    return torch.tensor(values, dtype=torch.float64).reshape(dims)


def weights_of(network, draw):
    tensors = list(NETWORKS[network].items())[1:]
    return {name: drawn(*facts, 128 * draw + number + 1) for number, (name, facts) in enumerate(tensors)}


def batches_of(network, draw):
    dims, bound = NETWORKS[network]["x"]
    for number in range(BATCHES):
        labels = [mix(i + number * ROWS + (128 * draw + 99 << 20) & 0xFFFFFFFF) % CLASSES for i in range(ROWS)]
        yield drawn(dims, bound, 128 * draw + 100 + number), torch.tensor(labels)


def permuted(network, p, batches, order):
    """The same network and batches with rows, inputs and channels in another order; 0: as they are."""
    if order == 0:
        return p, batches
    generator = torch.Generator().manual_seed(order)
    rows, inputs, hidden, a, b = (torch.randperm(n, generator=generator) for n in (ROWS, 784, 256, 8, 16))
    if network == "mlp":
        p = {"fc1.weight": p["fc1.weight"][inputs][:, hidden], "fc1.bias": p["fc1.bias"][hidden],
             "fc2.weight": p["fc2.weight"][hidden], "fc2.bias": p["fc2.bias"]}
        return p, [(x[rows][:, inputs], labels[rows]) for x, labels in batches]
    p = {"conv1.weight": p["conv1.weight"][a], "conv1.bias": p["conv1.bias"][a],
         "conv2.weight": p["conv2.weight"][b][:, a], "conv2.bias": p["conv2.bias"][b],
         "fc.weight": p["fc.weight"].reshape(16, 49, CLASSES)[b].reshape(784, CLASSES), "fc.bias": p["fc.bias"]}
    return p, [(x[rows], labels[rows]) for x, labels in batches]


class Run:
    """A training run of a draw: its losses, and how nearly a ReLU or a pooling decided as it did."""

    def __init__(self, network, optimizer, rate, draw, dtype, order=0):
        self.network, self.losses, self.margin = network, [], 1
        p, batches = permuted(network, weights_of(network, draw), list(batches_of(network, draw)), order)
        p = {name: tensor.to(dtype).requires_grad_() for name, tensor in p.items()}
        update = optimizer_of({"optimizer": optimizer}, list(p.values()), rate)
        for step in range(STEPS):
            x, labels = batches[step % BATCHES]
            update.zero_grad()
            loss = torch.nn.functional.cross_entropy(self.logits(p, x.to(dtype)), labels)
            loss.backward()
            update.step()
            self.losses.append(loss.item())

    def relu(self, x):
        self.margin = min(self.margin, x.detach().abs().min().item())
        return torch.relu(x)

    def pool(self, x):
        n, c, h, w = x.shape
        windows = x.detach().reshape(n, c, h // 2, 2, w // 2, 2).transpose(3, 4).reshape(-1, 4)
        two = windows.topk(2).values
        two = two[two[:, 0] > 0]  # elsewhere no gradient passes the ReLU in front
        self.margin = min(self.margin, (two[:, 0] - two[:, 1]).min().item())
        return torch.nn.functional.max_pool2d(x, 2)

    def logits(self, p, x):
        if self.network == "mlp":
            return self.relu(x @ p["fc1.weight"] + p["fc1.bias"]) @ p["fc2.weight"] + p["fc2.bias"]
        for layer in ("conv1", "conv2"):
            x = torch.nn.functional.conv2d(x, p[layer + ".weight"], p[layer + ".bias"], padding=1)
            x = self.pool(self.relu(x))
        return x.flatten(1) @ p["fc.weight"] + p["fc.bias"]


def case_of(network, optimizer, rate):
    """The first draw that may be used, its losses in f64, and the distances of PyTorch's in f32 by order."""
    for draw in itertools.count():
        exact = Run(network, optimizer, rate, draw, torch.float64)
        if exact.margin < MARGIN:
            continue
        distances = []
        for order in range(ORDERS):
            own = Run(network, optimizer, rate, draw, torch.float32, order)
            distances.append(max(abs(a - b) for a, b in zip(exact.losses, own.losses)))
        if max(distances) < SPREAD * min(distances):
            return draw, exact.losses, distances


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name in NETWORKS:
        for each, rate in OPTIMIZERS.items():
            draw, losses, distances = case_of(name, each, rate)
            print_case(f"network={name} train=loss=softmax_cross_entropy,optimizer={each} rate={rate} draw={draw} "
                       f"torch={distances[0]:.3g} orders={max(distances):.3g}", losses)
