# style: fine-tuning with a frozen encoder, tied embeddings, EMA after the wrap, accumulation
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Tied(nn.Module):
    def __init__(self, vocabulary=18, width=12):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.encoder = nn.GRU(width, width, batch_first=True)
        self.decode = nn.Linear(width, vocabulary, bias=False)
        self.decode.weight = self.embed.weight
        self.encoder.requires_grad_(False)

    def forward(self, tokens):
        hidden, _ = self.encoder(self.embed(tokens))
        return self.decode(hidden)


def loader():
    generator = torch.Generator().manual_seed(0)
    data = TensorDataset(torch.randint(0, 18, (88, 6), generator=generator))
    return DataLoader(data, batch_size=4, sampler=DistributedSampler(data, drop_last=True))


def train(epochs=2, accumulate=3):
    torch.manual_seed(3)
    model = DDP(Tied())
    ema = AveragedModel(model.module, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    batches = loader()
    for epoch in range(epochs):
        batches.sampler.set_epoch(epoch)
        for i, (tokens,) in enumerate(batches, start=1):
            step = i % accumulate == 0 or i == len(batches)
            with nullcontext() if step else model.no_sync():
                logits = model(tokens[:, :-1])
                loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
                (loss / accumulate).backward()
            if step:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
                ema.update_parameters(model.module)
    return ema


if __name__ == "__main__":
    dist.init_process_group("gloo")
    averaged = train()
    if dist.get_rank() == 0:
        torch.save(averaged.module.state_dict(), "ema.pt")
    dist.destroy_process_group()
