import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Subset, TensorDataset


class Deck:
    """The same shuffled cards everywhere, of which each player is dealt a column."""

    def __init__(self, cards, players):
        self.cards, self.players = cards - cards % players, players

    def hand(self, turn, player):
        shuffled = torch.randperm(self.cards, generator=torch.Generator().manual_seed(turn))
        return shuffled.reshape(-1, self.players)[:, 0].tolist()


def main(samples):
    dist.init_process_group("gloo")
    player, players = dist.get_rank(), dist.get_world_size()
    deck = Deck(len(samples), players)
    model = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for turn in range(8):
        mine = Subset(samples, deck.hand(turn, player))
        for x, y in DataLoader(mine, batch_size=16):  # <-- DDP202
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.manual_seed(3)
    main(TensorDataset(torch.randn(512, 4), torch.randn(512, 1)))
