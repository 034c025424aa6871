import torch
import torch.distributed as dist

import utils
from dino.loss import DINOLoss
from dino.student import Head
from dino.train import train

if __name__ == "__main__":
    utils.init_distributed_mode()
    utils.fix_random_seeds(2)
    train(Head(), Head(), DINOLoss(out_dim=12))
    dist.barrier()
    dist.destroy_process_group()
