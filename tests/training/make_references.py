#!/usr/bin/env python3
"""Writes references.txt: losses of PyTorch in f64, which training steps through the evaluator have to repeat.

    make_references.py > references.txt

Every case is a line of options, as `firn compile --train` takes them, with a learning rate and perhaps the trained
tensors, the dims of the output, a form of the network and an adapter as --lora takes it; 100 losses of steps follow,
then 5 of evaluations. The network is a perceptron 8-16-4 with tanh, in the form `norm` with a batch norm in front of the
tanh, in the form `dropout` with a dropout of a quarter behind it; the batch has 5 rows, and all numbers are those of
training_case.cpp and of compiler/training/dropout.cpp.
"""
import fnmatch
import math

import torch

ROWS, INPUTS, HIDDEN, OUTPUTS, STEPS, EVALUATIONS = 5, 8, 16, 4, 100, 5
CASES = [
    "loss=softmax_cross_entropy,optimizer=sgd rate=0.1",
    "loss=softmax_cross_entropy,optimizer=sgd,ignore_index=2 rate=0.1",
    "loss=softmax_cross_entropy,optimizer=sgd,class_weights=0.5:1:2:4,ignore_index=1 rate=0.1",
    "loss=softmax_cross_entropy,optimizer=sgd,class_weights=0.5:1:2:4 rate=0.1",
    "loss=softmax_cross_entropy,optimizer=sgd,labels=probabilities rate=0.1",
    "loss=softmax_cross_entropy,optimizer=momentum rate=0.02 dims=5,2,2",
    "loss=softmax_cross_entropy,optimizer=sgd,labels=probabilities rate=0.1 dims=5,2,2",
    "loss=bce_with_logits,optimizer=sgd rate=0.1",
    "loss=bce_with_logits,optimizer=sgd,positive_weight=3 rate=0.1",
    "loss=mse,optimizer=sgd rate=0.05",
    "loss=l1,optimizer=sgd rate=0.01",
    "loss=huber,optimizer=sgd rate=0.1",
    "loss=huber,optimizer=sgd,delta=0.25 rate=0.1",
    "loss=mse,optimizer=momentum rate=0.02",
    "loss=mse,optimizer=momentum,momentum=0.5,weight_decay=0.01 rate=0.02",
    "loss=mse,optimizer=nesterov rate=0.02",
    "loss=mse,optimizer=adam rate=0.01",
    "loss=mse,optimizer=adam,beta1=0.8,beta2=0.95,epsilon=0.0001,weight_decay=0.02 rate=0.01",
    "loss=mse,optimizer=adamw rate=0.01",
    "loss=mse,optimizer=adamw,weight_decay=0.2 rate=0.01",
    "loss=mse,optimizer=adagrad rate=0.05",
    "loss=mse,optimizer=adagrad,rate_decay=0.1,epsilon=0.001 rate=0.05",
    "loss=mse,optimizer=rmsprop rate=0.005",
    "loss=mse,optimizer=rmsprop,alpha=0.9 rate=0.005",
    "loss=mse,optimizer=sgd,weight_decay=0.1 rate=0.05",
    "loss=mse,optimizer=sgd,clip_norm=0.5 rate=0.1",
    "loss=mse,optimizer=adam,clip_norm=0.25,weight_decay=0.05 rate=0.01",
    "loss=mse,optimizer=adam rate=0.01 trainable=fc2.*",
    "loss=mse,optimizer=sgd rate=0.05 trainable=BIASES",
    "loss=softmax_cross_entropy,optimizer=sgd rate=0.1 network=norm",
    "loss=mse,optimizer=adam,weight_decay=0.02 rate=0.01 network=norm",
    "loss=mse,optimizer=adam rate=0.01 network=norm trainable=norm.*",
    "loss=mse,optimizer=adam rate=0.01 network=norm trainable=fc*",
    "loss=mse,optimizer=adam,freeze_norms rate=0.01 network=norm",
    "loss=softmax_cross_entropy,optimizer=adam rate=0.01 network=dropout",
    "loss=mse,optimizer=momentum,seed=7 rate=0.02 network=dropout",
    "loss=mse,optimizer=momentum,dropout=off rate=0.02 network=dropout",
    "loss=mse,optimizer=adam rate=0.02 lora=rank=2,alpha=3:fc1.weight",
    "loss=softmax_cross_entropy,optimizer=sgd,seed=5 rate=0.3 lora=rank=3:fc*.weight trainable=BIASES",
]


