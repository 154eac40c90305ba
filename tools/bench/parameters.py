#!/usr/bin/env python3
"""What inference loses when its weights stay trainable: @main on Parameters beside the frozen model, one thread.

    parameters.py FIRN NETWORKS [--nets mlp,digits,lenet,resnet8,encoder2_128] [--batches 1,8] [--rounds 7] [--seconds 0.2]

NETWORKS is the file train_rivals.py of the benchmark data that comes beside the repository: it defines the networks, without
their loss. `firn bench MODEL` times the frozen model, whose weights are packed and folded ahead of time, and `firn bench MODEL
--train ... --entry main` the object that can train, whose @main reads the trained tensors from Parameters. The two take turns,
and a round begins with the other one than the round before; a line gives the medians of both, and the median, the least and
the largest of the rounds' ratios. Batch norms go by their running statistics in both.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

from gradients import ONE_THREAD, add_options, load, print_mean


def write_model(networks, net, batch, path):
    """The network without its loss, whose batch norms go by running statistics."""
    import onnx
    model = networks.to_onnx(net, batch, with_loss=False)
    for node in model.graph.node:
        if node.op_type == "BatchNormalization":
            kept = [each for each in node.attribute if each.name != "training_mode"]
            del node.attribute[:], node.output[1:]
            node.attribute.extend(kept)
    onnx.save(model, path)


def seconds_of(options, words):
    command = [options.firn, "bench", *words, "-mcpu=native", "--json", "--seconds", str(options.seconds)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **ONE_THREAD})
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout)["median_s"]


def time_network(options, networks, name, batch):
    net = networks.NETS[name]
    times = {"frozen": [], "trained": []}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name + ".onnx")
        write_model(networks, net, batch, path)
        train = ["--train", "loss=softmax_cross_entropy,optimizer=sgd", "--entry", "main"]
        for tensor in net.weights():
            if networks.is_trained(net, tensor):
                train += ["--trainable", tensor]
        words = {"frozen": [path], "trained": [path, *train]}
        for number in range(options.rounds):
            for which in sorted(words, reverse=number % 2 == 1):
                times[which].append(seconds_of(options, words[which]))
    ratios = [trained / frozen for frozen, trained in zip(times["frozen"], times["trained"])]
    shown = [f"{statistics.median(each) * 1e3:.4f}" for each in times.values()]
    ratio = statistics.median(ratios)
    print(f"| {name} | {batch} | {' | '.join(shown)} | {ratio:.2f} [{min(ratios):.2f}, {max(ratios):.2f}] |", flush=True)
    return ratio


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser, rounds=7, seconds=0.2)
    parser.set_defaults(nets="mlp,digits,lenet,resnet8,encoder2_128", batches="1,8")
    options = parser.parse_args()
    networks = load(options.networks)
    print("| network | batch | frozen, ms | on Parameters, ms | ratio |")
    print("|---" * 5 + "|", flush=True)
    ratios = [time_network(options, networks, name, int(batch))
              for name in options.nets.split(",") for batch in options.batches.split(",")]
    print_mean(ratios)


if __name__ == "__main__":
    main()
