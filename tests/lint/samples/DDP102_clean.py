import torch.distributed as dist


def setup():
    if not dist.is_initialized():
        dist.init_process_group("gloo")
    return dist.get_rank()


class Logger:
    def __init__(self):
        self.rank = setup()


def main():
    rank = setup()
    logger = Logger()
    print(rank, logger)


def twice_in_turn():
    dist.init_process_group("gloo")
    dist.destroy_process_group()
    dist.init_process_group("nccl")


def either(backend):
    if backend == "gloo":
        dist.init_process_group("gloo")
    else:
        dist.init_process_group("nccl")
