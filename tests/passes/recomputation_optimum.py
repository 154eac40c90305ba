#!/usr/bin/env python3
"""Writes recomputation_optimum.txt: random schedules of kernels, budgets of memory, and the least cost that any schedule
which computes values again has within the budget, by a mixed integer program. recomputation_test.cpp holds the search of
`rematerialize` against it.

    recomputation_optimum.py OUT [--count N] [--seconds S]     # needs numpy and scipy; runs for minutes

The program is Checkmate's (Jain et al., 2020): stage t ends where kernel t stands in the given order. In a stage, kernels
1 to t may run in that order, which is a limit that other schedules need not keep; R says which do, S which results are there when the stage begins, F which one is freed behind
which kernel. Instances that are not solved to optimality in time are left out, as are those where another order is enough.

A line of the file is a kernel, `bytes cost is_result operand...`, and `instance BUDGET OPTIMUM` begins each instance.
"""
import argparse
import random

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_matrix


def training_graph(rng):
    """A chain with skips, and its way back: kernel by kernel (operands, bytes, cost, is_result)."""
    depth = rng.randint(3, 5)
    kernels = []
    for i in range(depth):
        operands = {i - 1} if i else set()
        if i > 2 and rng.random() < 0.3:
            operands.add(rng.randrange(i - 1))
        kernels.append([sorted(operands), rng.choice([1, 2, 4, 4, 8]), rng.choice([1, 1, 2, 5, 10]), False])
    gradient = depth - 1
    for i in reversed(range(depth)):
        read = {gradient} | ({i - 1} if i else set()) | ({i} if rng.random() < 0.5 else set())
        if i and rng.random() < 0.5:
            kernels.append([sorted(read), rng.choice([1, 1, 2]), rng.choice([2, 5, 10]), True])
        kernels.append([sorted(read), rng.choice([1, 2, 4]), rng.choice([1, 2, 5, 10]), i == 0])
        gradient = len(kernels) - 1
    return kernels


def random_graph(rng):
    """Kernels that read any earlier ones, near ones more often."""
    count = rng.randint(8, 14)
    kernels = []
    for i in range(count):
        operands = {max(0, i - 1 - int(rng.expovariate(0.35))) for _ in range(rng.randint(1, 3))} if i else set()
        kernels.append([sorted(operands), rng.choice([1, 2, 3, 5, 8]), rng.choice([1, 2, 3, 7]), i == count - 1])
    read = {operand for kernel in kernels for operand in kernel[0]}
    for i, kernel in enumerate(kernels):
        kernel[3] |= i not in read
    return kernels


def plain_peak(kernels):
    last = list(range(len(kernels)))
    for i, (operands, _, _, is_result) in enumerate(kernels):
        for operand in operands:
            last[operand] = i
    last = [len(kernels) if kernel[3] else last[i] for i, kernel in enumerate(kernels)]
    return max(sum(kernels[i][1] for i in range(at + 1) if last[i] >= at) for at in range(len(kernels)))


def floor(kernels):
    """No schedule needs less: what one kernel reads and writes."""
    return max(size + sum(kernels[operand][1] for operand in operands) for operands, size, _, _ in kernels)


class Rows:
    """Constraints row by row: low <= sum of coefficients <= high."""

    def __init__(self):
        self.entries, self.low, self.high = [], [], []

    def add(self, terms, low, high):
        self.entries += [(len(self.low), column, factor) for column, factor in terms]
        self.low.append(low)
        self.high.append(high)


def optimum(kernels, budget, seconds):
    """The least cost, or None: infeasible, or not proved in time."""
    count = len(kernels)
    users = [[j for j in range(count) if i in kernels[j][0]] for i in range(count)]
    number = {}
    for t in range(count):
        for i in range(t + 1):
            number["R", t, i] = len(number)
            for freed in kernels[i][0] + [i]:
                number["F", t, freed, i] = len(number)
    for t in range(count + 1):
        for i in range(min(t, count)):
            number["S", t, i] = len(number)
    rows, cost = Rows(), np.zeros(len(number))
    for t in range(count):
        memory = [(number["S", t, i], kernels[i][1]) for i in range(t)]
        for i in range(t + 1):
            cost[number["R", t, i]] = kernels[i][2]
            run = number["R", t, i]
            memory.append((run, kernels[i][1]))
            rows.add(memory, -np.inf, budget)
            for operand in kernels[i][0]:
                there = [(number["R", t, operand], -1)] + ([(number["S", t, operand], -1)] if operand < t else [])
                rows.add([(run, 1)] + there, -np.inf, 0)
            kept = [(number["R", t, i], -1)] + ([(number["S", t, i], -1)] if i < t else [])
            rows.add([(number["S", t + 1, i], 1)] + kept, -np.inf, 0)
            memory = list(memory)
            for freed in kernels[i][0] + [i]:
                free = number["F", t, freed, i]
                rows.add([(free, 1), (run, -1)], -np.inf, 0)
                rows.add([(free, 1), (number["S", t + 1, freed], 1)], -np.inf, 1)
                for user in users[freed]:
                    if i < user <= t:
                        rows.add([(free, 1), (number["R", t, user], 1)], -np.inf, 1)
                memory.append((free, -kernels[freed][1]))
    lower, upper = np.zeros(len(number)), np.ones(len(number))
    for i, kernel in enumerate(kernels):
        if kernel[3]:
            lower[number["S", count, i]] = 1
    at, columns, factors = zip(*rows.entries)
    matrix = coo_matrix((factors, (at, columns)), shape=(len(rows.low), len(number))).tocsc()
    integers = np.array([0 if key[0] == "F" else 1 for key in number])
    solved = milp(cost, constraints=LinearConstraint(matrix, rows.low, rows.high), integrality=integers,
                  bounds=Bounds(lower, upper), options={"time_limit": seconds, "mip_rel_gap": 0})
    return round(solved.fun) if solved.status == 0 else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=25)
    arguments = parser.parse_args()
    with open(arguments.out, "w", encoding="ascii") as out:
        out.write("# Written by recomputation_optimum.py.\n")
        for seed in range(arguments.count):
            rng = random.Random(seed)
            kernels = (training_graph if seed % 2 == 0 else random_graph)(rng)
            least, peak = floor(kernels), plain_peak(kernels)
            budget = round(least + (peak - least) * rng.choice([0.2, 0.35, 0.5, 0.7]))
            best = optimum(kernels, budget, arguments.seconds)
            if best is None or best == sum(kernel[2] for kernel in kernels):
                continue
            out.write(f"instance {budget} {best}\n")
            for operands, size, cost, is_result in kernels:
                out.write(" ".join(map(str, [size, cost, int(is_result), *operands])) + "\n")
            out.flush()


main()
