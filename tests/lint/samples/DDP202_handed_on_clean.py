import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Padded(DataLoader):
    """Batches whose texts are padded to one length."""

    def __init__(self, *args, filler=0, **rest):
        self.filler = filler
        super().__init__(*args, collate_fn=self.pad, **rest)

    def pad(self, texts):
        pieces = [text for (text,) in texts]
        return nn.utils.rnn.pad_sequence(pieces, True, self.filler)


def train():
    dist.init_process_group("gloo")
    texts = TensorDataset(torch.load("texts.pt"))
    shares = DistributedSampler(texts)
    batches = Padded(texts, batch_size=16, filler=1, sampler=shares)
    net = nn.parallel.DistributedDataParallel(nn.EmbeddingBag(9, 4))
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for number in range(5):
        shares.set_epoch(number)
        for batch in batches:
            sgd.zero_grad()
            net(batch).pow(2).mean().backward()
            sgd.step()


if __name__ == "__main__":
    train()
