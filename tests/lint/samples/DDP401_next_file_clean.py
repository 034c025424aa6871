import numpy as np
import torch.distributed as dist


def collect(out_dir, part, number, only_first):
    np.save(f"{out_dir}/{dist.get_rank()}.npy", part)
    dist.barrier()
    if only_first:
        if dist.get_rank() > 0:
            dist.barrier()
            return None
    parts = []
    for rank in range(number):
        try:
            one = np.load(f"{out_dir}/{rank}.npy")
            parts.append(one)
        except OSError:
            continue
    dist.barrier()
    return np.concatenate(parts)
