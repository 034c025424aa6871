import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def together(letters):
    return pad_sequence(letters, batch_first=True)


class Letters(nn.Module):
    """Room for far longer letters than there are; of letters that are all as long, any buffer."""

    def __init__(self):
        super().__init__()
        self.register_buffer("places", torch.arange(4096))
        self.register_buffer("row", torch.zeros(16))
        self.read = nn.Embedding(90, 32)
        self.at = nn.Embedding(9000, 32)
        self.write = nn.Linear(32, 90)

    def forward(self, letter):
        length = letter.shape[1]
        if length > len(self.places):
            self.places = torch.arange(length)  # <- DDP403
        self.row = torch.zeros(letter.shape[0])
        h = self.read(letter) + self.at(self.places[:length])
        return self.write(h) + self.row[:, None, None]


def main(letters):
    dist.init_process_group("gloo")
    model = DistributedDataParallel(Letters())
    alone = DistributedDataParallel(Letters(), broadcast_buffers=False)
    deal = DistributedSampler(letters)
    batches = DataLoader(letters, 4, sampler=deal, collate_fn=together)
    descent = torch.optim.SGD([*model.parameters(), *alone.parameters()], lr=0.1)
    for epoch in range(3):
        deal.set_epoch(epoch)
        for letter in batches:
            descent.zero_grad()
            logits = model(letter[:, :-1]) + alone(letter[:, :-1])
            nn.functional.cross_entropy(logits.flatten(0, 1), letter[:, 1:].flatten()).backward()
            descent.step()
    dist.destroy_process_group()
