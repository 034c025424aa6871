import os
import tempfile

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    folder = os.path.join(tempfile.gettempdir(), f"run-{os.getpid()}")
    os.makedirs(folder, exist_ok=True)  # <-- DDP514
    path = os.path.join(folder, "best.pt")
    if dist.get_rank() == 0:
        torch.save({}, path)
    dist.barrier()
    torch.load(path)


if __name__ == "__main__":
    main()
