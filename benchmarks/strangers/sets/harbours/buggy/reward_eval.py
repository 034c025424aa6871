"""Trains a pairwise reward model and reports the accuracy on held-out preference pairs."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset


class RewardModel(nn.Module):
    def __init__(self, vocab=50, dim=24):
        super().__init__()
        self.emb = nn.EmbeddingBag(vocab, dim)
        self.score = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, 1))

    def forward(self, ids):
        return self.score(self.emb(ids)).squeeze(-1)


def preference_pairs(n, seed, noise):
    g = torch.Generator().manual_seed(seed)
    worth = torch.randn(50, generator=torch.Generator().manual_seed(0))
    a = torch.randint(0, 50, (n, 12), generator=g)
    b = torch.randint(0, 50, (n, 12), generator=g)
    better = (worth[a].mean(1) > worth[b].mean(1)).unsqueeze(1)
    flip = torch.zeros(n, 1, dtype=torch.bool)
    flip[int(n * (1 - noise)):] = True
    better = better ^ flip
    return TensorDataset(torch.where(better, a, b), torch.where(better, b, a))


class RewardTrainer:
    def __init__(self, accelerator, model, optimizer, train, evaluation):
        self.acc = accelerator
        self.model, self.opt, self.train_dl, self.eval_dl = accelerator.prepare(model, optimizer, train, evaluation)

    def train(self, epochs):
        for _ in range(epochs):
            for chosen, rejected in self.train_dl:
                r = self.model(torch.cat([chosen, rejected]))
                rc, rr = r.chunk(2)
                loss = -F.logsigmoid(rc - rr).mean()
                self.opt.zero_grad()
                self.acc.backward(loss)
                self.opt.step()

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        stats = {"accuracy": [], "margin": []}
        for chosen, rejected in self.eval_dl:
            diff = self.model(chosen) - self.model(rejected)
            correct = (diff > 0).float().mean()
            margin = diff.mean()
            stats["accuracy"].append(self.acc.gather_for_metrics(correct).mean())
            stats["margin"].append(self.acc.gather_for_metrics(margin).mean())
        self.model.train()
        return {k: torch.stack(v).mean().item() for k, v in stats.items()}


def main():
    accelerator = Accelerator()
    torch.manual_seed(0)
    train = DataLoader(preference_pairs(320, 1, 0.0), batch_size=16, shuffle=True)
    evaluation = DataLoader(preference_pairs(37, 2, 0.14), batch_size=8)
    model = RewardModel()
    trainer = RewardTrainer(accelerator, model, torch.optim.Adam(model.parameters(), lr=5e-3), train, evaluation)
    for epoch in range(3):
        trainer.train(1)
        result = trainer.evaluate()
        accelerator.print(f"epoch {epoch} eval accuracy {result['accuracy']:.4f} margin {result['margin']:.4f}")
    accelerator.end_training()


if __name__ == "__main__":
    main()
