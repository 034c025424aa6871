"""Wraps by settings that are put together, and shards by the contrary."""

import torch
from omegaconf import OmegaConf
from torch.distributed.fsdp import fully_shard

USUAL = {"noise": 0.0, "additive": False, "saturate": 5, "with_ddp": True, "with_fsdp": False}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embeds = torch.nn.ModuleList([torch.nn.Linear(2, 2)])

    def forward(self, batch):
        return self.embeds[0](batch)


class Trainer:
    def init(self, cf, devices):
        self.cf = OmegaConf.merge(OmegaConf.create(dict(USUAL)), cf)
        self.devices = devices

    def run(self, cf, devices):
        self.init(cf, devices)
        cf = self.cf
        torch.distributed.init_process_group("nccl")
        self.model = Net()
        if cf.with_ddp and not cf.with_fsdp:
            self.model = torch.nn.parallel.DistributedDataParallel(self.model)
        if cf.with_ddp and cf.with_fsdp:
            for module in self.model.embeds.modules():
                fully_shard(module)
