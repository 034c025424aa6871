"""Counts files, each rank its own: the joining has said which rank this is."""

import argparse

import torch
from experiment import Experiment

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--several", action="store_true")
    parser.add_argument("--verbose", type=bool, default=True)
    experiment = Experiment(parser.parse_args())
    mine = list(range(100))[experiment.rank :: 4]
    torch.save(mine, f"counted_{experiment.rank}.pt")
