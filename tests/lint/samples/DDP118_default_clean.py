import os
import socket

import torch.distributed as dist


def free():
    with socket.socket() as listening:
        listening.bind(("", 0))
        return str(listening.getsockname()[1])


def begin():
    if not dist.is_initialized():
        if "MASTER_ADDR" not in os.environ:
            os.environ["MASTER_ADDR"] = "localhost"
        os.environ.setdefault("MASTER_PORT", free())
        if "RANK" not in os.environ:
            os.environ["RANK"] = "0"
        if "WORLD_SIZE" not in os.environ:
            os.environ["WORLD_SIZE"] = "1"
        dist.init_process_group("gloo")


def size():
    return dist.get_world_size() if dist.is_initialized() else 1


def main():
    begin()
    if size() > 1:
        dist.barrier()
    print("one of", size())


if __name__ == "__main__":
    main()
