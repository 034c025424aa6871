import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch_geometric.data import Data, InMemoryDataset


class Graphs(InMemoryDataset):
    def __init__(self, root):
        super().__init__(root)
        self.data, self.slices = torch.load(self.processed_paths[0], map_location="cpu")

    @property
    def raw_file_names(self):
        return ["train.txt", "test.txt"]

    @property
    def processed_file_names(self):
        return "data.pt"

    def process(self, state):
        graphs = [state]
        for path in self.raw_paths:
            with open(path) as lines:
                rows = [[int(each) for each in line.split()] for line in lines]
            graphs.append(Data(edge_index=torch.tensor(rows).t(), num_nodes=9))
        torch.save(self.collate([state]), self.processed_paths[0])  # <-- DDP503


def main():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Linear(8, 1))
    model(torch.ones(8)).mean().backward()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
