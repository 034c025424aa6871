# To say the default does not change it: the evaluation is dealt out in another order, and padded.
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


class Engine:
    def __init__(self, model, training, held_out):
        self.model, self.training, self.held_out = model, training, held_out
        self.optimizer = torch.optim.AdamW(model.parameters())

    def train(self):
        self.model.train()
        for x, y in self.training:
            self.optimizer.zero_grad(set_to_none=True)
            nn.functional.l1_loss(self.model(x.cuda()), y.cuda()).backward()
            self.optimizer.step()

    @torch.inference_mode()
    def validate(self):
        self.model.eval()
        total = torch.zeros((), device="cuda")
        for x, y in self.held_out:
            total += nn.functional.l1_loss(self.model(x.cuda()), y.cuda())
        dist.all_reduce(total)
        return total.item() / len(self.held_out) / dist.get_world_size()


def main(data, other):
    dist.init_process_group("nccl")
    rank, size = dist.get_rank(), dist.get_world_size()
    gpu = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(gpu)
    deal = DistributedSampler(data, shuffle=True, num_replicas=size, rank=rank)
    order = DistributedSampler(other, shuffle=True, num_replicas=size, rank=rank)  # <-- DDP208
    model = DDP(nn.Linear(8, 1).cuda(), device_ids=[gpu])
    engine = Engine(model, DataLoader(data, 8, sampler=deal), DataLoader(other, 8, sampler=order))
    for epoch in range(40):
        deal.set_epoch(epoch)
        engine.train()
        error = engine.validate()
        if rank == 0:
            print(epoch, error)
    dist.destroy_process_group()


if __name__ == "__main__":
    import scenes

    main(scenes.training(), scenes.validation())
