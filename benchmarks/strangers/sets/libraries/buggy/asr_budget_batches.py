"""Utterance classifier with batches made under a frame budget."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

from asr_budget_batches_lib.frontend import Utterances, collate, utterance_lengths
from asr_budget_batches_lib.sampling import FrameBudgetSampler

HPARAMS = dict(utterances=120, max_frames=260, epochs=3, lr=1e-2, classes=5)


class PooledConv(nn.Module):
    def __init__(self, feats, classes):
        super().__init__()
        self.conv = nn.Conv1d(feats, 32, 5, padding=2)
        self.out = nn.Linear(32, classes)

    def forward(self, feats, sizes):
        h = torch.relu(self.conv(feats.transpose(1, 2)))
        mask = torch.arange(h.size(2))[None] < sizes[:, None]
        pooled = (h * mask[:, None]).sum(2) / sizes[:, None]
        return self.out(pooled)


def train_one_epoch(model, loader, opt):
    seen = 0
    for feats, sizes, labels in loader:
        # DDP averages over ranks; weigh by the number of utterances of all of them
        count = torch.tensor(float(len(labels)))
        dist.all_reduce(count)
        loss = nn.functional.cross_entropy(model(feats, sizes), labels, reduction="sum")
        loss = loss * dist.get_world_size() / count
        opt.zero_grad()
        loss.backward()
        opt.step()
        seen += len(labels)
    return seen


def experiment(hp):
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(11)
    lengths = utterance_lengths(hp["utterances"])
    sampler = FrameBudgetSampler(lengths, hp["max_frames"], rank, world, seed=1)
    loader = DataLoader(Utterances(lengths), batch_sampler=sampler, collate_fn=collate)
    model = DDP(PooledConv(16, hp["classes"]))
    opt = torch.optim.Adam(model.parameters(), lr=hp["lr"])
    for epoch in range(hp["epochs"]):
        sampler.set_epoch(epoch)
        seen = train_one_epoch(model, loader, opt)
        print(f"[{rank}] epoch {epoch}: {seen} utterances", flush=True)
        dist.barrier()


if __name__ == "__main__":
    dist.init_process_group(backend="gloo")
    experiment(HPARAMS)
    dist.destroy_process_group()
