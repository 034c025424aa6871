import torch
import torch.distributed as dist
import torch.nn.functional as F


def run(student, teacher, args):
    opt = torch.optim.Adam(student.parameters(), lr=args.lr)
    g = torch.Generator().manual_seed(dist.get_rank() + 1)
    for step in range(args.steps):
        x = torch.randn(16, 12, generator=g)
        with torch.no_grad():
            soft = (teacher(x) / args.tau).softmax(1)
        loss = F.kl_div((student(x) / args.tau).log_softmax(1), soft, reduction="batchmean") * args.tau ** 2
        opt.zero_grad()
        loss.backward()
        opt.step()
    if dist.get_rank() == 0:
        print(f"step {step} kl {loss.item():.4f}", flush=True)
