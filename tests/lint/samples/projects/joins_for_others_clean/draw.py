"""Draws samples, as one process: nothing here says that there could be another."""

import argparse
import os
import time

import torch
from experiment import Experiment


def main(options):
    folder = os.path.join("drawn", time.strftime("%H-%M-%S"))
    os.makedirs(folder, exist_ok=True)
    experiment = Experiment(options)
    experiment.model.load_state_dict(torch.load(options.weights))
    with torch.no_grad():
        drawn = [experiment.model(torch.ones(1, 2)) for _ in range(options.count)]
    torch.save(drawn, os.path.join(folder, "drawn.pt"))
    torch.save(options, "options.pt")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--weights", default="weights.pt")
    parser.add_argument("--count", type=int, default=4)
    parser.add_argument("--verbose", type=bool, default=True)
    parser.add_argument("--several", action="store_true")
    main(parser.parse_args())
