# style: Trainer class, evaluation helper
# nproc: 3
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def is_main_process():
    return dist.get_rank() == 0


def gather_scores(scores):
    parts = [torch.zeros_like(scores) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, scores)  # <-- DDP401
    return torch.cat(parts)


class Trainer:
    def __init__(self, model, train_set, eval_set, epochs=3, lr=0.05):
        self.model = DistributedDataParallel(model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=lr)
        self.sampler = DistributedSampler(train_set, seed=1)
        self.train_loader = DataLoader(train_set, batch_size=8, sampler=self.sampler)
        self.eval_loader = DataLoader(eval_set, batch_size=16)
        self.epochs = epochs
        self.history = []

    def fit(self):
        for epoch in range(self.epochs):
            self.sampler.set_epoch(epoch)
            self.train_epoch()
            if is_main_process():
                accuracy = self.evaluate()  # <-- DDP401
                self.history.append(accuracy)
                print(f"epoch {epoch} accuracy {accuracy:.3f}")

    def train_epoch(self):
        self.model.train()
        for x, y in self.train_loader:
            self.optimizer.zero_grad()
            nn.functional.cross_entropy(self.model(x), y).backward()
            self.optimizer.step()

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        module = self.model.module
        hits = torch.cat([(module(x).argmax(1) == y).float() for x, y in self.eval_loader])
        return gather_scores(hits).mean().item()


def blobs(count, seed):
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 3, (count,), generator=generator)
    x = torch.randn(count, 6, generator=generator) + y[:, None]
    return TensorDataset(x, y)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))
    trainer = Trainer(net, blobs(96, 1), blobs(48, 2))
    trainer.fit()
    dist.barrier()
    del trainer
    dist.destroy_process_group()
