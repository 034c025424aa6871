import argparse

from experiment import Experiment

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--weights", default="weights.pt")
    parser.add_argument("--count", type=int, default=4)
    parser.add_argument("--verbose", type=bool, default=True)
    parser.add_argument("--several", action="store_true")
    Experiment(parser.parse_args()).train()
