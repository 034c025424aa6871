"""Word recognition from mouth crops.   torchrun --nproc_per_node 2 train.py"""
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from env import Env
from workspace import Workspace

WORDS, CLIPS, FRAMES, SIDE = 5, 60, 8, 12


def decode():
    g = torch.Generator().manual_seed(0)
    motion = torch.randn(WORDS, FRAMES, SIDE, SIDE, generator=g)
    for i in range(CLIPS):
        word = i % WORDS
        yield f"{i:04d}_{word}", motion[word] + torch.randn(FRAMES, SIDE, SIDE, generator=g)


class Clips(Dataset):
    def __init__(self, ws):
        self.ws, self.names = ws, ws.clips()

    def __len__(self):
        return len(self.names)

    def __getitem__(self, i):
        name = self.names[i]
        return self.ws.load(name).unsqueeze(0), int(name[:-3].split("_")[1])


def build():
    return nn.Sequential(
        nn.Conv3d(1, 8, 3, stride=(1, 2, 2), padding=1), nn.ReLU(),
        nn.Conv3d(8, 16, 3, stride=2, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool3d((2, 2, 2)), nn.Flatten(), nn.Linear(128, WORDS))


def main():
    env = Env.start()
    ws = Workspace(env)
    ws.prepare(decode)
    data = Clips(ws)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=6, sampler=sampler)
    torch.manual_seed(1)
    net = DistributedDataParallel(build())
    opt = torch.optim.AdamW(net.parameters(), lr=4e-3)
    for epoch in range(5):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = F.cross_entropy(net(x), y)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
        env.say(f"epoch {epoch} last loss {loss.item():.3f} on {len(data)} clips")
    env.stop()
    ws.close()


if __name__ == "__main__":
    main()
