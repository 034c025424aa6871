from accelerate import Accelerator
from torch.optim import SGD
from transformers import AutoModelForCausalLM


def main(batches):
    accelerator = Accelerator()
    model = AutoModelForCausalLM.from_pretrained("gpt2")
    optimizer = SGD(model.parameters(), lr=0.1)
    model, optimizer = accelerator.prepare(model, optimizer)
    model.gradient_checkpointing_enable()  # <-- DDP318
    for batch in batches:
        accelerator.backward(model(**batch).loss)
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main([])
