import argparse


def parser_of_all():
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", default=-1, type=int)  # <-- DDP112
    parser.add_argument("--epochs", default=3, type=int)
    return parser
