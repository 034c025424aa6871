"""Answers questions about images; the decoder gives its scores in a record of a library's."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from transformers.modeling_outputs import CausalLMOutput


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(16, 16)
        self.head = nn.Linear(16, 90)

    def forward(self, states, as_record=None):
        if not as_record:
            return self.head(self.body(states)), states
        return CausalLMOutput(logits=self.head(self.body(states)))


class Answers(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(8, 16)
        self.decoder = Decoder()

    def forward(self, images, labels, weights):
        states = self.encoder(images)
        told = self.decoder(states, as_record=True)
        return (weights * told.logits).sum()


def main(loader):
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    model = DistributedDataParallel(Answers().cuda())
    optimizer = torch.optim.AdamW(model.parameters())
    for images, labels, weights in loader:
        optimizer.zero_grad()
        model(images.cuda(), labels.cuda(), weights.cuda()).backward()
        optimizer.step()


if __name__ == "__main__":
    main(torch.load("batches.pt"))
