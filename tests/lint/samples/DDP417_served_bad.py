import torch
import torch.distributed as dist

BYE = 1.0


def serve():
    box = torch.zeros(2)
    while True:
        dist.send(torch.tensor([0.0, 1.0]), dst=1)
        dist.recv(box, src=1)
        if box[0] == BYE:
            break


def ask():
    box = torch.zeros(2)
    for number in range(9):
        dist.send(torch.tensor([0.0, number]), dst=0)  # <-- DDP417
        dist.recv(box, src=0)
    dist.send(torch.tensor([BYE, 0.0]), dst=0)
    dist.recv(box, src=0)


def main():
    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        serve()
    elif dist.get_rank() == 1:
        ask()


if __name__ == "__main__":
    main()
