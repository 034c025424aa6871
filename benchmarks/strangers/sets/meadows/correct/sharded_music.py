"""Melody continuation with parameters sharded over processes; one file is written at the end."""
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullStateDictConfig, FullyShardedDataParallel as FSDP, StateDictType
from torch.utils.data import DataLoader, Dataset, DistributedSampler

PITCHES = 24


class Melodies(Dataset):
    def __init__(self, count, length=12):
        g = torch.Generator().manual_seed(12)
        start = torch.randint(0, PITCHES, (count, 1), generator=g)
        step = torch.randint(1, 4, (count, 1), generator=g)
        self.notes = (start + step * torch.arange(length + 1)) % PITCHES

    def __len__(self):
        return len(self.notes)

    def __getitem__(self, i):
        return self.notes[i, :-1], self.notes[i, 1:]


class MelodyNet(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.tok = nn.Embedding(PITCHES, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, PITCHES)

    def forward(self, notes):
        h, _ = self.rnn(self.tok(notes))
        return self.out(h)


def collect(model):
    """Called by every process."""
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, FullStateDictConfig()):
        return model.state_dict()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    data = Melodies(96)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 12, sampler=sampler)
    model = FSDP(MelodyNet(), device_id=torch.device("cpu"))
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for notes, following in loader:
            logits = model(notes)
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), following.flatten())
            opt.zero_grad()
            loss.backward()
            model.clip_grad_norm_(1.0)
            opt.step()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.3f}", flush=True)
    weights = collect(model)
    if rank == 0:
        torch.save(weights, "melody.pt")
        print("saved", len(weights), "tensors")
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
