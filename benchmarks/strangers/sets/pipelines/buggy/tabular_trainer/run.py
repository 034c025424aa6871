import torch
import torch.distributed as dist

from callbacks import EarlyStopping, LossHistory
from config import TrainConfig
from trainer import Trainer

if __name__ == "__main__":
    dist.init_process_group("gloo")
    cfg = TrainConfig()
    torch.manual_seed(cfg.seed)
    trainer = Trainer(cfg, callbacks=[LossHistory(), EarlyStopping(cfg.patience, cfg.min_delta)])
    trainer.fit()
    dist.barrier()
    dist.destroy_process_group()
