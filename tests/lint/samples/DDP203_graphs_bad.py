import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler
from torch_geometric.datasets import ZINC
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCN


def main():
    dist.init_process_group("gloo")
    molecules = ZINC("zinc", subset=True, split="train")
    sampler = DistributedSampler(molecules)  # <-- DDP203
    loader = DataLoader(molecules, batch_size=64, sampler=sampler)
    net = DistributedDataParallel(GCN(1, 32, 3, 1))
    adam = torch.optim.Adam(net.parameters())
    for _ in range(50):
        for graphs in loader:
            adam.zero_grad()
            F.l1_loss(net(graphs.x.float(), graphs.edge_index), graphs.y).backward()
            adam.step()


if __name__ == "__main__":
    main()
