import argparse


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=0)  # <-- DDP112
    parser.add_argument("--lr", type=float, default=0.1)
    return parser.parse_args()


if __name__ == "__main__":
    print(parse())
