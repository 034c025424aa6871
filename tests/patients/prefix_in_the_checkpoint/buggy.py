# style: functions, export for inference
# nproc: 2
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def make_model():
    return nn.Sequential(nn.Linear(5, 20), nn.ReLU(), nn.Linear(20, 1))


def train(model, loader, epochs=2):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(epochs):
        loader.sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()


def save(model, path):
    if dist.get_rank() == 0:
        torch.save(model.state_dict(), path)  # <-- DDP508
    dist.barrier()


def predict(path, x):
    model = make_model()
    model.load_state_dict(torch.load(path))  # <-- DDP508
    model.eval()
    with torch.no_grad():
        return model(x)


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    x = torch.randn(40, 5)
    data = TensorDataset(x, x.norm(dim=1, keepdim=True))
    loader = DataLoader(data, batch_size=5, sampler=DistributedSampler(data))
    model = DDP(make_model())
    train(model, loader)
    save(model, "model.pt")
    if dist.get_rank() == 0:
        print("prediction", predict("model.pt", x[:3]).flatten().tolist())
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
