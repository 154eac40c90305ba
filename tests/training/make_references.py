#!/usr/bin/env python3
"""Writes references.txt: losses of PyTorch in f64, which training steps through the evaluator have to repeat.

    make_references.py > references.txt

Every case is a line of options, as `firn compile --train` takes them, with a learning rate and perhaps the trained
tensors and the dims of the output; 100 losses follow. The network is a perceptron 8-16-4 with tanh, the batch has 5
rows, and all numbers are those of training_case.cpp.
"""
import fnmatch

import torch

ROWS, INPUTS, HIDDEN, OUTPUTS, STEPS = 5, 8, 16, 4, 100
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
]


def drawn(count, step, factor, modulus, divisor):
    """Numbers that are exact in binary: ((i * factor + step * 17) mod modulus - modulus // 2) / divisor."""
    return torch.tensor([((i * factor + step * 17) % modulus - modulus // 2) / divisor for i in range(count)],
                        dtype=torch.float64)


class Perceptron(torch.nn.Module):
    def __init__(self, dims):
        super().__init__()
        self.dims = dims
        self.fc1 = torch.nn.Linear(INPUTS, HIDDEN, dtype=torch.float64)
        self.fc2 = torch.nn.Linear(HIDDEN, OUTPUTS, dtype=torch.float64)
        with torch.no_grad():
            for seed, tensor in enumerate(self.parameters()):
                tensor.copy_(drawn(tensor.numel(), seed, 37, 101, 128).reshape(tensor.shape))

    def forward(self, x):
        return self.fc2(torch.tanh(self.fc1(x))).reshape(self.dims)


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


def losses_of(case):
    words = dict(word.split("=", 1) for word in case.split()[1:])
    options = dict(word.split("=", 1) for word in case.split()[0].split(","))
    dims = [int(each) for each in words.get("dims", f"{ROWS},{OUTPUTS}").split(",")]
    network = Perceptron(dims)
    pattern = words.get("trainable", "*").replace("BIASES", "*.bias")
    trained = [tensor for name, tensor in network.named_parameters() if fnmatch.fnmatch(name, pattern)]
    optimizer = optimizer_of(options, trained, float(words["rate"]))
    for step in range(STEPS):
        x = drawn(ROWS * INPUTS, step, 53, 97, 64).reshape(ROWS, INPUTS)
        optimizer.zero_grad()
        loss = loss_of(options, network(x), target_of(options, dims, step))
        loss.backward()
        if "clip_norm" in options:
            torch.nn.utils.clip_grad_norm_(trained, float(options["clip_norm"]))
        optimizer.step()
        yield loss.item()


for each in CASES:
    print(each)
    values = [f"{loss:.17g}" for loss in losses_of(each)]
    for start in range(0, STEPS, 5):
        print("  " + " ".join(values[start:start + 5]))