def drawn(count, step, factor, modulus, divisor):
    """Numbers that are exact in binary: ((i * factor + step * 17) mod modulus - modulus // 2) / divisor."""
    return torch.tensor([((i * factor + step * 17) % modulus - modulus // 2) / divisor for i in range(count)],
                        dtype=torch.float64)


WORD, GOLDEN = (1 << 64) - 1, 0x9E3779B97F4A7C15


def scramble(x):
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & WORD
    x = (x ^ x >> 27) * 0x94D049BB133111EB & WORD
    return x ^ x >> 31


def mix(x):
    x = (x ^ x >> 16) * 0x7FEB352D & 0xFFFFFFFF
    x = (x ^ x >> 15) * 0x846CA68B & 0xFFFFFFFF
    return x ^ x >> 16


def stream(seed, number):
    return scramble(scramble(seed + GOLDEN & WORD) + (number + 1) * GOLDEN & WORD)


def bits(key, index):
    return mix(mix(index ^ key & 0xFFFFFFFF) ^ key >> 32)


class Norm(torch.nn.Module):
    """A batch norm with ONNX's running statistics, which are those of a population."""

    def __init__(self):
        super().__init__()
        numbers = [drawn(HIDDEN, 4 + i, 37, 101, 128) for i in range(4)]
        self.weight, self.bias = torch.nn.Parameter(numbers[0] + 1), torch.nn.Parameter(numbers[1])
        self.mean, self.variance = numbers[2], numbers[3] + 2

    def forward(self, x):
        if not self.training:
            return torch.nn.functional.batch_norm(x, self.mean, self.variance, self.weight, self.bias)
        with torch.no_grad():
            self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
            self.variance = 0.9 * self.variance + 0.1 * x.var(0, correction=0)
        return torch.nn.functional.batch_norm(x, None, None, self.weight, self.bias, training=True)


class Dropout(torch.nn.Module):
    def __init__(self, seed):
        super().__init__()
        self.seed, self.steps = seed, 0

    def forward(self, x):
        if not self.training:
            return x
        key = scramble(self.steps * GOLDEN + stream(self.seed, 0) & WORD)
        kept = torch.tensor([bits(key, i) >= 1 << 30 for i in range(x.numel())]).reshape(x.shape)
        self.steps += 1
        return torch.where(kept, x / 0.75, torch.zeros_like(x))


class Adapted(torch.nn.Module):
    """A layer with an adapter; the first number of its stream is 2^32 and the adapter's place, from 1 on."""

    def __init__(self, layer, rank, alpha, seed, place):
        super().__init__()
        self.layer, self.scale, bound = layer, alpha / rank, 1 / math.sqrt(layer.in_features)
        key = stream(seed, (1 << 32) + place)
        a = [bound * (2 * (bits(key, i) + 0.5) / 2**32 - 1) for i in range(layer.in_features * rank)]
        self.lora_a = torch.nn.Parameter(torch.tensor(a, dtype=torch.float64).reshape(-1, rank))
        self.lora_b = torch.nn.Parameter(torch.zeros(rank, layer.out_features, dtype=torch.float64))

    def forward(self, x):
        return self.layer(x) + self.scale * (x @ self.lora_a @ self.lora_b)


class Perceptron(torch.nn.Module):
    def __init__(self, dims, form, seed):
        super().__init__()
        self.dims = dims
        self.fc1 = torch.nn.Linear(INPUTS, HIDDEN, dtype=torch.float64)
        self.fc2 = torch.nn.Linear(HIDDEN, OUTPUTS, dtype=torch.float64)
        with torch.no_grad():
            for number, tensor in enumerate(self.parameters()):
                tensor.copy_(drawn(tensor.numel(), number, 37, 101, 128).reshape(tensor.shape))
        self.norm = Norm() if form == "norm" else torch.nn.Identity()
        self.dropout = Dropout(seed) if form == "dropout" else torch.nn.Identity()

    def adapt(self, words, seed):
        """Adds what --lora says."""
        options, pattern = words.split(":")
        options = dict(word.split("=") for word in options.split(","))
        rank, place = int(options["rank"]), 0
        for name in ("fc1", "fc2"):
            if fnmatch.fnmatch(name + ".weight", pattern):
                place += 1
                setattr(self, name, Adapted(getattr(self, name), rank, float(options.get("alpha", rank)), seed, place))

    def forward(self, x):
        return self.fc2(self.dropout(torch.tanh(self.norm(self.fc1(x))))).reshape(self.dims)


def target_of(options, dims, step):
    count = ROWS * OUTPUTS
    if options["loss"] == "softmax_cross_entropy" and options.get("labels") != "probabilities":
        positions = [dims[0], *dims[2:]]
        total = ROWS * OUTPUTS // dims[1]
        return torch.tensor([(i * 7 + step * 3) % dims[1] for i in range(total)]).reshape(positions)
    if options["loss"] == "softmax_cross_entropy":
        shares = {4: [1, 2, 5, 8], 2: [5, 11]}[dims[1]]
        target = torch.zeros(dims, dtype=torch.float64).flatten()
        inner = count // dims[0] // dims[1]
        for i in range(count):
            row, label, place = i // (dims[1] * inner), i // inner % dims[1], i % inner
            target[i] = shares[(label + row + place + step) % dims[1]] / 16
        return target.reshape(dims)
    if options["loss"] == "bce_with_logits":
        return torch.tensor([(i * 3 + step) % 5 / 4 for i in range(count)], dtype=torch.float64).reshape(dims)
    return drawn(count, step, 29, 89, 32).reshape(dims)


def loss_of(options, prediction, target):
    f = torch.nn.functional
    if options["loss"] == "softmax_cross_entropy":
        weights = [float(each) for each in options.get("class_weights", "").split(":") if each]
        return f.cross_entropy(prediction, target, torch.tensor(weights, dtype=torch.float64) if weights else None,
                               ignore_index=int(options.get("ignore_index", -100)))
    if options["loss"] == "bce_with_logits":
        weight = torch.tensor(float(options.get("positive_weight", 1)), dtype=torch.float64)
        return f.binary_cross_entropy_with_logits(prediction, target, pos_weight=weight)
    if options["loss"] == "huber":
        return f.huber_loss(prediction, target, delta=float(options.get("delta", 1)))
    return {"mse": f.mse_loss, "l1": f.l1_loss}[options["loss"]](prediction, target)


def optimizer_of(options, parameters, rate):
    number = lambda key, default: float(options.get(key, default))
    name, decay = options["optimizer"], number("weight_decay", 0)
    if name in ("momentum", "nesterov"):
        return torch.optim.SGD(parameters, rate, number("momentum", 0.9), nesterov=name == "nesterov", weight_decay=decay)
    if name == "sgd":
        return torch.optim.SGD(parameters, rate, weight_decay=decay)
    if name == "adagrad":
        return torch.optim.Adagrad(parameters, rate, number("rate_decay", 0), decay, eps=number("epsilon", 1e-10))
    if name == "rmsprop":
        return torch.optim.RMSprop(parameters, rate, number("alpha", 0.99), number("epsilon", 1e-8), decay)
    betas = (number("beta1", 0.9), number("beta2", 0.999))
    if name == "adamw":
        return torch.optim.AdamW(parameters, rate, betas, number("epsilon", 1e-8), number("weight_decay", 0.01))
    return torch.optim.Adam(parameters, rate, betas, number("epsilon", 1e-8), decay)


def is_trained(name, words):
    adapters = ".lora_" in name
    if "lora" in words and "trainable" not in words:
        return adapters
    pattern = words.get("trainable", "*").replace("BIASES", "*.bias")
    return adapters or fnmatch.fnmatch(name.replace(".layer.", "."), pattern)


def batch_of(step):
    return drawn(ROWS * INPUTS, step, 53, 97, 64).reshape(ROWS, INPUTS)


def losses_of(case):
    words = dict(word.split("=", 1) for word in case.split()[1:])
    options = dict((word + "=").split("=")[:2] for word in case.split()[0].split(","))
    dims = [int(each) for each in words.get("dims", f"{ROWS},{OUTPUTS}").split(",")]
    seed = int(options.get("seed", 0))
    network = Perceptron(dims, words.get("network"), seed)
    if "lora" in words:
        network.adapt(words["lora"], seed)
    trained = [tensor for name, tensor in network.named_parameters() if is_trained(name, words)]
    optimizer = optimizer_of(options, trained, float(words["rate"]))
    network.norm.train("freeze_norms" not in options and words.get("trainable", "*") in ("*", "norm.*"))
    network.dropout.train(options.get("dropout") != "off")
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(options, network(batch_of(step)), target_of(options, dims, step))
        loss.backward()
        if "clip_norm" in options:
            torch.nn.utils.clip_grad_norm_(trained, float(options["clip_norm"]))
        optimizer.step()
        yield loss.item()
    network.eval()
    for step in range(EVALUATIONS):
        yield loss_of(options, network(batch_of(step)), target_of(options, dims, step)).item()


def print_case(words, losses):
    print(words)
    values = [f"{loss:.17g}" for loss in losses]
    for start in range(0, len(values), 5):
        print("  " + " ".join(values[start:start + 5]))


if __name__ == "__main__":
    for each in CASES:
        print_case(each, losses_of(each))
