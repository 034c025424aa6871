"""Next-request prediction from a stream of sessions in several log files."""
import json
import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

PAGES = 40


def write_logs(folder, files=6, sessions=40):
    g = torch.Generator().manual_seed(6)
    paths = []
    for f in range(files):
        path = os.path.join(folder, f"access-{f}.jsonl")
        with open(path, "w") as out:
            for s in range(sessions):
                start, stride = torch.randint(1, PAGES, (2,), generator=g).tolist()
                pages = [(start + stride * k) % PAGES for k in range(8)]
                out.write(json.dumps({"session": f * sessions + s, "pages": pages}) + "\n")
        paths.append(path)
    return paths


def dist_settings():
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return 0, 1


class Sessions(IterableDataset):
    def __init__(self, paths):
        self.paths = sorted(paths)
        self.rank, self.world = dist_settings()

    def __iter__(self):
        for path in self.paths[self.rank::self.world]:
            with open(path) as lines:
                for line in lines:
                    row = json.loads(line)
                    yield torch.tensor(row["pages"]), row["session"]


class DataModule:
    def __init__(self, folder, batch_size=16):
        self.loader = DataLoader(Sessions(write_logs(folder)), batch_size=batch_size)


class NextPage(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(PAGES, 24)
        self.rnn = nn.LSTM(24, 32, batch_first=True)
        self.out = nn.Linear(32, PAGES)

    def forward(self, pages):
        return self.out(self.rnn(self.emb(pages))[0])


class Trainer:
    def __init__(self, epochs, lr):
        self.epochs, self.lr = epochs, lr
        self.sessions_seen = []

    def setup(self, model):
        dist.init_process_group("gloo")
        self.model = nn.parallel.DistributedDataParallel(model)
        self.opt = torch.optim.Adam(self.model.parameters(), lr=self.lr)

    def fit(self, loader):
        for epoch in range(self.epochs):
            for pages, ids in loader:
                self.sessions_seen += ids.tolist()
                logits = self.model(pages[:, :-1])
                loss = nn.functional.cross_entropy(logits.flatten(0, 1), pages[:, 1:].flatten())
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            if dist.get_rank() == 0:
                print(f"epoch {epoch} loss {loss.item():.3f}", flush=True)

    def teardown(self):
        dist.barrier()
        dist.destroy_process_group()


def main():
    torch.manual_seed(3)
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(epochs=4, lr=5e-3)
        data = DataModule(folder)
        trainer.setup(NextPage())
        trainer.fit(data.loader)
        trainer.teardown()


if __name__ == "__main__":
    main()
