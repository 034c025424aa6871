# style: epoch loop with running loss, functions, weighted sampler by hand
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Tagger(nn.Module):
    def __init__(self, vocabulary=30, width=12, tags=4):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.rnn = nn.RNN(width, width, batch_first=True)
        self.tag = nn.Linear(width, tags)

    def forward(self, words):
        return self.tag(self.rnn(self.embed(words))[0])


def make_loader(batch_size):
    generator = torch.Generator().manual_seed(14)
    words = torch.randint(0, 30, (160, 5), generator=generator)
    dataset = TensorDataset(words, words % 4)
    sampler = DistributedSampler(dataset, shuffle=True, seed=1)
    return DataLoader(dataset, batch_size=batch_size, sampler=sampler)


def train_epoch(model, loader, optimizer, criterion):
    model.train()
    running = 0.0
    for words, tags in loader:
        optimizer.zero_grad()
        loss = criterion(model(words).flatten(0, 1), tags.flatten())
        loss.backward()
        optimizer.step()
        running += loss  # <-- DDP601
    return running / len(loader)


def train(epochs=2):
    torch.manual_seed(0)
    model = DDP(Tagger())
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    criterion = nn.CrossEntropyLoss()
    loader = make_loader(batch_size=5)
    for epoch in range(epochs):
        loader.sampler.set_epoch(epoch)
        loss = train_epoch(model, loader, optimizer, criterion)
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: {float(loss):.4f}")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train()
    dist.destroy_process_group()
