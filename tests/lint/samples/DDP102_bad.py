import torch.distributed as dist


def setup():
    dist.init_process_group("gloo")  # <-- DDP102
    return dist.get_rank()


class Logger:
    def __init__(self):
        self.rank = setup()


def main():
    rank = setup()
    logger = Logger()
    print(rank, logger)
