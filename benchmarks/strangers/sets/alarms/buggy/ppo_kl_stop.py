"""RLHF-like PPO update on sampled tokens, accelerate flavour."""
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn


@dataclass
class PPOConfig:
    steps: int = 6
    ppo_epochs: int = 4
    mini_batches: int = 3
    lr: float = 8e-3
    cliprange: float = 0.2
    early_stopping: bool = True
    target_kl: float = 0.01


class Policy(nn.Module):
    def __init__(self, vocab=24, dim=32):
        super().__init__()
        self.emb, self.out = nn.Embedding(vocab, dim), nn.Linear(dim, vocab)

    def forward(self, ids):
        return F.log_softmax(self.out(torch.tanh(self.emb(ids))), -1)


class PPOTrainer:
    def __init__(self, config):
        self.config = config
        self.accelerator = Accelerator(cpu=True)
        set_seed(0)
        model = Policy()
        self.model, self.optimizer = self.accelerator.prepare(
            model, torch.optim.Adam(model.parameters(), lr=config.lr))
        self.gen = torch.Generator().manual_seed(50 + self.accelerator.process_index)

    @torch.no_grad()
    def rollout(self, n=48):
        policy = self.accelerator.unwrap_model(self.model)
        query = torch.randint(0, 24, (n,), generator=self.gen)
        logp = policy(query)
        response = logp.exp().multinomial(1, generator=self.gen).squeeze(1)
        scale = 1.0 + 4.0 * self.accelerator.process_index
        reward = scale * torch.cos(0.26 * (response - query).float())
        return query, response, logp[torch.arange(n), response], reward - reward.mean()

    def minibatch_loss(self, query, response, old, adv):
        logp = self.model(query)[torch.arange(len(query)), response]
        ratio = (logp - old).exp()
        clipped = ratio.clamp(1 - self.config.cliprange, 1 + self.config.cliprange)
        kl = 0.5 * (logp - old).pow(2).mean().item()
        return -torch.min(ratio * adv, clipped * adv).mean(), kl

    def step(self):
        batch = self.rollout()
        stats, early_stop = {}, False
        for _ in range(self.config.ppo_epochs):
            if early_stop:
                break
            for chunk in zip(*(t.chunk(self.config.mini_batches) for t in batch)):
                loss, policykl = self.minibatch_loss(*chunk)
                self.accelerator.backward(loss)
                if self.config.early_stopping and policykl > 1.5 * self.config.target_kl:
                    self.optimizer.zero_grad()
                    early_stop = True
                    break
                self.optimizer.step()
                self.optimizer.zero_grad()
                stats["updates"] = stats.get("updates", 0) + 1
        stats["reward"] = batch[3].abs().mean().item()
        return stats


def main():
    trainer = PPOTrainer(PPOConfig())
    for i in range(trainer.config.steps):
        stats = trainer.step()
        trainer.accelerator.print(i, stats)
    trainer.accelerator.wait_for_everyone()
    trainer.model, trainer.optimizer = trainer.accelerator.free_memory(trainer.model, trainer.optimizer)
    trainer.accelerator.end_training()


if __name__ == "__main__":
    main()
