import torch.distributed as dist

from exp.tracker import Tracker
from exp.work import fit

if __name__ == "__main__":
    dist.init_process_group("gloo")
    with Tracker("runs") as tracker:
        fit(tracker)
    dist.destroy_process_group()
