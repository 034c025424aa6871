"""Rewards what a policy writes, by what it gives besides: the wrapper is taken off for it."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from data import batches
from torch.nn.parallel import DistributedDataParallel
from transformers.modeling_outputs import CausalLMOutputWithPast


class Policy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inside = torch.nn.Embedding(100, 8)
        self.head = torch.nn.Linear(8, 100)

    def forward(self, words):
        hidden = self.inside(words)
        aside = hidden.pow(2).mean()
        return CausalLMOutputWithPast(logits=self.head(hidden), aux_loss=aside)


def epoch(model, reference, optimizer):
    for words, advantage, mask in batches():
        bare = model.module if isinstance(model, DistributedDataParallel) else model
        given = bare(words)  # <-- DDP303
        chosen = F.log_softmax(given.logits[:, :-1, :], dim=-1).gather(2, words[:, 1:, None])
        with torch.no_grad():
            before = F.log_softmax(reference(words).logits, dim=-1)[:, :-1].gather(2, words)
        ratio = torch.exp(chosen.squeeze(-1) - before.squeeze(-1))
        least = torch.min(ratio * advantage, torch.clamp(ratio, 0.8, 1.2) * advantage)
        loss = -(least * mask).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    policy = Policy().cuda()
    reference = Policy().cuda()
    learner = torch.optim.AdamW(policy.parameters(), lr=1e-5)
    epoch(DistributedDataParallel(policy), reference, learner)
