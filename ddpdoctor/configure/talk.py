"""What the ranks of a trial run: they join, and each learns a number from every other.

Started by the launch file that is tried, so it must stand alone. Rank 0 prints one line of JSON
behind a mark.
"""

import json
import os
import sys
from datetime import timedelta

MARK = "ddpdoctor-trial:"


def main() -> None:
    """Join, add up the ranks, and let rank 0 tell."""
    import torch
    import torch.distributed as dist

    if "ACCELERATE_MIXED_PRECISION" in os.environ:
        from accelerate import Accelerator

        rank = Accelerator().process_index
        device = Accelerator().device
    else:
        device = torch.device("cpu")
        if torch.cuda.is_available() and "--cpu" not in sys.argv:
            device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
            torch.cuda.set_device(device)
        backend = "nccl" if device.type == "cuda" else "gloo"
        dist.init_process_group(backend, timeout=timedelta(seconds=60))
        rank = dist.get_rank()
    if not dist.is_initialized():
        print(MARK, json.dumps({"world_size": 1, "sum": 0, "device": device.type}), flush=True)
        return
    total = torch.tensor(rank, device=device)
    dist.all_reduce(total)
    if rank == 0:
        told = {
            "world_size": dist.get_world_size(),
            "sum": int(total),
            "device": device.type,
            "threads": torch.get_num_threads(),
        }
        print(MARK, json.dumps(told), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
