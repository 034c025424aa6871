import argparse


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.1)
    return parser.parse_args()


if __name__ == "__main__":
    print(parse())
