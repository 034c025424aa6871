"""Gradual unfreezing on recordings of birds.   torchrun --nproc_per_node 2 finetune.py"""
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from net import BirdNet, set_trainable
from schedule import Plan


def recordings(n=256, species=8, seed=1):
    g = torch.Generator().manual_seed(seed)
    song = torch.randn(species, 20, 40, generator=g)
    y = torch.randint(0, species, (n,), generator=g)
    return TensorDataset(0.6 * song[y] + torch.randn(n, 20, 40, generator=g), y)


class FineTuner:
    def __init__(self, plan, seed=0):
        torch.manual_seed(seed)
        self.plan = plan
        self.data = recordings()
        self.sampler = DistributedSampler(self.data, seed=seed)
        self.loader = DataLoader(self.data, 16, sampler=self.sampler)
        self.net = BirdNet()
        set_trainable(self.net, ["trunk", "head"], False)
        self.opt = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(()))], lr=1e-3)
        self.enter(plan.at(0))
        self.wrap()

    def wrap(self):
        self.ddp = DistributedDataParallel(self.net)

    def enter(self, stage):
        self.opt.add_param_group({"params": set_trainable(self.net, stage.unfreeze), "lr": stage.lr})

    def epoch(self, e):
        stage = self.plan.at(e)
        if stage is not None and e > 0:
            self.enter(stage)
            self.wrap()
        self.sampler.set_epoch(e)
        hit = torch.zeros(2)
        for x, y in self.loader:
            out = self.ddp(x)
            loss = F.cross_entropy(out, y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            hit += torch.tensor([(out.argmax(1) == y).sum().item(), len(y)])
        dist.all_reduce(hit)
        return (hit[0] / hit[1]).item()


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    tuner = FineTuner(Plan())
    for e in range(tuner.plan.epochs):
        acc = tuner.epoch(e)
        if dist.get_rank() == 0:
            print(f"epoch {e} train accuracy {acc:.3f}", flush=True)
    trunk = sum(p.detach().double().abs().sum() for p in tuner.net.trunk.parameters())
    print(f"[{dist.get_rank()}] trunk checksum {trunk:.6f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
