# style: model class with its own helpers
# nproc: 2
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Autoencoder(nn.Module):
    def __init__(self, features=10, latent=3):
        super().__init__()
        self.latent = latent
        self.encoder = nn.Sequential(nn.Linear(features, 8), nn.ReLU(), nn.Linear(8, latent))
        self.decoder = nn.Sequential(nn.Linear(latent, 8), nn.ReLU(), nn.Linear(8, features))

    def forward(self, x):
        return self.decoder(self.encoder(x))

    @torch.no_grad()
    def sample(self, count):
        return self.decoder(torch.randn(count, self.latent))


class Trainer:
    def __init__(self, model, rank):
        self.model = DistributedDataParallel(model)
        self.rank = rank
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    def epoch(self, number):
        generator = torch.Generator().manual_seed(10 * number + self.rank)
        for _ in range(4):
            x = torch.randn(16, 10, generator=generator)
            self.optimizer.zero_grad()
            loss = nn.functional.mse_loss(self.model(x), x)
            loss.backward()
            self.optimizer.step()
        return loss.item()

    def preview(self):
        return self.model.module.sample(4)

    def fit(self, epochs):
        for number in range(epochs):
            loss = self.epoch(number)
            pictures = self.preview()
            if self.rank == 0:
                print(f"epoch {number} loss {loss:.3f} spread {pictures.std():.3f}")


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    trainer = Trainer(Autoencoder(), dist.get_rank())
    trainer.fit(2)
    dist.barrier()
    del trainer
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
