import torch
import torch.distributed as dist

from core.train_loop import TrainLoop

if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    TrainLoop(log_interval=5).run(30)
    dist.barrier()
    dist.destroy_process_group()
